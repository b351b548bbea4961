-- Return a page of what operators have changed, newest first.
SELECT operation.id, operation.at, operation.who, operation.origin, operation.what,
    operation.target, operation.before::text, operation.after::text, operation.ended_at
FROM timeball.operation
WHERE %(before_id)s::bigint IS NULL OR operation.id < %(before_id)s
ORDER BY operation.id DESC
LIMIT %(limit)s;
