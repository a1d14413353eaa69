"""Time from the start of ``coherence watch`` until its first picture, the agents of a store, and keys.

Run by hand: ``python tests/bench/watch_start.py [STORE] [--repeat 20]``. Then agents are recorded, until each is drawn.
The program runs in a pseudo terminal of 80 x 24; what it writes is read as a terminal would. The processor's seconds
are told beside the wall clock's: another program on the same machine makes the one longer and leaves the other.
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


class Program:
    """The program in a pseudo terminal, from its start to the end of the block."""

    def __init__(self, store: Path) -> None:
        self.began = time.perf_counter()
        self._child, self._terminal = pty.fork()
        if self._child == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, "-m", "coherence", "watch", str(store)])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._written = b""

    def wait(self, text: bytes) -> float:
        """Wait until a text has been drawn, and return the time."""
        while text not in self._written:
            if not select.select([self._terminal], [], [], 20)[0]:
                raise TimeoutError(f"{text!r} never came: {self._written[-2000:]!r}")
            self._written += os.read(self._terminal, 65_536)
        return time.perf_counter()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._terminal)


def start(store: Path, needles: Iterable[bytes]) -> list[float]:
    """Start the program, and return after how many seconds each text was on the terminal."""
    with Program(store) as program:
        return [program.wait(text) - program.began for text in needles]


def follow(store: Path, times: int) -> list[float]:
    """Return the seconds from the record of a new agent's first error, which is written, until its row is drawn."""
    from coherence import Monitor

    found = []
    with Program(store) as program:
        program.wait(b"quit")
        for number in range(times):
            time.sleep(0.7)
            name = f"new{number}-{os.getpid()}"
            with Monitor(agent=name, store=store, embedder=False, goal="Delete the build.") as m:
                m.check("Bash", {"command": "rm -rf ~"})  # refused, so that it stands above those that are over
                m.flush()
                written = time.perf_counter()
                found.append(program.wait(name.encode()) - written)
    return found


def main() -> None:
    """Print the times, least and median, and the processor's seconds of a start."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path, nargs="?", help="a store to watch, into which agents are recorded")
    parser.add_argument("--repeat", type=int, default=20)
    chosen = parser.parse_args()
    from tui.runs import write_store

    with tempfile.TemporaryDirectory() as folder:
        store = chosen.store or Path(folder) / "runs.db"
        texts = TEXTS if chosen.store is None else {b"agent": "agents shown", b"quit": "keys taken"}
        if chosen.store is None:
            write_store(store)
        start(store, texts)  # bytecode is written
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rounds = [start(store, texts) for _ in range(chosen.repeat)]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = dict(zip(texts.values(), zip(*rounds, strict=True), strict=True))
        told["a new agent, from the record to its row"] = tuple(follow(store, chosen.repeat))
    busy = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / chosen.repeat
    for name, times in told.items():
        least, middle, worst = (1000 * value for value in (min(times), statistics.median(times), max(times)))
        print(f"{name}: least {least:.0f} ms, median {middle:.0f} ms, worst {worst:.0f} ms")
    print(f"processor until keys are taken: {busy * 1000:.0f} ms")


if __name__ == "__main__":
    main()
