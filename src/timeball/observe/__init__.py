"""What people and their tools are told: numbers for Prometheus, one log line per transition."""
