-- A server of our own whose data nobody needs again.
ALTER SYSTEM SET {setting};
