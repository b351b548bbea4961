-- Whether a standby shows all up to there.
SELECT pg_last_wal_replay_lsn() >= %(end)s::pg_lsn;
