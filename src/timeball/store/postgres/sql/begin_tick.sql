-- Return the clock. Whoever then stands still for long loses what he takes in this transaction.
SELECT timeball.now(), set_config('idle_in_transaction_session_timeout', '15000', true);
