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


HEAD = """# Results

Each table says what made it, where and from which version. Absolute times on shared machines wander: compare medians,
and the peers of the same run."""


def sections(page: str) -> dict[str, str]:
    """The tables of a page by the names of their figures."""
    return {text.split("\n", 1)[0].strip(): f"## {text.strip()}" for text in page.split("\n## ")[1:]}


def render_report(
    figures: list[Figure], results: dict[str, Result], machine: dict[str, Any], command: str, before: str = ""
) -> str:
    """Markdown page with the tables of one run.

    command: what made it, with the version; before: the page as it was, whose tables of other figures stay.
    """
    tables = sections(before)
    for figure in figures:
        tables[figure.name] = _section(figure, results[figure.name], machine, command)
    return "\n\n".join([HEAD, *tables.values()]) + "\n"


def _section(figure: Figure, result: Result, machine: dict[str, Any], command: str) -> str:
    where = ", ".join(f"{key} {value}" for key, value in machine.items())
    lines = [
        f"## {figure.name}",
        "",
        f"{figure.summary} **{'Targets met.' if result.ok else 'A target was missed.'}**",
        "",
        f"Made by {command}. Machine: {where}.",
        "",
        "| figure | value |",
        "|---|---|",
    ]
    lines += [f"| `{key}` | {text} |" for key, text in _rows(result.figures) + _rows(result.peers, "peer")]
    if result.notes:
        lines += ["", *(f"* {note}" for note in result.notes)]
    return "\n".join(lines)
