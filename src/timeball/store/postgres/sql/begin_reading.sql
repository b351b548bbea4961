-- Let this transaction read only, and no longer than so many milliseconds a statement.
SELECT set_config('transaction_read_only', 'on', true),
    set_config('statement_timeout', %(timeout_ms)s::text, true);
