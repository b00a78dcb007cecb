"""All that is fuzzed, and how many messages each gets."""

from collections.abc import Sequence

from tools.fuzz import file_targets, wire_targets
from tools.fuzz.target import Target

TARGETS: tuple[Target, ...] = (*wire_targets.TARGETS, *file_targets.TARGETS)


def shares(messages: int, names: Sequence[str] = ()) -> dict[str, int]:
    """How many of so many messages each target gets, of those named or of all; together exactly as many."""
    unknown = set(names) - {target.name for target in TARGETS}
    if unknown:
        raise ValueError(f"there is no target {', '.join(sorted(unknown))}")
    chosen = [target for target in TARGETS if not names or target.name in names]
    whole = sum(target.share for target in chosen)
    counts = {target.name: max(1, int(messages * target.share / whole)) for target in chosen}
    largest = max(counts, key=lambda name: counts[name])
    counts[largest] += messages - sum(counts.values())
    return counts
