-- Let this transaction read only, no longer than so many milliseconds a statement, and no table
-- from its beginning: a page of few rows must not depend on how many are expected.
SELECT set_config('transaction_read_only', 'on', true),
    set_config('statement_timeout', %(timeout_ms)s::text, true),
    set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true);
