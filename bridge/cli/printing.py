"""Answers of commands: as JSON for programs, as indented lines for people."""

import json
from typing import Any


def print_json(value: Any) -> None:
    """Print a value; numpy arrays become lists, and what has a ``to_dict`` becomes a map."""
    print(json.dumps(value, indent=2, default=_plain, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (set, tuple)):
        return list(value)
    return str(value)


def print_map(values: dict[str, Any], indent: str = "") -> None:
    """Print a map for people: one entry a line, maps inside indented below their names."""
    values = {printable(str(key)): value for key, value in values.items()}
    width = max((len(key) for key in values), default=0)
    for key, value in values.items():
        if isinstance(value, dict):
            print(f"{indent}{key.replace('_', ' ')}")
            print_map(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            print(f"{indent}{key.replace('_', ' ')}")
            for entry in value:
                print(f"{indent}  {_human(entry)}")
        else:
            print(f"{indent}{key.replace('_', ' '):<{width}}  {_human(value)}")


def _human(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{printable(str(k))} {_human(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(_human(v) for v in value)
    return printable(str(value))


def printable(text: str) -> str:
    """The text, with an escape in place of each character that a terminal would obey instead of showing it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
