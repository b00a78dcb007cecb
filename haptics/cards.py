"""Device cards: what is known of a device, one TOML file each. What is not known is absent, never 0."""

from __future__ import annotations

import difflib
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from haptics.certified import CertifiedRow, read_rows
from haptics.degrees import DRIVEN, SENSED
from haptics.toml_text import parse_toml

CARD_DIRECTORY = Path(__file__).resolve().parent.parent / "configs" / "devices"
"""The project's own cards, which are installed beside the packages."""


class CardError(ValueError):
    """A device card that cannot be used; the text says which file and key, and what would be right."""


LEAST_STIFFNESS = 1e-6
"""N/m: no device means less by a spring; a kilogram that hangs on it would go down by ten thousand kilometres."""

DEFAULT_AXIS = (0.0, 0.0, -1.0)
"""A handle that hangs down in its zero orientation, as tools in the configurations here do."""

_LARGEST = sys.float_info.max
"""NaN is not below it, nor an integer that no float64 holds."""

DIRECTIONS = {
    "right": (1, 0, 0),
    "left": (-1, 0, 0),
    "away": (0, 1, 0),
    "towards": (0, -1, 0),
    "up": (0, 0, 1),
    "down": (0, 0, -1),
}
"""In a frame with x to the right, y away from the person and z up."""


@dataclass(frozen=True)
class DeviceCard:
    """One device, SI units. ``None`` means that no figure is known."""

    name: str
    """Short name; the file is called so."""
    model: str
    """What it is, for people."""
    sensed: int
    """Degrees of freedom measured: 3 (position), 5 (and where the handle points) or 6 (and its roll)."""
    actuated: int
    """Degrees of freedom driven: 3 (force), 5 (and torque across the handle's axis), 6 (about it too), 0 (nothing)."""
    source: str
    """Where the figures were read."""
    conditions: str
    """Rate and hand at which stiffness and damping limits hold."""
    force_max: float | None = None
    """N, the largest force rendered, by norm; absent for an input device, and only there."""
    torque_max: float | None = None
    """N·m, the largest torque rendered, by norm; absent for a device without torque."""
    force_continuous: float | None = None
    """N, by norm: what the motors stand for ever, where force_max is a peak."""
    torque_continuous: float | None = None
    """N·m, likewise."""
    stiffness_max: float | None = None
    """N/m, largest stable closed-loop stiffness under the conditions."""
    rotational_stiffness_max: float | None = None
    """N·m/rad."""
    damping_max: float | None = None
    """N·s/m."""
    workspace_radius: float | None = None
    """m, of a sphere inside the workspace."""
    workspace_size: tuple[float, float, float] | None = None
    """m, edges along x, y and z of a box that the handle cannot leave."""
    frame: tuple[str, str, str] | None = None
    """Where x, y and z of the device frame point for the person before it: towards, away, left, right, up, down."""
    axis: tuple[float, float, float] = DEFAULT_AXIS
    """The handle's own axis from the hand ahead to the tip, unit, in handle coordinates: of roll and virtual sphere."""
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
    certified: tuple[CertifiedRow, ...] = ()
    """Limits of stable stiffness, as `hapticd certify` finds them."""

    @property
    def renders_torque(self) -> bool:
        """Whether the device can drive rotations."""
        return self.actuated >= 5 and self.torque_max is not None

    @property
    def input_only(self) -> bool:
        """Whether the device renders nothing."""
        return self.actuated == 0

    def lasting(self, force: float, torque: float, continuous: float | None = None) -> tuple[float, float]:
        """What of a force (N) and a torque (N·m) the motors stand for ever.

        ``continuous``: N, in place of the card's own figure; a torque of which the card says nothing is then taken to
        last in the same proportion.
        """
        if continuous is None:
            continuous, share = self.force_continuous, 1.0
        else:
            share = min(1.0, continuous / force) if force > 0.0 else 1.0
        lasting_torque = share * torque if self.torque_continuous is None else min(torque, self.torque_continuous)
        return force if continuous is None else min(force, continuous), lasting_torque

    def to_dict(self) -> dict[str, Any]:
        """Return the known entries as plain values, for a JSON or msgpack message."""
        known = {key: value for key, value in asdict(self).items() if value is not None and key != "certified"}
        if self.certified:
            known["certified"] = [row.to_dict() for row in self.certified]
        return known


