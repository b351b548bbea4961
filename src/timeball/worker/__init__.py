"""What a worker is made of: the loop, its supervisor, and the periodic duties."""
