"""``python -m tools.fuzz.worker TARGET COUNT SEED``: one target in a process of its own, so that a crash is its own."""

import gc
import json
import resource
import sys

from tools.fuzz.target import try_messages
from tools.fuzz.targets import TARGETS

LARGEST_MEMORY = 8 << 30
"""Bytes of address space; a decoder that asks for more raises MemoryError, which none is documented to."""


def main(name: str, count: int, seed: int) -> int:
    """Fuzz and print progress and outcome as JSON lines."""
    target = next(target for target in TARGETS if target.name == name)
    try_messages(target, min(count, 20), seed + 1)  # so that what is made once is not counted
    gc.freeze()  # nor searched for garbage while messages are timed
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_MEMORY, LARGEST_MEMORY))
    outcome = try_messages(target, count, seed, lambda done: print(json.dumps({"done": done}), flush=True))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        json.dumps(
            {
                "messages": outcome.messages,
                "refused": outcome.refused,
                "accepted": outcome.accepted,
                "raised": outcome.raised,
                "accepted_malformed": outcome.accepted_malformed,
                "largest_decode_us": round(outcome.largest_us, 1),
                "memory_grown_MB": round(grown / 1024, 1),
                "examples": outcome.examples,
            }
        ),
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
