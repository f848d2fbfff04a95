"""Timed cases, seeded data, other implementations to compare with, and what was recorded."""
