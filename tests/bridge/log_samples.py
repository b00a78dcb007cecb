"""Records and logs for the tests of the log: random ones with every field set, and a plausible run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import orjson

from bridge.log.fields import leaves
from bridge.log.recorder import Recorder
from haptics.tables import RECORD, SETTINGS
from rtcore.tables import BUDGET, MAX_CONTACTS, MAX_PATH

SPECIAL_BITS = (
    0x8000000000000000,  # -0.0
    0x0000000000000001,  # the smallest subnormal
    0x7FEFFFFFFFFFFFFF,  # the largest finite number
    0x7FF0000000000000,  # infinity
    0xFFF0000000000000,
    0x7FF8000000000000,  # NaN, and others of either sign with a payload
    0xFFF8000000000000,
    0x7FF8000000000123,
    0xFFFFFFFFFFFFFFFF,
)


def random_records(count: int, seed: int, *, special: bool = False, first_tick: int = 1) -> np.ndarray:
    """(count,) RECORD with every field at random over its whole range, padding and unused rows zero."""
    generator = np.random.default_rng(seed)
    raw = np.zeros((count, RECORD.itemsize), np.uint8)
    for leaf in leaves(RECORD):
        size = leaf.base.itemsize * int(np.prod(leaf.shape, dtype=int))
        if leaf.base.kind == "f":
            # Random bits give every exponent; the odd NaN among them is replaced.
            bits = generator.integers(0, 2**64, size=(count, size // 8), dtype=np.uint64)
            bits = np.where(np.isfinite(bits.view("f8")), bits, np.float64(0.1).view(np.uint64))
            if special:
                chosen = generator.random(bits.shape) < 0.05
                bits[chosen] = generator.choice(np.array(SPECIAL_BITS, np.uint64), size=int(chosen.sum()))
            raw[:, leaf.offset : leaf.offset + size] = bits.view(np.uint8).reshape(count, size)
        else:
            raw[:, leaf.offset : leaf.offset + size] = generator.integers(0, 256, size=(count, size), dtype=np.uint8)
    records = raw.reshape(-1).view(RECORD).copy()
    report = records["output"]["report"]
    report["contact_count"] = generator.integers(0, MAX_CONTACTS + 1, count)
    report["path_count"] = generator.integers(1, MAX_PATH + 1, count)
    for name, limit in (("contact", MAX_CONTACTS), ("path", MAX_PATH)):
        rows = report[f"{name}s" if name == "contact" else name]
        rows[np.arange(limit) >= report[f"{name}_count"][:, None]] = np.zeros((), rows.dtype)
    records["tick"] = np.arange(first_tick, first_tick + count)
    return records


def plausible_records(count: int, seed: int = 0) -> np.ndarray:
    """(count,) RECORD of a hand that presses now and then: times, states, forces and contacts that hang together."""
    generator = np.random.default_rng(seed)
    records = np.zeros(count, RECORD)
    ticks = np.arange(1, count + 1)
    records["tick"] = ticks
    timing, output = records["timing"], records["output"]
    timing["planned_ns"] = 5_000_000_000 + ticks * 1_000_000
    timing["started_ns"] = timing["planned_ns"] + generator.integers(1_000, 30_000, count)
    timing["computed_ns"] = timing["started_ns"] + generator.integers(60_000, 120_000, count)
    timing["sent_ns"] = timing["computed_ns"] + 9_000
    records["input"]["has_sample"][3:] = 1
    records["input"]["fresh"][3:] = 1
    records["input"]["sample"]["session"] = 2**62 + 12345
    records["input"]["sample"]["orientation"][:, 3] = 1.0
    depth = np.maximum(0.0, np.sin(ticks * 2e-3 * np.pi)) * 6e-3
    output["device_position"][:, 2] = output["goal_position"][:, 2] = -depth
    for name in ("device_orientation", "goal_orientation", "proxy_orientation"):
        output[name][:, 3] = 1.0
    edges = np.searchsorted(ticks / count, [0.02, 0.05, 0.1])
    states = np.searchsorted(edges, np.arange(count), side="right")
    output["state"] = states
    output["event_seq"] = states
    changed = np.flatnonzero(np.diff(states)) + 1
    output["event_from"][changed], output["event_to"][changed] = states[changed - 1], states[changed]
    output["reason"][changed] = 1
    output["wrench"][:, 2] = depth * 400.0 * (states == 3)
    output["wrench"][:, 0] = 0.3 * output["wrench"][:, 2]
    report = output["report"]
    report["path_count"] = 1
    report["contact_count"] = depth > 0
    report["contacts"]["normal"][:, 0, 2] = depth > 0
    report["contacts"]["gap"][:, 0] = np.where(depth > 0, 2e-4, 0.0)
    report["smallest_gap"] = np.where(depth > 0, 2e-4, -1.0)
    return records


class ListRing:
    """A ring that gives out arrays one after the other; an integer stands for so many lost records."""

    def __init__(self, items: list[np.ndarray | int], snapshot: tuple[int, bytes] | None = None):
        self.items = list(items)
        self.kept = snapshot

    def read(self, limit: int) -> tuple[np.ndarray, int]:
        lost = 0
        while self.items and isinstance(self.items[0], int):
            lost += self.items.pop(0)
        if not self.items:
            return np.zeros(0, RECORD), lost
        records, rest = self.items[0][:limit], self.items[0][limit:]
        if len(rest):
            self.items[0] = rest
        else:
            self.items.pop(0)
        return records.copy(), lost

    def snapshot(self) -> tuple[int, bytes] | None:
        return self.kept


def attachments() -> dict[str, bytes]:
    """Attachments of the right names and forms; the model is not one."""

    def table(dtype: np.dtype) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(1, dtype))
        return buffer.getvalue()

    return {
        "config.json": orjson.dumps({"scene": {"name": "test"}}),
        "card.json": orjson.dumps({"name": "simulated"}),
        "assembly.json": orjson.dumps({"body_names": ["plate"]}),
        "settings.npy": table(SETTINGS),
        "budget.npy": table(BUDGET),
        "model.npz": b"not a model " * 50,
    }


def write_log(
    path: Path, records: np.ndarray, *, chunk: int = 40, snapshot: tuple[int, bytes] | None = (0, b"s")
) -> Path:
    """Write records as the recorder would, one chunk per `chunk` ticks."""
    recorder = Recorder(path, attachments())
    ring = ListRing([], snapshot)
    recorder.attach(ring)
    for start in range(0, len(records), chunk):
        ring.items.append(records[start : start + chunk])
        recorder.step()
    assert recorder.finish()
    return path
