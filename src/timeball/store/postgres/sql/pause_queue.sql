-- Note that a queue is paused; no row where it was before. Claims see it once it is committed.
INSERT INTO timeball.queue (name, paused_at, paused_by)
VALUES (%(queue)s, timeball.now(), %(by)s)
ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by
WHERE queue.paused_at IS NULL
RETURNING queue.name;
