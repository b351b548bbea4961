-- event: move (pending -> pending)
-- Let a job that has not begun wait in another lane; see the function.
SELECT * FROM timeball.move(%(uuid)s, %(queue)s, %(priority)s);
