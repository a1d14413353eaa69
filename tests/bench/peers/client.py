"""Drives a peer that runs in its own virtual environment: one JSON object a line out, one a line back."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Timer
from types import TracebackType
from typing import IO, Any, Self, cast


class PeerError(RuntimeError):
    """A request failed inside the peer, or the peer ended, or it was killed because no answer came in time."""


class Peer:
    """A script of this folder under ``python``, the interpreter of a virtual environment that has the peer."""

    def __init__(self, python: Path, script: Path, *, limit_s: float = 120) -> None:
        self.script, self.limit_s = script, limit_s
        self._scratch = TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True)
        self._log = Path(self._scratch.name, "stderr.txt")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                # -I: neither our PYTHONPATH nor the script's own folder, where soma.py would hide the package soma
                [python.absolute(), "-I", script.absolute()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._scratch.name,
                env={**os.environ, "HOME": self._scratch.name, "TMPDIR": self._scratch.name},
                encoding="utf-8",
            )
        self._requests, self._answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Wait for the answer to ``request``; ``PeerError`` if it is an error, or does not come within ``limit_s``.

        After an error the peer can be asked again; after it has ended or was killed, it cannot.
        """
        what = f"{self.script.name}: {request.get('op')}"
        sent, late = json.dumps(request), Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = Timer(self.limit_s, give_up)
        timer.start()
        try:
            line = self._exchange(sent)
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            why = f"no answer within {self.limit_s:g} s, killed" if late.is_set() else "the peer has ended"
            raise PeerError(f"{what}: {why}, exit status {self._process.returncode}; stderr: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{what}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the peer; killed if the end of its input does not end it within 5 s."""
        with suppress(OSError):
            self._requests.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._scratch.cleanup()

    def _exchange(self, line: str) -> str:
        with suppress(BrokenPipeError):
            self._requests.write(f"{line}\n")
            self._requests.flush()
        answer = self._answers.readline()
        if not answer.endswith("\n"):
            self._process.wait()
        return answer

    def _last_words(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:].strip() or "empty"
