"""Nothing that a guard writes of calls holds a secret."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from coherence.guard import Guard
from coherence.guard.bounds import short_repr, short_text
from coherence.guard.guard import checked_why
from guard.helpers import Boom

KEY = "sk-ant-api03-" + "Ab3dE5fG7h" * 9


class Provider:
    """Holds what nobody asked to be recorded."""

    def __init__(self) -> None:
        self.key, self.guard = KEY, None

    def get_goals(self) -> list[str]:
        raise AssertionError("a record reads no goals")

    def __repr__(self) -> str:
        return f"Provider({KEY})"


def test_wrap_no_secret_of_a_call_reaches_the_disk_or_a_strategy(tmp_path: Path) -> None:
    with Guard(store=tmp_path / "guard.db") as guard:

        @guard.wrap(agent="a", task=f"answer with {KEY}")
        def agent(*args: Any, **kwargs: Any) -> None:
            raise Boom(f"401: key {KEY} is not valid")

        with suppress(Boom):
            agent(f"use {KEY}", Provider(), {"api_key": "hunter2222"}, prompt="x " * 1_975 + KEY + " y" * 4_500)
        with suppress(Boom):
            guard.run(lambda: agent(), agent="a", task="z" * 990 + f" {KEY} " + "z" * 2_000)
        trace = guard.traces("a")[0]
        guard.flush()
        written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert trace.error == "Boom: 401: key [redacted:anthropic-key] is not valid"
    assert trace.task == "answer with [redacted:anthropic-key]"
    assert trace.arguments["args"][0] == "use [redacted:anthropic-key]"
    assert trace.arguments["args"][1] == {"unserialisable": "Provider"}
    assert b"Boom" in written
    assert b"Ab3dE5fG7h" not in written
    assert b"hunter2222" not in written


def test_checked_why_a_reason_is_kept_without_secrets_wherever_it_is_cut(tmp_path: Path) -> None:
    for before in range(0, 2_100, 70):
        assert KEY[:20] not in checked_why("x" * before + " " + KEY)
    with Guard(store=tmp_path / "guard.db") as guard:
        guard.propose("a", {"level": 2}, f"because {KEY}")
        assert KEY[:20] not in str(guard.history("a"))
        guard.flush()
        assert b"Ab3dE5fG7h" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_short_text_and_short_repr_cut_no_secret_in_two() -> None:
    for before in range(0, 110, 5):
        text = "x" * before + " " + KEY + " y" * 100
        assert KEY[:20] not in short_text(text) + short_repr(text) + short_repr((text,))
