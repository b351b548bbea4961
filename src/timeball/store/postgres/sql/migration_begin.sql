-- Let functions call those that are made after them, and no claim wait for long behind a lock that
-- this transaction waits for. Under READ COMMITTED it keeps no snapshot while an index is built
-- beside it, which waits for those that are older; that may take hours.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT set_config('check_function_bodies', 'off', true), set_config('lock_timeout', '100ms', true),
    set_config('idle_in_transaction_session_timeout', '0', true);
