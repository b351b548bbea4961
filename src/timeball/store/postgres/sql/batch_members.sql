-- Return a batch, the batches in it and their jobs, by id; see the function.
SELECT id, uuid, kind, state, turn, reason, ruled_out, name, edges, attempts,
    spawned, queue, key
FROM timeball.batch_members(timeball.batch_id(%(batch)s)) ORDER BY id;
