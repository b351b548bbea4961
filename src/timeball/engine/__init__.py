"""How attempts run in this process: slots, threads and one event loop."""
