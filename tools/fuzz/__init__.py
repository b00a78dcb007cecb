"""Malformed messages for everything that hapticd decodes: see `python -m tools.bench fuzz`."""
