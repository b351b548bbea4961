-- How many turns have ended since an instant, and how many seconds after it the last one did.
SELECT count(*), coalesce(extract(epoch FROM max(ended.at) - %(since)s), 0)::double precision
FROM timeball.ended WHERE ended.at > %(since)s;
