"""Proof by fault injection: what is promised is broken on purpose, and the checks must see it."""
