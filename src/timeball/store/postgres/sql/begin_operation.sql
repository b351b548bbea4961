-- Record that an operator is about to change something; return the record's number.
INSERT INTO timeball.operation (who, origin, what, target, before)
VALUES (%(who)s, %(origin)s, %(what)s, %(target)s, %(before)s::jsonb)
RETURNING operation.id;
