"""Slow and simple judges of collision queries that share no code with what they judge."""
