-- A database of the harness's own; the words in braces are made by it.
CREATE DATABASE {name} TEMPLATE {template};
