"""What a product is driven by: scripts that its own interpreter runs, with nothing of ours."""
