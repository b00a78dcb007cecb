"""Compiling all kernels with two processes side by side, into the cache that every process of a daemon loads from.

A process that finds a part in the cache takes it from there, so that it does not matter who compiles what, nor whether
one of the two fails: what is missing afterwards is compiled by whoever needs it.
"""

import contextlib
import gc
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bridge import realtime
from bridge.children import python_module
from bridge.kernel_cache import ROOT, VARIABLE, module_hash

LAST_MODULE = "haptics.tick"
"""Where the kernel is that calls all others, and is compiled last."""
WAITING = "waiting"
"""What a compiler says when it has only left what needs what the other compiles; a line from us lets it go on."""


def is_cold() -> bool:
    """Whether the kernels of these sources have not been compiled yet, as far as the cache tells.

    Without a cache of the project's own it cannot be told: False.
    """
    kept = os.environ.get(VARIABLE)
    if not kept:
        return False
    path = ROOT.joinpath(*LAST_MODULE.split(".")).with_suffix(".py")
    return not any((Path(kept) / f"{LAST_MODULE}-{module_hash(path)}").glob("*.nbi"))


def compile_side_by_side(progress: Callable[[str, int, int], None]) -> None:
    """Compile what two processes can do at the same time; nothing where there is one core, or all is there already.

    ``progress`` gets (what, done, of), counted over both.
    """
    if len(realtime.allowed_cores()) == 1 or not is_cold():
        return
    sides: dict[int, tuple[str, int, int]] = {}
    waiting: set[int] = set()
    compilers: list[subprocess.Popen] = []
    try:
        with selectors.DefaultSelector() as selector:
            for side in (0, 1):
                compilers.append(_start(side))
                pipe = compilers[-1].stdout
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, side)
            rest = [b""] * len(compilers)
            while selector.get_map():
                for key, _ in selector.select():
                    # Not by the pipe's own lines: it may hold back one of two that come together.
                    read = os.read(key.fd, 1 << 16)
                    *lines, rest[key.data] = (rest[key.data] + read).split(b"\n")
                    if not read:
                        selector.unregister(key.fileobj)
                    if not read or WAITING.encode() in lines:
                        waiting.add(key.data)
                        if len(waiting) == len(compilers):
                            _go_on(compilers)
                    for line in lines:
                        with contextlib.suppress(ValueError):
                            what, done, of = json.loads(line)
                            sides[key.data] = (str(what), int(done), int(of))
                            if len(sides) == len(compilers):
                                rows = sides.values()
                                busy = " and ".join(what for what, done, of in rows if done < of)
                                progress(busy or "ready", sum(row[1] for row in rows), sum(row[2] for row in rows))
    finally:
        for compiler in compilers:
            if compiler.poll() is None and sys.exc_info()[0] is not None:
                compiler.terminate()
            compiler.wait()
            assert compiler.stdout is not None
            compiler.stdout.close()
        _go_on(compilers)


def _go_on(compilers: list[subprocess.Popen]) -> None:
    """Let all compile what is left, as far as they are still there; they get nothing from us but that."""
    for compiler in compilers:
        if compiler.stdin is not None:
            with contextlib.suppress(OSError):
                compiler.stdin.close()


def _start(side: int) -> subprocess.Popen:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    return subprocess.Popen(
        python_module("bridge.compilation", str(side)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        preexec_fn=(lambda: realtime.die_with_parent()) if realtime.LINUX else None,
    )


def main(side: int) -> None:
    """Compile one side, with a JSON line (what, done, of) before each part.

    What a compiler makes has many cycles, and looking for those that nobody needs takes a tenth of the time: that is
    done between parts, and of what is left then no more.
    """
    from haptics.warm_up import warm_up_side

    def say(*row: object) -> None:
        gc.collect()
        gc.freeze()
        print(json.dumps(row), flush=True)

    def wait() -> None:
        print(WAITING, flush=True)
        sys.stdin.readline()

    gc.disable()
    warm_up_side(side, say, wait)


if __name__ == "__main__":
    main(int(sys.argv[1]))
