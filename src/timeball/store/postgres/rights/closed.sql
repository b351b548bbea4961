-- PostgreSQL lets everybody call a new function: here nobody may who was not named.
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;
