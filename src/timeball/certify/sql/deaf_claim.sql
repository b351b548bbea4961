-- A claim as it is sent by a client that does not read its answer.
SELECT * FROM timeball.claim($1, $2, $3, '{}', '{}');
