"""Benchmarks and independent checks, for people who work on the project. Nothing in the packages imports this."""
