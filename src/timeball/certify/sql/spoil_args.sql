-- Have the arguments of a job be what no worker can decode.
UPDATE timeball.job SET args = '[1]' WHERE job.uuid = %(job)s;
