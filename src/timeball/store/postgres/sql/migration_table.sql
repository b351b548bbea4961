-- Which parts of the schema have been applied.
CREATE TABLE IF NOT EXISTS timeball.migration (
    name       text PRIMARY KEY,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
