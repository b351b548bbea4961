-- Let jobs of some keys into their lanes where there is room; see the function.
SELECT timeball.admit_keys(%(keys)s::text[], %(limit)s);
