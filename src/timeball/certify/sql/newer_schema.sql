-- Be the schema of a later version that fits the one before it too.
ALTER TABLE timeball.job ADD COLUMN made_up integer;
CREATE INDEX made_up ON timeball.job (made_up);
