-- How many rows have died and are still there, as far as the server has counted.
SELECT coalesce(sum(pg_stat_get_dead_tuples(relation.oid)), 0)::bigint
FROM pg_class AS relation WHERE relation.relnamespace = 'timeball'::regnamespace;
