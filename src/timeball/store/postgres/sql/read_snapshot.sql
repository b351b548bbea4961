-- Let all statements of this transaction read the same snapshot.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
