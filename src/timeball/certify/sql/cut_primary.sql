-- Have a standby follow nobody.
ALTER SYSTEM SET primary_conninfo = '';
