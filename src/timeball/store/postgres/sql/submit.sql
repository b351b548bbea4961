-- event: submit (-> scheduled, waiting, pending)
-- Add jobs; return the id and uuid of each in the order of the array; see the function.
SELECT id, uuid FROM timeball.submit(%(jobs)s::jsonb);
