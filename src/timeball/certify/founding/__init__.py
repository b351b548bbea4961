"""The scenarios of the founding exercise: the classic defects, each forced and seen."""
