-- event: claim, lapse (pending -> running, skipped)
-- Grant turns by appending one lease; return its key, or nulls; see the function.
SELECT o_lane, o_seq, o_again
FROM timeball.claim(
    %(worker)s, %(limit)s, %(request)s, %(lanes)s::integer[], %(floors)s::bigint[],
    %(newest)s::bigint[], %(aging_s)s, %(permits)s::jsonb);
