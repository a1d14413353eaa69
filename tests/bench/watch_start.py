"""Time from the start of ``coherence watch`` until its first picture, the agents of a store, and keys.

Run by hand: ``python tests/bench/watch_start.py [--repeat 20]``. The program runs in a pseudo terminal of 80 x 24; what
it writes is read as a terminal would. The processor's seconds are told beside the wall clock's: another program on the
same machine makes the one longer and leaves the other.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import resource
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

TEXTS = {b"coherence watch": "first picture", b"researcher": "agents shown", b"quit": "keys taken"}
"""Text on the terminal: what has come with it."""


def start(store: Path, needles: Iterable[bytes]) -> list[float]:
    """Start the program, and return after how many seconds each text was on the terminal."""
    began, needles = time.perf_counter(), list(needles)
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "coherence", "watch", str(store)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    written = b""
    found: list[float] = []
    while len(found) < len(needles):
        if not select.select([terminal], [], [], 20)[0]:
            raise TimeoutError(f"{needles[len(found)]!r} never came: {written[-2000:]!r}")
        written += os.read(terminal, 65_536)
        while len(found) < len(needles) and needles[len(found)] in written:
            found.append(time.perf_counter() - began)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(terminal)
    return found


def main() -> None:
    """Print the times, least and median, and the processor's seconds of a start."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=20)
    repeat = parser.parse_args().repeat
    from tui.runs import write_store

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        write_store(store)
        start(store, TEXTS)  # bytecode is written
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rounds = [start(store, TEXTS) for _ in range(repeat)]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / repeat
    for name, times in zip(TEXTS.values(), zip(*rounds, strict=True), strict=True):
        print(f"{name}: least {min(times) * 1000:.0f} ms, median {statistics.median(times) * 1000:.0f} ms")
    print(f"processor until keys are taken: {busy * 1000:.0f} ms")


if __name__ == "__main__":
    main()
