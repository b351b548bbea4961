-- Keep what running attempts say: of progress the latest, of lines the newest 200 and 64 KiB.
-- Returns the jobs that are done with; the others are locked by somebody, and nobody waits for
-- that here. A line that is sent again has the same number, and is kept once.
CREATE OR REPLACE FUNCTION timeball.note(p_notes jsonb) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off
AS $function$
DECLARE
    v_given bigint[] := array(
        SELECT DISTINCT note.job_id FROM jsonb_to_recordset(p_notes) AS note (job_id bigint));
    v_jobs bigint[];
BEGIN
    -- So that nothing is written about a job that somebody is deleting.
    v_jobs := array(
        SELECT job.id FROM timeball.job WHERE job.id = ANY (v_given)
        ORDER BY job.id FOR NO KEY UPDATE SKIP LOCKED);

    INSERT INTO timeball.progress (job_id, turn, done, total, note)
    SELECT DISTINCT ON (said.job_id) said.job_id, said.turn, said.done, said.total, said.note
    FROM jsonb_to_recordset(p_notes) AS said (
        job_id bigint, turn integer, done double precision, total double precision, note text)
    WHERE said.done IS NOT NULL AND said.job_id = ANY (v_jobs)
    ORDER BY said.job_id, said.turn DESC
    ON CONFLICT (job_id) DO UPDATE
    SET turn = excluded.turn, done = excluded.done, total = excluded.total, note = excluded.note,
        at = excluded.at
    WHERE progress.turn <= excluded.turn;

    INSERT INTO timeball.logged (job_id, turn, n, at, text)
    SELECT note.job_id, note.turn, line.n,
        timeball.clock() - make_interval(secs => line.age_s), line.text
    FROM jsonb_to_recordset(p_notes) AS note (job_id bigint, turn integer, lines jsonb)
    CROSS JOIN LATERAL jsonb_to_recordset(note.lines) AS line (
        n bigint, age_s double precision, text text)
    WHERE note.job_id = ANY (v_jobs)
    ORDER BY note.job_id, note.turn, line.n
    ON CONFLICT DO NOTHING;

    DELETE FROM timeball.logged USING (
        SELECT old.job_id, old.turn, old.n, row_number() OVER newest AS place,
            sum(octet_length(old.text)) OVER newest AS size
        FROM timeball.logged AS old WHERE old.job_id = ANY (v_jobs)
        WINDOW newest AS (PARTITION BY old.job_id ORDER BY old.turn DESC, old.n DESC)
    ) AS kept
    WHERE (logged.job_id, logged.turn, logged.n) = (kept.job_id, kept.turn, kept.n)
      AND (kept.place > 200 OR kept.size > 65536);

    RETURN QUERY
    SELECT given.id FROM unnest(v_given) AS given (id)
    WHERE given.id = ANY (v_jobs)
       OR NOT EXISTS (SELECT FROM timeball.job WHERE job.id = given.id);
END
$function$;
