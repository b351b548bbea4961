-- Return which parts of the schema have been applied, their checksums, and by which version.
SELECT migration.name, migration.checksum, migration.program FROM timeball.migration;
