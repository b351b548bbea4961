"""Cron expressions: what they mean, when they come due, and how to say it in words."""
