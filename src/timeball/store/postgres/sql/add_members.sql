-- event: submit (-> scheduled, waiting, pending)
-- Add jobs to a batch that has not ended; return their ids. See the function.
SELECT id, uuid FROM timeball.add_members(%(batch)s, %(jobs)s::jsonb);
