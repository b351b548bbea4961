-- Note that a part of the schema has been applied.
INSERT INTO timeball.migration (name, checksum) VALUES (%(name)s, %(checksum)s)
ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = now();
