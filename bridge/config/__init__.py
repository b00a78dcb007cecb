"""Configuration: TOML validated by pydantic. Unknown keys are errors; paths are relative to the file.

============== =========================================================================
`section.py`   what sections have in common: their base, types of values, poses
`shape.py`     what a body or a tool is made of
`body.py`      a body of the scene
`scene.py`     the scene with its bodies, regions and fixtures
`touch.py`     tool, coupling and workspace
`daemon.py`    safety, device, budget, rates and log
`sockets.py`   where clients connect, who gets in, what an address is
`link.py`      a link to another end
`whole.py`     all sections together, and what they ask of one another
`load.py`      reading a file
`problems.py`  what is wrong, in words
============== =========================================================================
"""

from bridge.config.body import Body, Surface
from bridge.config.daemon import Budget, Rates, Safety
from bridge.config.link import Link
from bridge.config.load import ConfigError, json_schema, load_config, parse_config, validate_config
from bridge.config.scene import Fixture, Scene
from bridge.config.shape import LARGEST_MASS, LEAST_MASS, ROUNDED, Shape
from bridge.config.sockets import Access, Sockets
from bridge.config.touch import FRACTIONS, Coupling
from bridge.config.whole import Config

__all__ = [
    "FRACTIONS",
    "LARGEST_MASS",
    "LEAST_MASS",
    "ROUNDED",
    "Access",
    "Body",
    "Budget",
    "Config",
    "ConfigError",
    "Coupling",
    "Fixture",
    "Link",
    "Rates",
    "Safety",
    "Scene",
    "Shape",
    "Sockets",
    "Surface",
    "json_schema",
    "load_config",
    "parse_config",
    "validate_config",
]
