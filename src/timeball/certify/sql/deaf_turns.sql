-- What a worker asks for after a claim, by a client that does not read the answer.
SELECT * FROM timeball.lease_turns($1, $2, $3);
