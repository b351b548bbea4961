-- Return the tables of the schema with how many rows of them are alive and dead, as was counted.
SELECT stat.relname, stat.n_live_tup, stat.n_dead_tup
FROM pg_class AS home
JOIN pg_class AS class ON class.relnamespace = home.relnamespace AND class.relkind = 'r'
JOIN pg_stat_all_tables AS stat ON stat.relid = class.oid
WHERE home.oid = to_regclass('timeball.job')
ORDER BY stat.n_dead_tup DESC LIMIT %(most)s;
