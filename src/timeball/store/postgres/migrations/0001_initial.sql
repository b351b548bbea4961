-- The tables of Timeball: an append-only ledger, and small tables around it.
-- Nothing in job, entry, lease or ended is ever updated or deleted on the hot path.

-- The present instant. A session may set timeball.now to travel in time. STABLE and
-- inlinable: a volatile function here would keep a WHERE clause from using its index.
CREATE FUNCTION timeball.now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(nullif(current_setting('timeball.now', true), '')::timestamptz, statement_timestamp());

-- The instant of the call itself: for stamps that are made after waiting for a lock.
CREATE FUNCTION timeball.clock() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN coalesce(nullif(current_setting('timeball.now', true), '')::timestamptz, clock_timestamp());

-- The order in which jobs of one queue and priority class start.
CREATE TABLE timeball.lane (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue    text NOT NULL CHECK (queue <> '' AND octet_length(queue) <= 256),
    priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 9),
    UNIQUE (queue, priority)
);

-- What operators have said about a queue; without a row there is nothing to say.
CREATE TABLE timeball.queue (
    name      text PRIMARY KEY CHECK (name <> '' AND octet_length(name) <= 256),
    paused_at timestamptz,
    paused_by text,
    max_depth integer CHECK (max_depth BETWEEN 1 AND 1000000),
    CONSTRAINT queue_pause CHECK ((paused_at IS NULL) = (paused_by IS NULL))
);

-- Facts about a job, one row each, never changed.
CREATE TABLE timeball.job (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid         uuid NOT NULL UNIQUE,
    lane         integer NOT NULL,
    kind         text NOT NULL,
    args         jsonb NOT NULL,
    max_retries  integer NOT NULL CHECK (max_retries >= 0),
    max_crashes  integer NOT NULL CHECK (max_crashes >= 1),
    at_most_once boolean NOT NULL,
    timeout_s    double precision CHECK (timeout_s > 0),
    run_at       timestamptz,
    expires_at   timestamptz,  -- if it has not begun by then, it is skipped
    unique_key    text,        -- whose row in unique_key it took
    until_started boolean,
    key          text CHECK (key <> '' AND octet_length(key) <= 256),
    ruled_out    text CHECK (ruled_out IN ('skip', 'fail', 'run')),  -- null: it has no parents
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    created_at   timestamptz NOT NULL DEFAULT timeball.now(),
    CONSTRAINT job_callback CHECK (  -- it waits for a call alone, and not for ever
        kind <> 'timeball.callback' OR expires_at IS NOT NULL
        AND num_nonnulls(run_at, key, ruled_out) = 0)
);
CREATE INDEX job_batch ON timeball.job (id) WHERE kind = 'timeball.batch';

-- This turn of this job may start now. The counts are null for the entry that a
-- submit makes: nothing has happened to the job yet.
CREATE TABLE timeball.entry (
    lane     integer NOT NULL,
    xid      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    job_id   bigint NOT NULL,
    turn     integer NOT NULL DEFAULT 1,
    at       timestamptz NOT NULL DEFAULT timeball.clock(),
    attempts integer,
    failures integer,
    crashes  integer,
    delay_s  double precision,
    expires_at timestamptz,  -- null once the job has begun
    at_once  integer,        -- by which limit of its key it was let in; null: it has none
    lined_at timestamptz     -- since when it has waited for a rate; null: it has not
);
CREATE UNIQUE INDEX entry_order ON timeball.entry (lane, xid, job_id);
CREATE UNIQUE INDEX entry_again ON timeball.entry (job_id, turn) WHERE attempts IS NOT NULL;

