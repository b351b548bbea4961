-- Record decisions about occurrences, add their jobs and move the cursors; see the function.
SELECT n, jobs FROM timeball.fire(
    %(schedules)s::bigint[], %(revisions)s::bigint[], %(seen)s::timestamptz[],
    %(cursors)s::timestamptz[], %(nexts)s::timestamptz[], %(dues)s::timestamptz[],
    %(versions)s::text[], %(prints)s::text[],
    %(of)s::integer[], %(nominal_at)s::timestamptz[], %(decisions)s::text[],
    %(reasons)s::text[], %(uuids)s::uuid[], %(jobs)s::jsonb);
