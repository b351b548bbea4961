-- Return whether the schema was ever migrated.
SELECT to_regclass('timeball.migration') IS NOT NULL;
