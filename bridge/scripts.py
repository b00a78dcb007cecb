"""Scripts for hands: a TOML file of steps, and optionally how the hand is and what it is to achieve.

[hand]                 # absent: the poses are followed exactly, whatever is felt
grip = "held"          # held or light
shift = 0.0003         # m: how wrong the hand is about places
turn_deg = 0.5         # and about how things are turned
sway = 0.0001          # m: it wavers by so much
seed = 1               # chooses the directions
delay_ticks = 1        # by which a force reaches it late

[[step]]
to = [0.0, 0.0, 0.1]   # m, tip centre in the scene; or by = [...], from where the tool is when the step begins
seconds = 1.5
orientation = [0.0, 0.0, 0.0, 1.0]  # tool to scene; or turn_deg = [0.0, 0.0, 720.0], from how the hand is turned
until_force = 1.5      # N: ends earlier, when a force against its direction is felt
until_moved = 0.001    # m: ends earlier, when the tool has gone so far
search = 0.0005        # m: feels about, in a spiral of this radius

[[goal]]               # in order; the last one, and those with at_end, hold at the end
what = "on the floor of the hole"
position = [0.0, 0.0, 0.0]
within = [0.0002, 0.0002, 0.0003]   # m, along the axes of the scene
orientation = [0.0, 0.0, 0.0, 1.0]
within_deg = 2.0
body = "lid"           # of this body, in place of the tool
at_end = true

[[ratio]]              # all the while that forces are on a body turns by so much as another one turns by 1
what = "the wheel follows the pinion"
body = "wheel"
to = "pinion"          # absent: the tool
axis = [0.0, 0.0, 1.0] # of both, scene
ratio = -0.5
within_deg = 1.0       # play: by how much it may be off, from the least to the largest
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridge.recordings import RecordingError
from haptics.guided import Misjudgement, Step
from haptics.toml_text import parse_toml

STEP_KEYS = ("to", "by", "seconds", "orientation", "turn_deg", "until_force", "until_moved", "search")
GUIDED_KEYS = ("by", "turn_deg", "until_force", "until_moved", "search")
"""Of a step; only a hand that feels can follow them."""
HAND_KEYS = ("grip", "shift", "turn_deg", "sway", "seed", "delay_ticks")
GOAL_KEYS = ("what", "position", "within", "orientation", "within_deg", "body", "at_end")
RATIO_KEYS = ("what", "body", "axis", "ratio", "within_deg", "to")
HAND_GRIPS = ("held", "light")


@dataclass(frozen=True)
class HandTraits:
    """How a scripted hand that feels is."""

    grip: str = "held"
    misjudgement: Misjudgement = field(default_factory=Misjudgement)
    delay_ticks: int = 0


@dataclass(frozen=True)
class Goal:
    """Where the tool, or a body, is to be."""

    what: str
    position: np.ndarray
    """(3,) m, of the tip centre, or of the body's frame."""
    within: np.ndarray
    """(3,) m, along the axes of the scene."""
    orientation: np.ndarray | None = None
    """(4,) xyzw"""
    within_deg: float = 180.0
    body: str | None = None
    at_end: bool = False
    """Of a goal before the last one: it holds at the end too."""


@dataclass(frozen=True)
class Ratio:
    """That a body turns as another one, or the tool, does, times a ratio."""

    what: str
    body: str
    axis: np.ndarray
    """(3,) unit, of both, scene"""
    ratio: float
    within: float
    """rad: largest difference of what the body is ahead of that, over the whole run"""
    to: str | None = None
    """Of this body, in place of the tool."""


@dataclass(frozen=True)
class Script:
    """What a file says."""

    steps: list[Step]
    hand: HandTraits | None = None
    """None: poses are followed exactly."""
    goals: list[Goal] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)


def read_script(path: str | Path) -> Script:
    """Read a script; RecordingError, with the file and the place, when it cannot be one."""
    path = Path(path)
    try:
        content = parse_toml(path.read_bytes())
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; a script is a TOML or CSV file") from None
    except ValueError as error:
        raise RecordingError(f"{path}: not a TOML file: it {error}") from None
    steps = content.get("step")
    if not set(content) <= {"step", "hand", "goal", "ratio"} or not isinstance(steps, list) or not steps:
        raise RecordingError(
            f"{path}: a script is a list of tables [[step]], with [hand], [[goal]] and [[ratio]] where wanted, "
            f"and nothing else, not {sorted(content)}"
        )
    hand = _hand(f"{path}, hand", content["hand"]) if "hand" in content else None
    return Script(
        [_step(f"{path}, step {number}", step, hand is not None) for number, step in enumerate(steps, 1)],
        hand,
        [_goal(f"{path}, goal {number}", goal) for number, goal in enumerate(_tables(path, content, "goal"), 1)],
        [_ratio(f"{path}, ratio {number}", ratio) for number, ratio in enumerate(_tables(path, content, "ratio"), 1)],
    )


def _tables(path: Path, content: dict[str, Any], key: str) -> list[Any]:
    tables = content.get(key, [])
    if not isinstance(tables, list):
        raise RecordingError(f"{path}: {key}s are tables [[{key}]], not {tables!r:.60}")
    return tables


