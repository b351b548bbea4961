-- Drop an index; the caller puts its name where this says unfinished.
DROP INDEX CONCURRENTLY timeball.unfinished;
