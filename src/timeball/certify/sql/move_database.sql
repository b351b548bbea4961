-- Move a database there, in which nobody is.
ALTER DATABASE {name} SET TABLESPACE {place};
