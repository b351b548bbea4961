-- event: submit (-> scheduled, waiting, pending)
-- Add the jobs described by a JSON array of objects and return their ids in its order. For
-- any language, and inside the caller's own transaction: visible iff that commits.
--
-- Fields: uuid, kind; optional: args {}, queue "default", priority 5, run_at or delay_s,
-- max_retries 3, max_crashes 3, at_most_once false, timeout_s, expires_at, key; unique_key with
-- unique_scope "kind", "queue" or "global", until_started false, on_clash "ignore", "reject" or
-- "replace"; after, an array of objects of job (the uuid of one that exists, or comes earlier in
-- the array) and rule "all_success", with ruled_out "skip", "fail" or "run". A uuid that is known
-- already adds nothing and gives that job's id; an ignored job gives id and uuid of the one that
-- holds its key. Those that would take a queue beyond its max_depth are refused with all the
-- others, unless p_bounded is false. Those in p_queued wait until `admit` lets them start, those with a key until
-- `admit_keys` does, those of a kind whose starts are limited until `promote` does, those that come
-- after others until these have ended. A job of kind
-- timeball.batch is a batch: nobody runs it, and it ends with the last of the jobs it comes after.
-- One of kind timeball.callback waits for a call until it expires, see `call_back`.
CREATE OR REPLACE FUNCTION timeball.submit(
    p_jobs jsonb, p_queued uuid[] DEFAULT '{}', p_bounded boolean DEFAULT true
) RETURNS TABLE (id bigint, uuid uuid) LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
    v_missing text;
    v_keyed boolean;
    v_limited boolean;
    v_given jsonb := p_jobs;
    v_children bigint[];
    v_rated text[] := timeball.rated_kinds();
