-- Return which parts of the schema have been applied, and their checksums.
SELECT migration.name, migration.checksum FROM timeball.migration;
