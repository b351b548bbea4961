-- Clear away what many rows that were deleted have left, for a scan looks at it.
VACUUM;
