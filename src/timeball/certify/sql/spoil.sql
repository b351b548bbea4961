-- Write arguments that no client would.
UPDATE timeball.job SET args = %(args)s::jsonb WHERE uuid = %(job)s;
