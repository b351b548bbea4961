-- Record what an operator's change came to.
UPDATE timeball.operation
SET after = %(after)s::jsonb, ended_at = timeball.now()
WHERE operation.id = %(id)s;