-- One claimed batch of turns. The newest lease of a lane is its cursor: the window
-- between two snapshots that was being read, and how far.
CREATE TABLE timeball.lease (
    lane    integer NOT NULL,
    seq     bigint NOT NULL,
    worker  bigint,               -- null: a decision made under the lane's lock, no turns
    request uuid UNIQUE,
    floor   bigint,               -- this worker's oldest lease here that had open turns
    prev    pg_snapshot NOT NULL,
    cur     pg_snapshot NOT NULL,
    pos_xid xid8 NOT NULL,
    pos_id  bigint NOT NULL,
    job_ids bigint[] NOT NULL,
    turns   integer[] NOT NULL,
    at_once integer,              -- by which limit of its queue they were granted; null: it has none
    at      timestamptz NOT NULL DEFAULT timeball.clock(),
    PRIMARY KEY (lane, seq)
);
CREATE INDEX lease_of_worker ON timeball.lease (worker, lane, seq) WHERE worker IS NOT NULL;

-- Where a job waits, or last did, that an operator has moved from the lane it was submitted to.
-- What is not here was never moved. Its entries and `held` say it too: nothing hot asks here.
CREATE TABLE timeball.moved (
    job_id bigint PRIMARY KEY,
    lane   integer NOT NULL
);

-- How one turn ended. The key is the fence: whoever comes second is refused.
CREATE TABLE timeball.ended (
    job_id     bigint NOT NULL,
    turn       integer NOT NULL,
    event      text NOT NULL CHECK (event IN (
        'succeeded', 'failed', 'cancelled', 'skipped', 'expired',
        'retried', 'snoozed', 'released', 'lost', 'moved', 'awaited')),
    reason     text,
    began_at   timestamptz,
    ran_s      double precision,
    at         timestamptz NOT NULL DEFAULT timeball.clock(),
    worker     bigint,
    result     jsonb,
    error_type text,
    error      text,
    PRIMARY KEY (job_id, turn)
);
-- What people look for among millions that have succeeded.
CREATE INDEX ended_badly ON timeball.ended (job_id)
    WHERE event IN ('failed', 'cancelled', 'skipped', 'expired');

-- Jobs that may not start yet: the only part of a job's life that is a row which goes away.
CREATE TABLE timeball.held (
    job_id   bigint PRIMARY KEY,
    turn     integer NOT NULL,
    state    text NOT NULL CHECK (state IN ('scheduled', 'waiting', 'pending')),
    lane     integer NOT NULL,
    run_at   timestamptz,
    reason   text,
    kind     text NOT NULL,
    key      text,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    crashes  integer NOT NULL DEFAULT 0,
    delay_s  double precision NOT NULL DEFAULT 0,
    expires_at timestamptz,
    at       timestamptz NOT NULL DEFAULT timeball.now(),
    line     text COLLATE "C",  -- which limit on starts it waits for, such as kind:a
    all_left integer,  -- of a waiting job: undecided edges that must each be met
    one_left integer,  -- undecided edges of which one must be met
    one_met  boolean,  -- whether one of those has been, or there is none
    lost     boolean,  -- whether an edge that had to be met was not
    CONSTRAINT held_until CHECK ((state = 'scheduled') = (run_at IS NOT NULL)),
    CONSTRAINT held_because CHECK (state <> 'pending' OR reason IS NOT NULL),
    CONSTRAINT held_line CHECK (line IS NULL OR reason IS NOT DISTINCT FROM 'rate'),
    CONSTRAINT held_for CHECK (
        CASE WHEN state = 'waiting' THEN num_nulls(all_left, one_left, one_met, lost) = 0
        ELSE num_nonnulls(all_left, one_left, one_met, lost) = 0 END)
);
CREATE INDEX held_of_lane ON timeball.held (lane);
CREATE INDEX held_in_line ON timeball.held (line, lane, at, job_id) WHERE line IS NOT NULL;
CREATE INDEX held_due ON timeball.held (run_at, job_id) WHERE state = 'scheduled';
CREATE INDEX held_kind ON timeball.held (kind, job_id) WHERE reason = 'no_worker';
CREATE INDEX held_key ON timeball.held (key, lane, at, job_id)
    WHERE state = 'pending' AND reason = 'key';

