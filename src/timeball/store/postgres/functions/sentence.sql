-- Return what follows for a child from what it still waits for, as in core/dependencies.py: wait,
-- release, skip or fail.
CREATE OR REPLACE FUNCTION timeball.sentence(
    p_all_left integer, p_one_left integer, p_one_met boolean, p_lost boolean, p_ruled_out text
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN p_lost OR NOT p_one_met AND p_one_left = 0 THEN
        CASE WHEN p_ruled_out IS DISTINCT FROM 'run' THEN coalesce(p_ruled_out, 'skip')
            WHEN p_all_left + p_one_left > 0 THEN 'wait' ELSE 'release' END
    WHEN p_one_met AND p_all_left = 0 THEN 'release'
    ELSE 'wait'
END;
