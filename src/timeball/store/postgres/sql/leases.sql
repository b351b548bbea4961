-- Return which of some leases there are, and are this worker's.
SELECT lease.lane, lease.seq
FROM unnest(%(lanes)s::integer[], %(seqs)s::bigint[]) AS asked (lane, seq)
JOIN timeball.lease ON lease.lane = asked.lane AND lease.seq = asked.seq
WHERE lease.worker = %(worker)s;
