-- Remove what has died, as far as nobody may still see it.
VACUUM (ANALYZE);