_TEXTS = {"name", "model", "source", "conditions"}
_WHOLE = {"sensed": SENSED, "actuated": DRIVEN}
_ROWS = {"workspace_size", "frame", "axis"}
_DRIVEN_ONLY = (
    *("force_max", "torque_max", "force_continuous", "torque_continuous"),
    *("stiffness_max", "rotational_stiffness_max", "damping_max"),
)
_LARGEST_SHARE = 20.0
"""Of a peak over what lasts: one late cycle of the last line could overheat motors beyond it."""
_LIKELY: dict[str, tuple[float, str, str]] = {
    "force_max": (1000.0, "N", "mN"),
    "torque_max": (100.0, "N·m", "mN·m"),
    "workspace_radius": (5.0, "m", "mm"),
    "workspace_size": (10.0, "m", "mm"),
    "speed_max": (100.0, "m/s", "mm/s"),
    "mass": (50.0, "kg", "g"),
    "resolution": (0.01, "m", "mm"),
}
"""Key -> what no device that a hand holds goes beyond, in its unit, and the unit in which a larger figure likely is."""
_MAY_BE_ZERO = {"damping_max", "viscous_friction", "coulomb_friction", "resolution"}


def card_names(directory: Path | None = None) -> list[str]:
    """Return the names of the cards in a directory (the project's own by default), sorted."""
    found = Path(directory) if directory is not None else CARD_DIRECTORY
    return sorted(path.stem for path in found.glob("*.toml"))


def load_card(name_or_path: str | os.PathLike[str], base_directory: str | os.PathLike[str] | None = None) -> DeviceCard:
    """Load a card by path or by name, see :func:`card_path`. Raises CardError."""
    return _read(card_path(name_or_path, base_directory))


def card_path(name_or_path: str | os.PathLike[str], base_directory: str | os.PathLike[str] | None = None) -> Path:
    """Where a card is.

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
        return path
    directories = [CARD_DIRECTORY]
    if base_directory is not None:
        directories = [base / "configs" / "devices", base / "devices", *directories]
    for directory in directories:
        path = directory / f"{text}.toml"
        if path.is_file():
            return path
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
        if key != "certified":
            _check(where, key, values[key])
    try:
        rows = read_rows(where, values.get("certified", ()))
    except ValueError as error:
        raise CardError(str(error)) from None
    card = DeviceCard(
        certified=rows, **{key: _typed(key, value) for key, value in values.items() if key != "certified"}
    )
    wrong = _inconsistency(card)
    if wrong is not None:
        raise CardError(f"{where}: {wrong}")
    return card


def to_person(card: DeviceCard) -> tuple[float, float, float, float] | None:
    """Quaternion [x, y, z, w] from a card's device frame to x right, y away, z up; None when its frame is not known."""
    from scipy.spatial.transform import Rotation

    if card.frame is None:
        return None
    x, y, z, w = Rotation.from_matrix(np.array([DIRECTIONS[name] for name in card.frame]).T).as_quat(canonical=True)
    return (float(x), float(y), float(z), float(w))


def _inconsistency(card: DeviceCard) -> str | None:
    """One sentence on figures that cannot be true together; None when there are none."""
    if card.input_only:
        for key in _DRIVEN_ONLY:
            if getattr(card, key) is not None:
                return f"{key} = {getattr(card, key):g} needs actuated = 3 or more: with 0 the device is input only"
        if card.certified:
            return "certified rows need actuated = 3 or more: with 0 the device is input only"
    elif card.force_max is None:
        return f"key 'force_max' is missing; {_wanted('force_max')} is needed, unless actuated = 0"
    if card.actuated > card.sensed:
        return f"actuated = {card.actuated} must not be above sensed = {card.sensed}: what is driven must be measured"
    for key in ("torque_max", "torque_continuous", "rotational_stiffness_max"):
        if getattr(card, key) is not None and card.actuated < 5:
            return f"{key} = {getattr(card, key):g} needs actuated = 5 or 6; leave it out for a device without torque"
    trouble = _unit_trouble(card) or _lasting_trouble(card, "force", "N") or _lasting_trouble(card, "torque", "N·m")
    if trouble is not None:
        return trouble
    radius, size = card.workspace_radius, card.workspace_size
    if radius is not None and size is not None and 2.0 * radius > min(size):
        return (
            f"workspace_radius = {radius:g} m does not fit into workspace_size = {list(size)} m: its diameter is "
            f"{2.0 * radius:g} m"
        )
    return _stiffness_trouble(card)


def _unit_trouble(card: DeviceCard) -> str | None:
    """A figure that is in another unit, most surely."""
    for key, (most, unit, likely) in _LIKELY.items():
        value = getattr(card, key)
        row = value if isinstance(value, tuple) else () if value is None else (value,)
        if any(each > most for each in row):
            told = list(row) if isinstance(value, tuple) else f"{value:g}"
            return f"{key} = {told} {unit} is more than {most:g} {unit}, which no such device has: is it in {likely}?"
    return None


