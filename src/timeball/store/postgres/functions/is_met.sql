-- Return whether the end of a parent meets the rule of an edge, as in core/dependencies.py; the
-- event is gone where the parent was deleted before anybody could look.
CREATE OR REPLACE FUNCTION timeball.is_met(p_rule text, p_event text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_rule
    WHEN 'all_success' THEN p_event = 'succeeded'
    WHEN 'member' THEN p_event = 'succeeded'
    WHEN 'one_success' THEN p_event = 'succeeded'
    WHEN 'none_failed' THEN p_event IN ('succeeded', 'skipped', 'expired')
    WHEN 'one_failed' THEN p_event IN ('failed', 'cancelled')
    ELSE true
END;
