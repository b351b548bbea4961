-- Return those of some jobs that have not ended, in the order given.
CREATE OR REPLACE FUNCTION timeball.open_runs(p_jobs bigint[]) RETURNS bigint[] LANGUAGE sql STABLE
AS $function$
SELECT array(
    SELECT run.id FROM unnest(p_jobs) WITH ORDINALITY AS run (id, n)
    WHERE NOT timeball.has_ended(run.id)
    ORDER BY run.n);
$function$;
