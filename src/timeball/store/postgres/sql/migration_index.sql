-- Return whether an index is whole, or was left behind unfinished; no row where there is none.
SELECT index.indisvalid FROM pg_index AS index
WHERE index.indexrelid = to_regclass('timeball.' || %(index)s);