def _lasting_trouble(card: DeviceCard, kind: str, unit: str) -> str | None:
    """A continuous force or torque that does not go with the largest one."""
    peak, lasting = getattr(card, f"{kind}_max"), getattr(card, f"{kind}_continuous")
    if lasting is None:
        return None
    said = f"{kind}_continuous = {lasting:g} {unit}"
    if peak is None:
        return f"{said} needs {kind}_max, the largest {kind} rendered"
    if lasting > peak:
        return f"{said} must not be above {kind}_max = {peak:g} {unit}, the largest {kind} rendered"
    if peak > _LARGEST_SHARE * lasting:
        return (
            f"{said} is less than a twentieth of {kind}_max = {peak:g} {unit}: motors could overheat before it is kept"
        )
    return None


def _stiffness_trouble(card: DeviceCard) -> str | None:
    """A largest stiffness that is in other units than force and lengths, most likely."""
    force, stiffness = card.force_max, card.stiffness_max
    if stiffness is not None and stiffness < LEAST_STIFFNESS:
        return f"stiffness_max = {stiffness:g} must be at least {LEAST_STIFFNESS:g} N/m"
    if force is not None and stiffness is not None:
        if card.resolution is not None and stiffness * card.resolution > force:
            return (
                f"stiffness_max = {stiffness:g} N/m makes {stiffness * card.resolution:g} N of one encoder step "
                f"(resolution = {card.resolution:g} m), more than force_max = {force:g} N: no spring could be felt"
            )
        reach = math.inf if card.workspace_radius is None else 2.0 * card.workspace_radius
        if card.workspace_size is not None:
            reach = min(reach, math.hypot(*card.workspace_size))
        if force / stiffness > reach:
            return (
                f"stiffness_max = {stiffness:g} N/m reaches force_max = {force:g} N only after "
                f"{force / stiffness:g} m, farther than the workspace ({reach:g} m): is it in N/mm?"
            )
    torque, turning = card.torque_max, card.rotational_stiffness_max
    if torque is not None and turning is not None and torque / turning > math.pi:
        return (
            f"rotational_stiffness_max = {turning:g} N·m/rad reaches torque_max = {torque:g} N·m only after "
            f"{torque / turning:g} rad, more than half a turn"
        )
    return None


def _typed(key: str, value: Any) -> Any:
    """A checked value as the card holds it."""
    if key in _TEXTS or key in _WHOLE:
        return value
    if key == "frame":
        return tuple(value)
    if key == "axis":
        norm = math.hypot(*value)
        return tuple(float(c) / norm for c in value)
    return tuple(float(c) for c in value) if key in _ROWS else float(value)


def _read(path: Path) -> DeviceCard:
    try:
        values = parse_toml(path.read_bytes())
    except OSError as error:
        raise CardError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise CardError(f"{path}: {error}") from None
    card = card_from_dict(values, str(path))
    if card.name != path.stem:
        raise CardError(
            f"{path}: name = {card.name!r} is not that of its file, {path.stem!r}: adapter and daemon tell cards apart "
            "by name, so each file needs its own"
        )
    return card


def _check(where: str, key: str, value: Any) -> None:
    if key in _TEXTS:
        good = isinstance(value, str) and bool(value.strip())
    elif key in _WHOLE:
        good = isinstance(value, int) and not isinstance(value, bool) and value in _WHOLE[key]
    elif key in _ROWS:
        good = isinstance(value, list | tuple) and len(value) == 3 and _good_row(key, value)
    else:
        good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
        good = good and (value >= 0 if key in _MAY_BE_ZERO else value > 0)
    if not good:
        raise CardError(f"{where}: {key} = {value!r} will not do; {_wanted(key)} is needed")


def _good_row(key: str, value: Sequence[Any]) -> bool:
    if key == "frame":
        if not all(isinstance(each, str) and each in DIRECTIONS for each in value):
            return False
        (a, b, c), (d, e, f), (g, h, i) = (DIRECTIONS[each] for each in value)
        return a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) == 1
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in value):
        return False
    if not all(abs(each) <= _LARGEST for each in value):
        return False
    return abs(math.hypot(*value) - 1.0) <= 1e-3 if key == "axis" else all(each > 0 for each in value)


def _wanted(key: str) -> str:
    if key in _TEXTS:
        return "a text that is not empty"
    if key in _WHOLE:
        *some, last = _WHOLE[key]
        return f"{', '.join(str(each) for each in some)} or {last}"
    if key == "frame":
        return f"three of {', '.join(DIRECTIONS)} that are a right-handed frame"
    if key == "axis":
        return "a direction of three numbers and norm 1"
    if key in _ROWS:
        return "three finite numbers above 0"
    return "a finite number, 0 or more" if key in _MAY_BE_ZERO else "a finite number above 0"


def _hint(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