def _hand(where: str, table: Any) -> HandTraits:
    _known(where, table, HAND_KEYS)
    grip = table.get("grip", "held")
    if grip not in HAND_GRIPS:
        raise RecordingError(f"{where}: `grip` is one of {', '.join(HAND_GRIPS)}, not {grip!r}")
    whole = {key: table.get(key, 0) for key in ("seed", "delay_ticks")}
    for key, value in whole.items():
        if type(value) is not int or not 0 <= value < 1000:
            raise RecordingError(f"{where}: `{key}` must be a whole number from 0 to 999, not {value!r}")
    shift, turn, sway = (_number(where, key, table.get(key, 0), 0.0) for key in ("shift", "turn_deg", "sway"))
    return HandTraits(grip, Misjudgement(shift, math.radians(turn), sway, whole["seed"]), whole["delay_ticks"])


def _step(where: str, table: Any, feels: bool) -> Step:
    _known(where, table, STEP_KEYS)
    seconds = table.get("seconds")
    if type(seconds) not in (int, float) or not 0 < seconds < 1e5:
        raise RecordingError(f"{where}: `seconds` must be a positive number, not {seconds!r}")
    guided = [key for key in GUIDED_KEYS if key in table]
    if guided and not feels:
        raise RecordingError(f"{where}: `{guided[0]}` needs a hand that feels: a table [hand] in the script")
    for one, other in (("to", "by"), ("orientation", "turn_deg")):
        if one in table and other in table:
            raise RecordingError(f"{where}: either `{one}` or `{other}`, not both")
    turn = _numbers(where, "turn_deg", table["turn_deg"], 3) if "turn_deg" in table else None
    limits = {key: _number(where, key, table[key], 0.0) for key in ("until_force", "until_moved") if key in table}
    return Step(
        float(seconds),
        to=_numbers(where, "to", table["to"], 3) if "to" in table else None,
        by=_numbers(where, "by", table["by"], 3) if "by" in table else None,
        orientation=_quaternion(where, table["orientation"]) if "orientation" in table else None,
        turn=None if turn is None else np.radians(turn),
        until_force=limits.get("until_force"),
        until_moved=limits.get("until_moved"),
        search=_number(where, "search", table.get("search", 0), 0.0),
    )


def _goal(where: str, table: Any) -> Goal:
    _known(where, table, GOAL_KEYS)
    for key in ("what", "position", "within"):
        if key not in table:
            raise RecordingError(f"{where}: `{key}` is missing")
    if ("orientation" in table) != ("within_deg" in table):
        raise RecordingError(f"{where}: `orientation` and `within_deg` belong together")
    within = _numbers(where, "within", table["within"], 3)
    if within.min() <= 0.0:
        raise RecordingError(f"{where}: `within` must be above 0, not {table['within']!r}")
    at_end = table.get("at_end", False)
    if type(at_end) is not bool:
        raise RecordingError(f"{where}: `at_end` must be true or false, not {at_end!r}")
    return Goal(
        str(table["what"]),
        _numbers(where, "position", table["position"], 3),
        within,
        _quaternion(where, table["orientation"]) if "orientation" in table else None,
        _number(where, "within_deg", table.get("within_deg", 180.0), 0.0),
        table.get("body"),
        at_end,
    )


def _ratio(where: str, table: Any) -> Ratio:
    _known(where, table, RATIO_KEYS)
    for key in RATIO_KEYS[:-1]:
        if key not in table:
            raise RecordingError(f"{where}: `{key}` is missing")
    axis = _numbers(where, "axis", table["axis"], 3)
    if not np.linalg.norm(axis) > 0.0:
        raise RecordingError(f"{where}: `axis` must have a length, not {table['axis']!r}")
    ratio = _numbers(where, "ratio", [table["ratio"]], 1)
    within = math.radians(_number(where, "within_deg", table["within_deg"], 0.0))
    to = table.get("to")
    return Ratio(str(table["what"]), table["body"], axis / np.linalg.norm(axis), float(ratio[0]), within, to)


def _known(where: str, table: Any, keys: tuple[str, ...]) -> None:
    unknown = set(table) - set(keys) if isinstance(table, dict) else {"not a table"}
    if unknown:
        raise RecordingError(f"{where}: {', '.join(sorted(unknown))} is not known; keys are {', '.join(keys)}")


def _quaternion(where: str, value: Any) -> np.ndarray:
    orientation = _numbers(where, "orientation", value, 4)
    norm = float(np.linalg.norm(orientation))
    if abs(norm - 1) > 1e-3:
        raise RecordingError(f"{where}: `orientation` has norm {norm:g}; a unit quaternion [x, y, z, w] is needed")
    return orientation / norm


def _number(where: str, key: str, value: Any, least: float) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value < least:
        raise RecordingError(f"{where}: `{key}` must be a finite number, {least:g} or more, not {value!r}")
    return float(value)


def _numbers(where: str, key: str, value: Any, count: int) -> np.ndarray:
    good = isinstance(value, list) and len(value) == count and all(type(x) in (int, float) for x in value)
    if not good or not all(math.isfinite(x) for x in value):
        raise RecordingError(f"{where}: `{key}` must be {count} finite numbers, not {value!r:.60}")
    return np.array(value, dtype=float)
