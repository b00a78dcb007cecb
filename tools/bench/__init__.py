"""The figures that the project shows, each from one command: ``python -m tools.bench NAME --json``."""
