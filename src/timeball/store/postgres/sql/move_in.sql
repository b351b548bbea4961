-- event: move, cancel (pending -> pending, cancelled)
-- Settle the ledger on the server it is on now; see the function.
SELECT timeball.move_in();
