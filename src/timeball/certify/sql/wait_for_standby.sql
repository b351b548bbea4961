-- Have a primary answer no commit before a standby has it.
ALTER SYSTEM SET synchronous_standby_names = '*';
