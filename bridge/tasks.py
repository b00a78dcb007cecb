"""The task scenes: what there are, and where their files stand.

A task is a configuration (configs/NAME.toml), a hand (configs/scripts/NAME.toml), and goals that stand in the script.
What became of a run is judged in :mod:`bridge.task_check`.
"""

from pathlib import Path

CONFIGS = Path(__file__).resolve().parent.parent / "configs"

TASKS = {
    "peg": "a peg finds its hole of 0.1 mm clearance, and comes out again",
    "door": "a car door is placed into its opening by touch",
    "motor": "a motor is taken out of a door through an opening, with turns",
    "bolt": "a bolt is screwed out of its thread",
    "stack": "a stack of free boxes is pushed along a table, and stays standing",
    "box_on_box": "a box in the hand is pressed onto a free one, and drags it along",
    "gears": "a bar in the hand turns a gear, which turns another one, by their teeth",
}
"""By name, what the hand does."""

TELEOP = "teleop"
SCENES = {**TASKS, TELEOP: "two hands feel each other through a link that delays and loses (bridge.demo_link)"}
"""All that can be shown by name, what two hands do together included."""


YAWS_DEG = {"door": 110.0}
"""From where the picture of a task is taken, around the vertical, where the view that shows most is not the best."""


def config_of(task: str) -> Path:
    """The configuration of a task."""
    return CONFIGS / f"{task}.toml"


def script_of(task: str) -> Path:
    """The script of its hand."""
    return CONFIGS / "scripts" / f"{task}.toml"
