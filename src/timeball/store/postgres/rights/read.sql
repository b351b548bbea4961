GRANT SELECT ON {schema}.{table} TO {roles};
