-- Set the virtual clock.
UPDATE public.certify_clock SET at = %(at)s;