-- What the end of one job, the parent, means for another. Decided once, whatever becomes of the
-- parent later. An edge leads from an earlier job to a later one, so that there is no cycle; only
-- a batch may be added to, by jobs that come after none but its members, and a job may wait for
-- those that it has spawned, or be told while it waits to wait for more: `check_cycle` looks at it.
CREATE TABLE timeball.dependency (
    child       bigint NOT NULL,
    parent      bigint NOT NULL,
    parent_uuid uuid NOT NULL,  -- the parent may be deleted before the child
    rule        text NOT NULL CHECK (rule IN (
        'all_success', 'all_done', 'none_failed', 'always', 'one_success', 'one_failed', 'member')),
    joins       boolean NOT NULL DEFAULT false,  -- the child is a batch: it keeps no counters
    linked_at   timestamptz,    -- from when on whoever ends the parent decides this edge
    decided_at  timestamptz,
    met         boolean,
    spawned     boolean NOT NULL DEFAULT false,  -- of the child itself
    added       boolean NOT NULL DEFAULT false,  -- while the child waited for others
    PRIMARY KEY (child, parent),
    CONSTRAINT dependency_forwards CHECK (
        parent < child OR (joins OR spawned OR added) AND parent <> child),
    CONSTRAINT dependency_decision CHECK ((decided_at IS NULL) = (met IS NULL)),
    CONSTRAINT dependency_order CHECK (decided_at IS NULL OR linked_at IS NOT NULL)
);
CREATE INDEX dependency_open ON timeball.dependency (parent, child) WHERE decided_at IS NULL;
CREATE INDEX dependency_joins ON timeball.dependency (child, parent)
    WHERE joins AND decided_at IS NULL;
CREATE INDEX dependency_member ON timeball.dependency (parent) WHERE rule = 'member';
CREATE INDEX dependency_unlinked ON timeball.dependency (child, parent) WHERE linked_at IS NULL;

-- How many jobs of a queue or a key may be under way at once, and how many of a queue, a kind or
-- a key may start in a time. A name of a key that ends in * stands for all keys that begin so.
-- Without a number, of a key one may be under way at once; the others are not limited.
CREATE TABLE timeball.limiter (
    scope     text NOT NULL CHECK (scope IN ('key', 'kind', 'queue')),
    name      text NOT NULL CHECK (name <> '' AND octet_length(name) <= 256),
    at_once   integer CHECK (at_once BETWEEN 1 AND 10000),
    starts    integer CHECK (starts > 0),
    window_us bigint CHECK (window_us > 0),
    burst     bigint CHECK (burst > 0),
    spread    boolean NOT NULL DEFAULT false,
    since     timestamptz,  -- the rate holds for turns that are granted from then on
    PRIMARY KEY (scope, name),
    CONSTRAINT limiter_limits CHECK (at_once IS NOT NULL OR starts IS NOT NULL),
    CONSTRAINT limiter_rate CHECK (
        (starts IS NULL) = (window_us IS NULL) AND (starts IS NULL) = (since IS NULL)
        AND (starts IS NOT NULL OR burst IS NULL AND NOT spread))
);
CREATE INDEX limiter_of_starts ON timeball.limiter (scope, name) WHERE starts IS NOT NULL;
CREATE INDEX limiter_of_many ON timeball.limiter (name) WHERE scope = 'key' AND name LIKE '%*';

-- A job under way that counts against a limit. The key is the promise: never more than n.
-- Of a key it is taken when the job enters its lane, of a queue when its turn is granted.
CREATE TABLE timeball.slot (
    scope  text NOT NULL CHECK (scope IN ('key', 'queue')),
    name   text NOT NULL,
    n      integer NOT NULL CHECK (n > 0),
    job_id bigint NOT NULL,
    PRIMARY KEY (scope, name, n)
);
CREATE INDEX slot_of_job ON timeball.slot (job_id);

