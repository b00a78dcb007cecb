"""What `hapticd inspect` says about a mesh, a robot or a configuration, and what the daemon will do about it.

================== ================================================================================
`files.py`         which of the three a file is, by its ending
`mesh.py`          one mesh, or one round body: its figures, and what was found at its faces
`robot.py`         the links of a robot
`configuration.py` a whole scene as the daemon would start it: bodies, tool, masses, stability
`report.py`        what all of them say it in, for people and for programs
================== ================================================================================
"""

from bridge.scene.inspect.files import inspect_path
from bridge.scene.inspect.report import InspectReport

__all__ = ["InspectReport", "inspect_path"]
