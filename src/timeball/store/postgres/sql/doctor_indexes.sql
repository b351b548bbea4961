-- Return every index of the schema, and whether it is whole.
SELECT class.relname, index.indisvalid AND index.indisready
FROM pg_class AS home
JOIN pg_class AS class ON class.relnamespace = home.relnamespace AND class.relkind = 'i'
JOIN pg_index AS index ON index.indexrelid = class.oid
WHERE home.oid = to_regclass('timeball.job');
