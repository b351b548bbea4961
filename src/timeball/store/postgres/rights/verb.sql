ALTER FUNCTION {schema}.{verb} SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
