-- The name of this database.
SELECT current_database()::text;