-- The permits to start that were granted under one limit, as far as they still matter. Instants
-- are microseconds since 1970.
CREATE TABLE timeball.permit (
    name        text COLLATE "C" PRIMARY KEY,  -- such as queue:mail; of a pattern that of each key
    ids         bigint[] NOT NULL DEFAULT '{}',  -- of grants; 0 once it is known how it was used
    untils      bigint[] NOT NULL DEFAULT '{}',  -- no start by the grant is later
    counts      integer[] NOT NULL DEFAULT '{}',
    last        bigint NOT NULL DEFAULT 0,
    newest_us   bigint NOT NULL DEFAULT 0,
    bucket_full numeric NOT NULL DEFAULT 0,  -- when it is full again, times the starts of the rate
    opens_us    bigint NOT NULL DEFAULT 0,   -- before then nobody need ask
    coming      integer NOT NULL DEFAULT 0,  -- have left the line and not asked yet
    coming_until bigint NOT NULL DEFAULT 0,  -- so long these are waited for
    patience_s  integer NOT NULL DEFAULT 1   -- and those after them
) WITH (fillfactor = 50);
CREATE INDEX permit_opens ON timeball.permit (opens_us);

-- When to look whether a job with a deadline has begun.
CREATE TABLE timeball.deadline (
    job_id  bigint PRIMARY KEY,
    look_at timestamptz NOT NULL
);
CREATE INDEX deadline_due ON timeball.deadline (look_at, job_id);

-- Which job last took a unique key. It is free where that job holds it no longer.
CREATE TABLE timeball.unique_key (
    key           text PRIMARY KEY,
    job           uuid NOT NULL,
    until_started boolean NOT NULL
);
CREATE INDEX unique_key_of_job ON timeball.unique_key (job);

