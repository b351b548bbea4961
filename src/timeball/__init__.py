"""A job scheduler that runs jobs once, on time, and can prove it."""
