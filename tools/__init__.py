"""Benchmarks and independent checks, for people who work on the project. Nothing in the packages imports this."""

import bridge  # noqa: F401  first of all: it chooses where compiled kernels are kept
