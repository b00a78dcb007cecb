"""Results as a small table for a terminal, or as Markdown."""

from typing import Any

from tools.bench.common import Figure, Result


def _rows(value: Any, key: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        if value and not any(isinstance(item, dict | list) for item in value.values()):
            return [(key, "  ".join(f"{name} {item}" for name, item in value.items()))]
        return [row for name, item in value.items() for row in _rows(item, f"{key}.{name}" if key else str(name))]
    if isinstance(value, list):
        return [(key, ", ".join(str(item) for item in value))]
    return [(key, str(value))]


def render_table(name: str, result: Result) -> str:
    rows = _rows(result.figures) + _rows(result.peers, "peer")
    width = max((len(key) for key, _ in rows), default=0)
    lines = [f"{name}: {'ok' if result.ok else 'TARGET MISSED'}"]
    lines += [f"  {key:{width}s}  {text}" for key, text in rows]
    lines += [f"  note: {note}" for note in result.notes]
    return "\n".join(lines)


def render_report(figures: list[Figure], results: dict[str, Result], machine: dict[str, Any], command: str) -> str:
    """Markdown page of one run; command: what made it."""
    lines = [
        "# Results",
        "",
        f"Made by `{command}`. Absolute times on shared machines wander:",
        "compare medians, and the peers of the same run.",
        "",
        "Machine: " + ", ".join(f"{key} {value}" for key, value in machine.items()) + ".",
        "",
    ]
    for figure in figures:
        result = results[figure.name]
        lines += [
            f"## {figure.name}",
            "",
            f"{figure.summary} **{'Targets met.' if result.ok else 'A target was missed.'}**",
            "",
        ]
        lines += ["| figure | value |", "|---|---|"]
        lines += [f"| `{key}` | {text} |" for key, text in _rows(result.figures) + _rows(result.peers, "peer")]
        lines += [""] + [f"* {note}" for note in result.notes] + ([""] if result.notes else [])
    return "\n".join(lines)
