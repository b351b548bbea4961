-- Be the schema of this version again.
ALTER FUNCTION timeball.claim_of_another RENAME TO claim;
