-- Record decisions about occurrences, add their jobs and move the cursor; see the function.
SELECT timeball.fire(
    %(schedule)s, %(revision)s, %(seen)s, %(cursor)s, %(next_at)s,
    %(nominal_at)s::timestamptz[], %(decisions)s::text[], %(reasons)s::text[],
    %(uuids)s::uuid[], %(jobs)s::jsonb);
