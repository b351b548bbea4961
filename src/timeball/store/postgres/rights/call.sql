GRANT EXECUTE ON FUNCTION {schema}.{function} TO {roles};
