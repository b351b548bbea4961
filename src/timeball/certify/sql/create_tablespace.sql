-- A place for databases on a disk of the harness's own; the words in braces are made by it.
CREATE TABLESPACE {name} LOCATION '{folder}';
