-- Have the database's clock be a row, so that all sessions see it turn at the same instant.
CREATE TABLE public.certify_clock (at timestamptz NOT NULL);
INSERT INTO public.certify_clock VALUES (clock_timestamp());
CREATE OR REPLACE FUNCTION timeball.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT certify_clock.at FROM public.certify_clock);
CREATE OR REPLACE FUNCTION timeball.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (SELECT certify_clock.at FROM public.certify_clock);
