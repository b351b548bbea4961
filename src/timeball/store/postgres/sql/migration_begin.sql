-- Let one migration run at a time, and functions call those that are made after them.
SELECT pg_advisory_xact_lock(8388358978346380396), set_config('check_function_bodies', 'off', true);
