-- Which parts of the schema have been applied.
CREATE TABLE IF NOT EXISTS timeball.migration (
    name       text PRIMARY KEY,
    checksum   text NOT NULL,
    program    text NOT NULL DEFAULT '',  -- the version that applied it
    applied_at timestamptz NOT NULL DEFAULT now()
);
