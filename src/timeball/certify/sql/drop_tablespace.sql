-- Give up such a place.
DROP TABLESPACE {name};
