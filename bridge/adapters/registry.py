"""Which adapters there are, and how one is found by its name or by where its class is."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bridge.adapters.device import Device, DeviceError
from haptics.cards import CardError, DeviceCard, card_path, load_card


class Entry(NamedTuple):
    """One adapter that comes with the project."""

    where: str
    """``module:Class``."""
    text: str
    """What it is for."""
    needs: str = ""
    """The extra that has to be installed, if any."""


ADAPTERS: Mapping[str, Entry] = {
    "simulated": Entry("bridge.adapters.simulated:Simulated", "a simulated hand at a simulated mechanism"),
    "inverse": Entry("bridge.adapters.inverse:Inverse", "Haply Inverse3, through its maker's service", "inverse"),
    "force-dimension": Entry(
        "bridge.adapters.force_dimension:ForceDimension",
        "omega, delta, sigma, lambda and Falcon, through Force Dimension's library",
        "force-dimension",
    ),
    "spacemouse": Entry("bridge.adapters.spacemouse:SpaceMouse", "3Dconnexion SpaceMouse, through hidraw (input only)"),
    "gamepad": Entry("bridge.adapters.gamepad:Gamepad", "gamepad or joystick, through evdev (input only)"),
    "template": Entry("bridge.adapters.template:Template", "the one to copy: a device of one file"),
}


def find(name: str) -> type[Device]:
    """The class of an adapter: a name above, ``package.module:Class`` or ``file.py:Class``; the class may be left out
    where a module has one only. Raises DeviceError.
    """
    where = ADAPTERS[name].where if name in ADAPTERS else name
    module_name, _, class_name = where.partition(":")
    if name not in ADAPTERS and not (class_name or "." in name or "/" in name):
        raise DeviceError(f"no adapter {name!r}; there are {', '.join(ADAPTERS)}, or give MODULE:CLASS")
    module = _module(module_name)
    if class_name:
        found = getattr(module, class_name, None)
        if not (inspect.isclass(found) and issubclass(found, Device)):
            raise DeviceError(f"{module_name} has no class {class_name!r} derived from bridge.adapters.device.Device")
        return found
    own = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Device) and value.__module__ == module.__name__
    ]
    if len(own) != 1:
        raise DeviceError(f"{module_name} has {len(own)} classes derived from Device: say which, {module_name}:CLASS")
    return own[0]


def make(name: str, options: Mapping[str, str]) -> Device:
    """A device of that adapter with its options. Raises DeviceError."""
    kind = find(name)
    lacks = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
    if lacks:
        raise DeviceError(f"{name}: the class {kind.__name__} has no {lacks}; every device needs it")
    known = _parameters(kind)
    for key in options:
        if key not in known:
            raise DeviceError(f"the adapter {name} has no option {key!r}; it has {', '.join(known) or 'none'}")
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in options:
            raise DeviceError(f"the adapter {name} needs the option {key!r}: --set {key}=..., or a default for it")
    try:
        return kind(**options)
    except TypeError as error:
        raise DeviceError(f"{name}: the class {kind.__name__} cannot be made: {error}") from error


def options_of(name: str) -> dict[str, str]:
    """Options of an adapter and what they are by default, empty without a default. Raises DeviceError."""
    known = _parameters(find(name))
    return {key: "" if one.default is one.empty else str(one.default) for key, one in known.items()}


def card_file(device: Device) -> Path | None:
    """Where the card of a device is, None while it names none. Raises CardError.

    A name is looked for beside the file of the adapter's class, in `devices` and `configs/devices` there and in the
    working directory, and among the project's own cards; a path from both of these directories.
    """
    if device.card is None:
        return None
    file = getattr(sys.modules.get(type(device).__module__), "__file__", None)
    here = Path().resolve()
    own = Path(file).resolve().parent if file else here
    if device.card.endswith(".toml") or os.sep in device.card:
        files = [own / device.card, here / device.card]
    else:
        name = f"{device.card}.toml"
        files = [own / name, *(base / part / name for base in (own, here) for part in ("devices", "configs/devices"))]
    for found in files:
        if found.is_file():
            return found
    try:
        return card_path(device.card)
    except CardError as error:
        raise CardError(f"{error}; looked for in {own} and {here}, and in `devices` there") from None


def card_of(device: Device) -> DeviceCard | None:
    """The card of a device, see :func:`card_file`. Raises CardError."""
    file = card_file(device)
    return None if file is None else load_card(file)


def _parameters(kind: type[Device]) -> dict[str, inspect.Parameter]:
    """What the constructor takes by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {key: one for key, one in inspect.signature(kind).parameters.items() if one.kind in kinds}


def _module(name: str):
    path = Path(name).resolve()
    if name.endswith(".py") and not path.exists():
        raise DeviceError(f"{name} does not exist")
    try:
        if name.endswith(".py"):
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            return module
        return importlib.import_module(name)
    except (ImportError, OSError, SyntaxError) as error:
        raise DeviceError(f"{name} cannot be loaded: {error}") from None
    except Exception as error:  # of the module's own code
        raise DeviceError(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error
