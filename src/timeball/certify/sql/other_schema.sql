-- Be the schema of a version that lacks what this one calls.
ALTER FUNCTION timeball.claim RENAME TO claim_of_another;
