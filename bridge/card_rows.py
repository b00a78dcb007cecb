"""Certified rows in card files: written without touching what else stands there, compared, and told as tables."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from haptics.cards import CardError, DeviceCard, card_from_dict, load_card
from haptics.certified import CertifiedRow, certified_stiffness
from haptics.certify import DAMPING, HIGHEST
from haptics.toml_text import parse_toml

HEADER = "# Limits of stable stiffness; `hapticd certify --write` rewrites all from this line on."
MOST = 10.0**HIGHEST
"""N/m: a limit so high means that nothing unstable was found."""

_BEGIN = re.compile(rf"^(?:{re.escape(HEADER)}[ \t]*\r?\n\s*)?(?:\[\[[ \t]*certified[ \t]*\]\]|certified[ \t]*=)", re.M)


def rows_as_toml(rows: Iterable[CertifiedRow]) -> str:
    """The rows as the end of a card file: the array of tables `certified`, a line each."""
    lines = [
        f"    {{ {', '.join(f'{key} = {_toml(value)}' for key, value in row.to_dict().items())} }}," for row in rows
    ]
    return "\n".join([HEADER, "certified = [", *lines, "]"]) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def with_rows(text: str, rows: Sequence[CertifiedRow]) -> str:
    """A card file's text with these rows in place of those that it has: all before the first one stays as it is."""
    found = _BEGIN.search(text)
    before = text if found is None else text[: found.start()]
    if not rows:
        return before.rstrip("\n") + "\n"
    return before.rstrip("\n") + "\n\n" + rows_as_toml(rows)


def write_rows(path: Path, rows: Sequence[CertifiedRow]) -> None:
    """Put rows into a card file, in place of those found in the same way; it is replaced as a whole or not at all.

    Raises CardError where the result would not be the same card with these rows, and OSError.
    """
    before = load_card(path.resolve().as_posix())
    ways = {row.by for row in rows}
    merged = [*rows, *(row for row in before.certified if row.by not in ways)]
    text = with_rows(path.read_bytes().decode(), merged)
    try:
        after = card_from_dict(parse_toml(text.encode()), str(path))
    except ValueError as error:
        raise CardError(f"{path}: rows cannot be written, the file would not be a card: {error}") from None
    known = {key: value for key, value in before.to_dict().items() if key != "certified"}
    if after.certified != tuple(merged) or known != {k: v for k, v in after.to_dict().items() if k != "certified"}:
        raise CardError(f"{path}: rows cannot be written without a change of other keys; add a [[certified]] by hand")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        Path(name).chmod(path.stat().st_mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def differences(card: DeviceCard, found: Sequence[CertifiedRow]) -> list[str]:
    """A sentence on each row of the card, found in the same way, that is not what was found now."""
    ways = {row.by for row in found}
    stated = {row.key: row for row in card.certified if row.by in ways}
    fresh = {row.key: row for row in found}
    told = []
    for key, row in fresh.items():
        if key not in stated:
            told.append(f"{card.name}: the row ({row.title}) is missing in the card")
        elif stated[key] != row:
            told.append(f"{card.name}: the row ({row.title}) differs: {_difference(stated[key], row)}")
    for key, row in stated.items():
        if key not in fresh:
            told.append(f"{card.name}: the row ({row.title}) in the card is not found any more")
    return told


def _difference(stated: CertifiedRow, found: CertifiedRow) -> str:
    parts = []
    for key, value in found.to_dict().items():
        if stated.to_dict()[key] != value:
            parts.append(f"{key} is {stated.to_dict()[key]} in the card and {value} now")
    return ", ".join(parts)


def lines(card: DeviceCard, rows: Sequence[CertifiedRow]) -> list[str]:
    """The rows of a card as a table for people, limits in N/m by damping in N·s/m."""
    known = "unknown" if card.stiffness_max is None else f"{card.stiffness_max:g} N/m"
    told = [
        f"{card.name} ({card.model}): stiffness_max {known}; limits in N/m by damping in N·s/m, at {rows[0].rate:g} Hz",
        f"  {'passivity':<10}{'delay':<6}{'hand':<6}{'scene':<6}"
        + "".join(f"{f'B {damping:g}':>9}" for damping in rows[0].damping),
    ]
    for row in rows:
        told.append(
            f"  {'on' if row.passivity else 'off':<10}{row.delay_ticks:<6}{row.hand:<6}{row.scene:<6}"
            + "".join(f"{stiffness(limit):>9}" for limit in row.stiffness_limit)
        )
    return told


def stiffness(limit: float) -> str:
    """A limit for people."""
    return f"> {limit:g}" if limit >= MOST else f"{limit:g}"


def markdown(cards: Iterable[DeviceCard]) -> list[str]:
    """The simulated limits of cards as a table for the page about devices: of each hand the lower one of its scenes."""
    cards = list(cards)
    rows = [row for card in cards for row in card.certified if row.by == "simulated"]
    delays = sorted({row.delay_ticks for row in rows})
    heads = [f"{hand}, delay {delay}" for delay in delays for hand in ("held", "light", "none")]
    told = [f"| card | stiffness N/m | {' | '.join(heads)} |", f"|---|---|{'---|' * len(heads)}"]
    for card in cards:
        cells = [
            " / ".join(_lower(card, hand, delay, on) for on in (False, True))
            for delay in delays
            for hand in ("held", "light", "none")
        ]
        known = "-" if card.stiffness_max is None else f"{card.stiffness_max:g}"
        told.append(f"| `{card.name}` | {known} | {' | '.join(cells)} |")
    return told


def _lower(card: DeviceCard, hand: str, delay: int, passivity: bool) -> str:
    rows = [row for row in card.certified if row.by == "simulated"]
    limit = certified_stiffness(rows, DAMPING, hand=hand, delay_ticks=delay, passivity=passivity)
    return "-" if limit is None else stiffness(limit)
