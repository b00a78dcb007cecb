"""PyBullet without its build banner."""

import os
import sys
from types import ModuleType


def import_pybullet() -> ModuleType:
    """Import pybullet without the line that it prints from C, so that programs can read what we print."""
    loaded = sys.modules.get("pybullet")
    if loaded is not None:
        return loaded
    sys.stdout.flush()
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_WRONLY)
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        import pybullet
    finally:
        for descriptor, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nothing)
    return pybullet
