-- Let a schedule go on from where somebody found it; no row where it has changed meanwhile.
UPDATE timeball.schedule
SET state = 'active', error = NULL, revision = schedule.revision + 1,
    cursor_at = %(cursor_at)s, next_at = %(next_at)s, due_at = %(due_at)s,
    zone_version = %(zone_version)s, fingerprint = %(fingerprint)s,
    offset_s = %(offset_s)s
WHERE schedule.id = %(schedule)s AND schedule.revision = %(revision)s
  AND schedule.cursor_at = %(seen)s AND schedule.state IN ('paused', 'error')
RETURNING schedule.id;
