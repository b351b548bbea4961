-- Grant permits to start, after noting what became of earlier ones; see the function.
SELECT timeball.permits(%(asks)s::jsonb, %(spent)s::jsonb);
