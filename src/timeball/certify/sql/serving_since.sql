-- Since when the server has served; also where it has only begun anew after the death of a process.
SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer';
