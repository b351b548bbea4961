GRANT {rights} ON {schema}.{table} TO {roles};
