"""PAIRS: every two verbs of the store, in every order of their statements."""
