"""``python -m tools.bench NAME [NAME ...] [options] [--json]``; ``--list`` names the figures."""

import argparse
import importlib
import json
import sys
from pathlib import Path

from tools.bench.common import Figure, Result, machine, made_from, to_stderr
from tools.bench.report import render_report, render_table

MODULES = (
    "loop",
    "wire",
    "feel",
    "stability",
    "teleop",
    "reexec",
    "faults",
    "fuzz",
    "ccd_queries",
    "ccd_scene",
    "ccd_ablations",
    "crowd",
    "contact_problems",
    "motion_space",
    "tower",
    "contact_truths",
)


def figure(name: str) -> Figure:
    return importlib.import_module(f"tools.bench.{name}").FIGURE


def main() -> int:
    if "--list" in sys.argv[1:]:
        for name in MODULES:
            print(f"{name:14s} {figure(name).summary}")
        return 0
    names = []
    rest = sys.argv[1:]
    while rest and not rest[0].startswith("-"):
        names.append(rest.pop(0))
    if "all" in names:
        names = list(MODULES)
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench " + (" ".join(names) or "NAME [NAME ...]"),
        description="Measure a figure on this machine. NAME is one of: " + ", ".join(MODULES) + ", or all.",
        epilog="Options of a figure: python -m tools.bench NAME --help",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per figure, each on its own last line"
    )
    parser.add_argument("--list", action="store_true", help="name the figures")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write the results as Markdown; tables of other figures in it stay"
    )
    unknown = [name for name in names if name not in MODULES]
    if unknown or not names:
        parser.error(
            f"unknown figure {unknown[0]!r}; there are {', '.join(MODULES)}" if unknown else "name a figure, or --list"
        )
    figures = [figure(name) for name in names]
    shared = len(figures) > 1
    for one in figures:
        group = parser.add_argument_group(one.name, one.summary)
        # With several figures, options keep their defaults: two figures may use one name for different things.
        if not shared:
            one.add_arguments(group)  # type: ignore[arg-type]
    arguments = parser.parse_args(rest)

    results: dict[str, Result] = {}
    for one in figures:
        own = arguments
        if shared:
            own_parser = argparse.ArgumentParser()
            one.add_arguments(own_parser)
            own = own_parser.parse_args(one.among_others)
        to_stderr(f"== {one.name}: {one.summary}")
        result = results[one.name] = one.run(own, to_stderr)
        if arguments.json:
            print(
                json.dumps(
                    {
                        "name": one.name,
                        "figures": result.figures,
                        "peers": result.peers,
                        "notes": result.notes,
                        "machine": machine(),
                        "ok": result.ok,
                    }
                ),
                flush=True,
            )
        else:
            print(render_table(one.name, result), flush=True)
    if arguments.report:
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
        command = f"`{' '.join(['python -m tools.bench', *sys.argv[1:]])}`{made_from()}"
        before = arguments.report.read_text() if arguments.report.exists() else ""
        arguments.report.write_text(render_report(figures, results, machine(), command, before))
        to_stderr(f"wrote {arguments.report}")
    return 0 if all(result.ok for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
