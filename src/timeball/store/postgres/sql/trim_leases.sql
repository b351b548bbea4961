-- Delete a few leases of whose jobs none is left; see the function.
SELECT o_lane, o_seq
FROM timeball.trim_leases(%(lane)s, %(seq)s, %(limit)s, %(keep_s)s::double precision);
