"""The program in a real pseudo terminal: all bytes that a terminal would get, with hostile texts in the store."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tui.runs import begun, work

ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[=>]|\([A-B0]|\]22;\w*\x07)")
"""Output of textual: sequences of control, keypad modes, character sets, the shape of the pointer."""

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b]52;c;b3duZWQ=\x07 [red]markup[/red] [@click=app.quit]x[/] "
    "\u202egnp.exe \x9b31m"
)


def played(store: Path, keys: list[bytes], *options: str, environment: Mapping[str, str] | None = None) -> bytes:
    """Run the program, press keys, and return all that it wrote until it had ended by itself."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "xterm-256color", **(environment or {})})
        os.execv(sys.executable, [sys.executable, "-m", "coherence", "watch", str(store), *options])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    written = b""
    for key in [b"", *keys]:
        os.write(terminal, key)
        # once it is there, until nothing has come for a while: times pass on the screen, but only each second
        end = time.monotonic() + (4 if b"help" in written else 30)
        while time.monotonic() < end and (select.select([terminal], [], [], 0.5)[0] or b"help" not in written):
            try:
                written += os.read(terminal, 65_536)
            except OSError:  # it has ended
                os.close(terminal)
                return written if os.waitpid(child, 0)[1] == 0 else written + b"(failed)"
    raise AssertionError(f"it did not end: {written[-3000:]!r}")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    with begun(path, f"agent {HOSTILE}"[:60], f"goal {HOSTILE}", session="s") as m:
        m.message("user", HOSTILE * 3)
        m.message("assistant", f"東京 عربي עברית e\u0301 👩\u200d👩\u200d👧 {HOSTILE}")
        call = m.tool_call("Bash", {"command": HOSTILE})
        m.tool_result(HOSTILE, error=True, call=call)
        m.message("assistant", "\n".join(chr(code) for code in range(0x20)) + "\x7f\x85\u2028\u200b\ufeff\U000e0041")
        m.decide()
    return path


def test_watch_in_a_terminal_hostile_texts_control_nothing(store: Path) -> None:
    written = played(store, [b"\r", b"\x1b[H", b"\x1b[B" * 20, b"g", b"g", b"?", b"\x1b", b"\x1b", b"q"])
    assert b"(failed)" not in written
    assert b"markup" in written and b"gnp.exe" in written  # they were shown
    rest = ESCAPES.sub(b"", written)
    # no title, no clipboard, no bell, no C1 control, no change of direction came from them
    assert b"\x1b" not in rest and b"\x07" not in rest
    assert not set("\x9b\x9d\x90\u202e\u2066") & set(rest.decode())
    assert b"\x1b[31m" not in written
    assert written.endswith(b"l") or b"\x1b[?1049l" in written  # the terminal is as it was


def test_watch_in_a_terminal_without_colours(store: Path) -> None:
    written = played(store, [b"\r", b"\x1b", b"q"], environment={"NO_COLOR": "1"})
    styles = {code for group in re.findall(rb"\x1b\[([0-9;]*)m", written) for code in group.split(b";")}
    # bold, dim, italic, underlined, reverse, and the ends of them; the terminal's own colours
    assert styles <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"22", b"23", b"24", b"27", b"39", b"49"}, styles
    assert b"? help" in ESCAPES.sub(b"", written)


def test_watch_in_a_terminal_in_ascii(store: Path) -> None:
    written = played(store, [b"l", b"\x1b", b"\r", b"?", b"\x1b", b"\x1b", b"q"], "--ascii")
    text = ESCAPES.sub(b"", written)
    assert text.isascii()
    assert b"+----" in text and b"?--" not in text  # the corners of a dialog
    assert b"(failed)" not in written


def test_watch_in_a_terminal_without_a_store(tmp_path: Path) -> None:
    written = played(tmp_path / "none.db", [b"q"])
    assert b"There is no store yet" in ESCAPES.sub(b"", written)
    assert not (tmp_path / "none.db").exists()


def test_watch_a_text_of_a_megabyte_is_drawn_at_once(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    with begun(path, "writer", session="s") as m:
        work(m, 1)
        m.message("assistant", "x" * 1_000_000)  # without a space
        m.message("assistant", "東" * 300_000 + "\n" * 10_000)
        m.decide()
    written = played(path, [b"\r", b"w", b",", b"w", b"\x1b", b"q"])
    assert b"(failed)" not in written
    assert "東東東".encode() in ESCAPES.sub(b"", written)
