-- Drop a database of the harness's own, whoever is still in it.
DROP DATABASE IF EXISTS {name} WITH (FORCE);
