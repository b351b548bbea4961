-- event: submit (-> scheduled, pending)
-- Add jobs and return their ids in the order of the array; see the function.
SELECT id FROM timeball.submit(%(jobs)s::jsonb);
