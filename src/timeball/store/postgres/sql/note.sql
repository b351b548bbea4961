-- Keep what running attempts say and return the jobs that are done with; see the function.
SELECT timeball.note(%(notes)s::jsonb);
