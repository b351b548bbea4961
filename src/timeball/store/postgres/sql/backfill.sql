-- Fire past occurrences of a schedule that have not fired; see the function.
SELECT timeball.backfill(
    %(schedule)s, %(revision)s, %(nominal_at)s::timestamptz[], %(uuids)s::uuid[], %(jobs)s::jsonb);
