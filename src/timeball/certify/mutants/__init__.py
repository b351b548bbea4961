"""Defects to put into the product on purpose, each with the check that must see it."""
