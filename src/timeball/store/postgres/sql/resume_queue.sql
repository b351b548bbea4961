-- Let turns of a paused queue be granted again; no row where it was not paused.
UPDATE timeball.queue SET paused_at = NULL, paused_by = NULL
WHERE queue.name = %(queue)s AND queue.paused_at IS NOT NULL
RETURNING queue.name;
