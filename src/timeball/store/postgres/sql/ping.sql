-- Make one round trip.
SELECT 1;
