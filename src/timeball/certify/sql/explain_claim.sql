-- What a claim reads; it is carried out.
EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM timeball.claim(
    %(worker)s, %(limit)s, %(request)s, %(lanes)s::integer[], %(floors)s::bigint[],
    %(newest)s::bigint[], %(aging_s)s, %(permits)s::jsonb);
