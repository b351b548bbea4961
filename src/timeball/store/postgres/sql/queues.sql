-- Return every queue, by name; see the function.
SELECT * FROM timeball.view_queues(%(most)s);