CREATE TABLE timeball.worker (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    kinds      text[] NOT NULL,
    queues     text[] NOT NULL,
    lease_s    double precision NOT NULL CHECK (lease_s > 0),
    beat       bigint NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT timeball.now(),
    beat_at    timestamptz NOT NULL DEFAULT timeball.now(),
    ended_at   timestamptz,
    end_reason text CHECK (end_reason IN ('expired', 'retired')),
    CONSTRAINT worker_end CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
CREATE INDEX worker_live ON timeball.worker (id) WHERE ended_at IS NULL;

CREATE TABLE timeball.schedule (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name             text NOT NULL UNIQUE,
    kind             text NOT NULL,
    expression       text NOT NULL,
    tz               text NOT NULL,
    gap              text NOT NULL CHECK (gap IN ('next_valid', 'shift', 'skip', 'prev_valid')),
    overlap          text NOT NULL CHECK (overlap IN ('first', 'second', 'both')),
    terms            jsonb NOT NULL,
    args             jsonb NOT NULL,
    queue            text NOT NULL,
    priority         smallint NOT NULL,
    max_retries      integer NOT NULL,
    max_crashes      integer NOT NULL,
    delivery         text NOT NULL CHECK (delivery IN ('at_least_once', 'at_most_once')),
    timeout_s        double precision,
    key              text,
    catchup          text NOT NULL CHECK (catchup IN ('last', 'none', 'all')),
    catchup_window_s double precision NOT NULL,
    catchup_limit    integer NOT NULL,
    grace_s          double precision NOT NULL,
    overlap_runs     text NOT NULL
        CHECK (overlap_runs IN ('allow', 'skip', 'queue_one', 'replace')),
    source           text NOT NULL,
    state            text NOT NULL DEFAULT 'active'
        CHECK (state IN ('active', 'paused', 'error', 'retired')),
    error            text,
    revision         bigint NOT NULL DEFAULT 1,
    active_from      timestamptz NOT NULL,  -- occurrences after this instant are decided
    cursor_at        timestamptz NOT NULL,  -- those up to here, inclusive, have been
    next_at          timestamptz,           -- the first that has not been
    due_at           timestamptz,           -- when it is: its instant and the jitter
    zone_version     text NOT NULL,         -- the zone data that this was computed with
    fingerprint      text NOT NULL,
    offset_s         integer NOT NULL,      -- of the wall clock at the cursor, by those data
    fired            bigint NOT NULL DEFAULT 0,
    fired_at         timestamptz,           -- the latest occurrence that has run
    last_job         uuid,
    runs             bigint[] NOT NULL DEFAULT '{}',  -- its jobs that may not have ended, in order
    queued           boolean NOT NULL DEFAULT false,  -- whether one of them waits for another
    CONSTRAINT schedule_kind CHECK (kind <> 'timeball.callback')  -- which needs a deadline
);
CREATE INDEX schedule_due ON timeball.schedule (due_at, id) WHERE state = 'active';
CREATE INDEX schedule_queued ON timeball.schedule (id) WHERE queued;

-- What was done about each occurrence. The key is the promise: never twice.
CREATE TABLE timeball.occurrence (
    schedule_id bigint NOT NULL,
    nominal_at  timestamptz NOT NULL,
    decision    text NOT NULL CHECK (decision IN ('fired', 'skipped')),
    reason      text,
    job_id      bigint,
    at          timestamptz NOT NULL DEFAULT timeball.clock(),
    PRIMARY KEY (schedule_id, nominal_at),
    CONSTRAINT occurrence_job CHECK ((decision = 'fired') = (job_id IS NOT NULL)),
    CONSTRAINT occurrence_reason CHECK (decision = 'fired' OR reason IS NOT NULL)
);

-- How far a job says that it is: the latest word of its latest attempt.
CREATE TABLE timeball.progress (
    job_id bigint PRIMARY KEY,
    turn   integer NOT NULL,
    done   double precision NOT NULL,
    total  double precision,
    note   text,
    at     timestamptz NOT NULL DEFAULT timeball.clock()
);

-- The newest lines that a job has logged.
CREATE TABLE timeball.logged (
    job_id bigint NOT NULL,
    turn   integer NOT NULL,
    n      bigint NOT NULL,
    at     timestamptz NOT NULL,
    text   text NOT NULL,
    PRIMARY KEY (job_id, turn, n)
);

-- How far deletions of jobs have come, and how many there were. At most one row.
CREATE TABLE timeball.deletion (
    id   boolean PRIMARY KEY DEFAULT true CHECK (id),
    upto bigint NOT NULL,
    jobs bigint NOT NULL
);

-- Which server the ledger was last seen on. A transaction's number means something there only,
-- and what another one has granted and not passed on is granted anew: see `move_in`. One row.
CREATE TABLE timeball.home (
    id       boolean PRIMARY KEY DEFAULT true CHECK (id),
    system   bigint NOT NULL,
    timeline integer NOT NULL,
    moves    bigint NOT NULL DEFAULT 0,
    first_seq bigint NOT NULL DEFAULT 1  -- leases from here on name transactions of this server
);
INSERT INTO timeball.home (system, timeline)
SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
FROM pg_control_system();

-- What people have changed through the dashboard and the API: who, what, from where.
CREATE TABLE timeball.operation (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT timeball.now(),
    who      text NOT NULL,  -- the name of a token, never the token
    origin   text NOT NULL,  -- the address that the request came from
    what     text NOT NULL,
    target   text NOT NULL,
    before   jsonb NOT NULL,
    after    jsonb,          -- null: it was about to happen, and nobody has said how it went
    ended_at timestamptz,
    CONSTRAINT operation_end CHECK ((after IS NULL) = (ended_at IS NULL))
);

-- Rare events that no other table records.
CREATE TABLE timeball.event (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT timeball.clock(),
    kind   text NOT NULL CHECK (kind IN (
        'stale_settlement', 'cancel_requested', 'worker_expired', 'revived', 'snoozed')),
    job_id bigint,
    turn   integer,
    worker bigint,
    detail text
);
CREATE INDEX event_of_job ON timeball.event (job_id) WHERE job_id IS NOT NULL;
CREATE UNIQUE INDEX event_request ON timeball.event (job_id, turn) WHERE kind = 'cancel_requested';