BEGIN
    PERFORM timeball.durable();
    SELECT min(format('queue %s, priority %s', given.queue, given.priority))
        FILTER (WHERE lane.id IS NULL), bool_or(given.keyed),
        bool_or(queue.max_depth IS NOT NULL)
    INTO v_missing, v_keyed, v_limited
    FROM (
        SELECT DISTINCT coalesce(spec.queue, 'default') AS queue,
            coalesce(spec.priority, 5) AS priority, spec.unique_key IS NOT NULL AS keyed
        FROM jsonb_to_recordset(p_jobs)
            AS spec (queue text, priority smallint, unique_key text)
    ) AS given
    LEFT JOIN timeball.lane ON lane.queue = given.queue AND lane.priority = given.priority
    LEFT JOIN timeball.queue ON queue.name = given.queue;
    -- Not made here: an uncommitted lane would block every other submitter to it.
    IF v_missing IS NOT NULL THEN
        RAISE EXCEPTION '% has no lane yet', v_missing USING ERRCODE = 'TB003',
            HINT = 'Call timeball.ensure_lane(queue, priority) once, in a transaction of its own.';
    END IF;

    IF v_limited AND p_bounded THEN
        PERFORM timeball.check_depth(p_jobs);
    END IF;
    IF v_keyed THEN
        p_jobs := timeball.take_keys(p_jobs);
    END IF;

    WITH given AS MATERIALIZED (
        SELECT spec.*, coalesce(
            spec.run_at, timeball.now() + make_interval(secs => spec.delay_s)) AS due_at
        FROM ROWS FROM (jsonb_to_recordset(p_jobs) AS (
            uuid uuid, kind text, args jsonb, queue text, priority smallint, run_at timestamptz,
            delay_s double precision, max_retries integer, max_crashes integer,
            at_most_once boolean, timeout_s double precision, expires_at timestamptz,
            unique_key text, unique_scope text, until_started boolean, key text, ruled_out text,
            after jsonb)
        ) WITH ORDINALITY AS spec (uuid, kind, args, queue, priority, run_at, delay_s,
            max_retries, max_crashes, at_most_once, timeout_s, expires_at, unique_key,
            unique_scope, until_started, key, ruled_out, after, n)
    ),
    added AS (
        INSERT INTO timeball.job
            (uuid, lane, kind, args, max_retries, max_crashes, at_most_once, timeout_s, run_at,
            expires_at, unique_key, until_started, key, ruled_out)
        SELECT given.uuid, lane.id, given.kind, coalesce(given.args, '{}'),
            coalesce(given.max_retries, 3), coalesce(given.max_crashes, 3),
            coalesce(given.at_most_once, false), given.timeout_s,
            CASE WHEN given.due_at > timeball.now() THEN given.due_at END, given.expires_at,
            timeball.unique_name(
                given.unique_key, coalesce(given.unique_scope, 'kind'), given.kind, lane.queue),
            CASE WHEN given.unique_key IS NOT NULL THEN coalesce(given.until_started, false) END,
            given.key,
            CASE WHEN given.kind = 'timeball.batch' THEN 'run'
                WHEN given.after <> '[]' THEN coalesce(given.ruled_out, 'skip') END
        FROM given
        JOIN timeball.lane ON lane.queue = coalesce(given.queue, 'default')
            AND lane.priority = coalesce(given.priority, 5)
        ORDER BY given.n  -- the ids are the order in which they start
        ON CONFLICT (uuid) DO NOTHING
        RETURNING job.id, job.lane, job.kind, job.run_at, job.expires_at, job.key, CASE
            WHEN job.ruled_out IS NOT NULL THEN 'parents'
            WHEN job.kind = 'timeball.callback' THEN 'call'
            WHEN job.run_at IS NOT NULL THEN NULL
            WHEN job.uuid = ANY (p_queued) THEN 'overlap'
            WHEN job.key IS NOT NULL THEN 'key'
            WHEN job.kind = ANY (v_rated) THEN 'rate'
        END AS reason
    ),
    held AS (
        INSERT INTO timeball.held
            (job_id, turn, state, lane, run_at, kind, key, reason, expires_at, line,
            all_left, one_left, one_met, lost)
        SELECT added.id, 1, CASE WHEN added.reason = 'call' THEN 'waiting'
                WHEN added.run_at IS NULL THEN 'pending' ELSE 'scheduled' END,
            added.lane, added.run_at, added.kind, added.key, added.reason, added.expires_at,
            CASE WHEN added.reason = 'rate' THEN 'kind:' || added.kind END,
            CASE WHEN added.reason = 'call' THEN 0 END,
            CASE WHEN added.reason = 'call' THEN 0 END, CASE WHEN added.reason = 'call' THEN true END,
            CASE WHEN added.reason = 'call' THEN false END
        FROM added
        WHERE (added.run_at IS NOT NULL OR added.reason IS NOT NULL)
          AND added.reason IS DISTINCT FROM 'parents'
    ),
    noted AS (
        INSERT INTO timeball.deadline (job_id, look_at)
        SELECT added.id, added.expires_at FROM added WHERE added.expires_at IS NOT NULL
    ),
    entered AS (
        INSERT INTO timeball.entry (lane, job_id, expires_at)
        SELECT added.lane, added.id, added.expires_at FROM added
        WHERE added.run_at IS NULL AND added.reason IS NULL
    )
    SELECT array_agg(added.id) INTO v_children FROM added WHERE added.reason = 'parents';
    IF v_children IS NOT NULL THEN
        PERFORM timeball.join_parents(v_children, v_given, p_jobs);
    END IF;

    -- A statement of its own: a uuid that somebody else has just committed is seen only now.
    RETURN QUERY
    SELECT (SELECT job.id FROM timeball.job WHERE job.uuid = (spec.value ->> 'uuid')::uuid),
        (spec.value ->> 'uuid')::uuid
    FROM jsonb_array_elements(p_jobs) WITH ORDINALITY AS spec (value, n)
    ORDER BY spec.n;
END
$function$;
