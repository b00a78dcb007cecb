"""Where the files that a configuration names are."""

import importlib.util
from pathlib import Path

PYBULLET_DATA = "pybullet_data:"
"""Prefix of a file shipped with pybullet."""


def pybullet_data_directory() -> Path:
    """The folder of the files shipped with pybullet, found without importing it."""
    spec = importlib.util.find_spec("pybullet_data")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pybullet_data is not installed (pip install pybullet)")
    return Path(spec.origin).parent


def resolve(name: str, base_directory: str | Path = ".") -> Path:
    """The path of a file named in a configuration: ``pybullet_data:...``, absolute, ``~/...`` or relative to
    ``base_directory``."""
    if name.startswith(PYBULLET_DATA):
        return pybullet_data_directory() / name[len(PYBULLET_DATA) :]
    path = Path(name).expanduser()
    return path if path.is_absolute() else Path(base_directory) / path
