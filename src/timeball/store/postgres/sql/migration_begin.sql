-- Let one migration run at a time, functions call those that are made after them, and no claim
-- wait for long behind a lock that this transaction waits for.
SELECT pg_advisory_xact_lock(8388358978346380396), set_config('check_function_bodies', 'off', true),
    set_config('lock_timeout', '1s', true);
