-- Set beyond how many pending and held jobs a queue takes no more; null: no limit.
INSERT INTO timeball.queue (name, max_depth) VALUES (%(queue)s, %(max_depth)s)
ON CONFLICT (name) DO UPDATE SET max_depth = excluded.max_depth;
