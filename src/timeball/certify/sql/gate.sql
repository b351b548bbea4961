-- Keep all others from reading a table until the transaction ends.
LOCK TABLE timeball.{table} IN ACCESS EXCLUSIVE MODE;
