"""What a kind is: a Python function, a command."""
