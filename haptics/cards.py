"""Device cards: what is known of a device, one TOML file each. What is not known is absent, never 0."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

CARD_DIRECTORY = Path(__file__).resolve().parent.parent / "configs" / "devices"
"""The project's own cards, which are installed beside the packages."""


class CardError(ValueError):
    """A device card that cannot be used; the text says which file and key, and what would be right."""


@dataclass(frozen=True)
class DeviceCard:
    """One device, SI units. ``None`` means that no figure is known."""

    name: str
    """Short name; the file is called so."""
    model: str
    """What it is, for people."""
    force_max: float
    """N, continuous, by norm."""
    sensed: int
    """Degrees of freedom measured: 3 (position) or 6 (with orientation)."""
    actuated: int
    """Degrees of freedom driven: 3 (force) or 6 (with torque)."""
    source: str
    """Where the figures were read."""
    conditions: str
    """Rate and hand at which stiffness and damping limits hold."""
    torque_max: float | None = None
    """N·m, by norm; absent for a device without torque."""
    stiffness_max: float | None = None
    """N/m, largest stable closed-loop stiffness under the conditions."""
    rotational_stiffness_max: float | None = None
    """N·m/rad."""
    damping_max: float | None = None
    """N·s/m."""
    workspace_radius: float | None = None
    """m, of a sphere inside the workspace."""
    speed_max: float | None = None
    """m/s: faster motion between two samples is taken for a fault."""
    rate: float | None = None
    """Hz, at which the limits were found."""
    mass: float | None = None
    """kg, apparent at the handle (for the simulated hand)."""
    viscous_friction: float | None = None
    """N·s/m (for the simulated hand)."""
    coulomb_friction: float | None = None
    """N (for the simulated hand)."""
    resolution: float | None = None
    """m, encoder step at the handle (for the simulated hand)."""

    @property
    def renders_torque(self) -> bool:
        """Whether the device can drive rotations."""
        return self.actuated == 6 and self.torque_max is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the known entries as plain values, for a JSON or msgpack message."""
        return {key: value for key, value in asdict(self).items() if value is not None}


_TEXTS = {"name", "model", "source", "conditions"}
_WHOLE = {"sensed", "actuated"}
_MAY_BE_ZERO = {"damping_max", "viscous_friction", "coulomb_friction", "resolution"}


def card_names(directory: Path | None = None) -> list[str]:
    """Return the names of the cards in a directory (the project's own by default), sorted."""
    found = Path(directory) if directory is not None else CARD_DIRECTORY
    return sorted(path.stem for path in found.glob("*.toml"))


def load_card(name_or_path: str | os.PathLike[str], base_directory: str | os.PathLike[str] | None = None) -> DeviceCard:
    """Load a card by path or by name.

    Looked for, in this order: the path itself (relative to ``base_directory`` when given); ``NAME.toml`` in
    ``configs/devices`` and ``devices`` beside the configuration; ``NAME.toml`` among the project's own cards. A name is
    anything without a folder or a ``.toml`` ending. Raises CardError.
    """
    text = os.fspath(name_or_path)
    base = Path(base_directory) if base_directory is not None else Path()
    if text.endswith(".toml") or os.sep in text:
        path = base / text
        if not path.is_file():
            raise CardError(f"{path}: no such device card")
        return _read(path)
    directories = [CARD_DIRECTORY]
    if base_directory is not None:
        directories = [base / "configs" / "devices", base / "devices", *directories]
    for directory in directories:
        path = directory / f"{text}.toml"
        if path.is_file():
            return _read(path)
    known = card_names()
    raise CardError(f"no device card {text!r}{_hint(text, known)}; known cards: {', '.join(known) or 'none'}")


def card_from_dict(values: dict[str, Any], where: str = "device card") -> DeviceCard:
    """Make a card from plain values, as TOML or JSON gives them; ``where`` starts the text of a CardError."""
    known = {field.name: field for field in fields(DeviceCard)}
    for key in values:
        if key not in known:
            raise CardError(f"{where}: unknown key {key!r}{_hint(key, list(known))}")
    for key, field in known.items():
        if key not in values:
            if field.default is MISSING:
                raise CardError(f"{where}: key {key!r} is missing; {_wanted(key)} is needed")
            continue
        _check(where, key, values[key])
    typed: dict[str, Any] = {
        key: value if key in _TEXTS or key in _WHOLE else float(value) for key, value in values.items()
    }
    card = DeviceCard(**typed)
    if card.actuated > card.sensed:
        raise CardError(
            f"{where}: actuated = {card.actuated} must not be above sensed = {card.sensed}: "
            f"a torque needs a measured orientation"
        )
    if card.torque_max is not None and card.actuated != 6:
        raise CardError(
            f"{where}: torque_max = {card.torque_max:g} needs actuated = 6; leave it out for a device without torque"
        )
    return card


def _read(path: Path) -> DeviceCard:
    try:
        values = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise CardError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CardError(f"{path}: is not UTF-8 text; a device card is a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise CardError(f"{path}: is not valid TOML: {error}") from error
    return card_from_dict(values, str(path))


def _check(where: str, key: str, value: Any) -> None:
    if key in _TEXTS:
        good = isinstance(value, str) and bool(value.strip())
    elif key in _WHOLE:
        good = isinstance(value, int) and not isinstance(value, bool) and value in (3, 6)
    else:
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        good = good and (value >= 0 if key in _MAY_BE_ZERO else value > 0)
    if not good:
        raise CardError(f"{where}: {key} = {value!r} will not do; {_wanted(key)} is needed")


def _wanted(key: str) -> str:
    if key in _TEXTS:
        return "a text that is not empty"
    if key in _WHOLE:
        return "3 or 6"
    return "a finite number, 0 or more" if key in _MAY_BE_ZERO else "a finite number above 0"


def _hint(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
