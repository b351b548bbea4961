"""The same probes for Timeball and for others, each in an environment of its own."""
