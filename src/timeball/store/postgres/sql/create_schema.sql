-- Make the schema where it is missing. Nobody else may look into it by default.
CREATE SCHEMA IF NOT EXISTS timeball;
