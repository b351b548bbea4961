-- What an earlier version gave goes first, so that what follows is the whole truth.
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {roles};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {roles};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM {roles};
REVOKE ALL ON SCHEMA {schema} FROM {roles};
GRANT USAGE ON SCHEMA {schema} TO {roles};
