-- Note that a part of the schema has been applied.
INSERT INTO timeball.migration (name, checksum, program)
VALUES (%(name)s, %(checksum)s, %(program)s)
ON CONFLICT (name) DO UPDATE
SET checksum = excluded.checksum, program = excluded.program, applied_at = now();
