-- event: move (pending -> pending)
-- Settle the ledger on the server it is on now; see the function.
SELECT timeball.move_in();
