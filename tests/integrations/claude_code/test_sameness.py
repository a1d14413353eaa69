"""The record and the decisions of a session are the same, however its hooks and the daemon met."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from integrations.claude_code.played import HOOKS, SESSION, Player, told

from coherence.integrations.host_session import UNTOLD
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript
from coherence.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

MAIN = "claude-code"

LAST = len(HOOKS)

SOME = [3, 7, 12, 28, 38, LAST - 1]
"""Hooks before which something happens: at calls that the transcript has and has not yet, beside and inside a
subagent, at words, at a prompt, and at ends."""


def slow(*cases: Any) -> list[Any]:
    return [pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.slow) for case in cases]


@pytest.fixture
def player(tmp_path: Path) -> Iterator[Player]:
    before = Path.cwd()
    made = Player(tmp_path / "state")
    yield made
    made.stop()
    os.chdir(before)


@pytest.fixture(scope="module")
def through_one_daemon(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    before = Path.cwd()
    made = Player(tmp_path_factory.mktemp("one") / "state")
    made.start()
    for at in range(LAST):
        made.play(at)
    made.stop()
    os.chdir(before)
    return made.told()


def agent_of(name: str) -> str:
    """Return the agent that a transcript of the session is about."""
    return MAIN if name == "main.jsonl" else f"{MAIN}/general-purpose-{name.removeprefix('agent-')[:12]}"


@pytest.mark.parametrize("name", sorted({name for each in HOOKS for name in each["lines"]}))
def test_score_transcript_decides_as_the_daemon_did(
    name: str, through_one_daemon: dict[str, list[Any]], tmp_path: Path
) -> None:
    (transcript,) = read_transcripts(SESSION / name)
    with Store(tmp_path / "score.db") as store:
        score_transcript(transcript, embedder=HashingEmbedder(), store=store)
        (row,) = store.sessions()
        scored = list(told(store, row))
    live = through_one_daemon[agent_of(name)]
    assert scored == live
    if name == "main.jsonl":
        decided = {each[2] for each in live if isinstance(each[0], dict)}
        assert decided >= {"continue", "guide", "warn"}  # report.py is missing four times


def same(player: Player, expected: dict[str, list[Any]]) -> None:
    player.stop()
    found = player.told()
    assert list(found) == list(expected)
    for agent, events in expected.items():
        assert found[agent] == events, agent


@pytest.mark.parametrize("stop", [12, 38, *slow(*SOME, *range(0, LAST, 3))])
def test_daemon_restarted_in_the_middle_records_and_decides_the_same(
    stop: int, player: Player, through_one_daemon: dict[str, list[Any]]
) -> None:
    player.start()
    for at in range(LAST):
        if at == stop:
            player.stop()
            player.start()
        player.play(at)
    same(player, through_one_daemon)


GAPS = [*pairwise(SOME), (2, LAST - 1), (0, 25)]


@pytest.mark.parametrize(
    ("stop", "start"),
    [(12, 28), (0, 25), *slow(*GAPS, *((at, at + 7) for at in range(0, LAST - 7, 3)))],
)
def test_daemon_down_for_a_stretch_folds_the_spool_to_the_same(
    stop: int, start: int, player: Player, through_one_daemon: dict[str, list[Any]]
) -> None:
    player.start()
    for at in range(LAST):
        if at == stop:
            player.stop()
        if at == start:
            player.start()
        player.play(at)
    same(player, through_one_daemon)


@pytest.mark.parametrize(
    ("saved", "killed"),
    [
        *((12, 13), (28, 36)),
        *slow((1, 7), (13, 19), *((at, at + 5) for at in range(2, LAST - 7, 3))),
    ],
)
def test_daemon_killed_before_it_wrote_records_and_decides_the_same(
    saved: int, killed: int, player: Player, through_one_daemon: dict[str, list[Any]]
) -> None:
    player.start()
    for at in range(LAST):
        if at == saved:
            player.save()
        if at == killed:
            player.kill()
            player.start()
        player.play(at)
    player.stop()
    found = [each for each in player.told()[MAIN] if each[0] != "fault"]
    assert found == through_one_daemon[MAIN]


def calls_in(hooks: range) -> int:
    """Return how many calls of the main agent only these hooks have told of."""

    def ids(numbers: list[int]) -> set[str]:
        payloads = [HOOKS[at]["payload"] for at in numbers]
        asked = [call for each in payloads for call in each.get("tool_calls", [each]) if "agent_id" not in each]
        return {call["tool_use_id"] for call in asked if "tool_use_id" in call}

    return len(ids([*hooks]) - ids([at for at in range(LAST) if at not in hooks]))


@pytest.mark.parametrize(
    "lost",
    [
        *(range(1, 7), range(36, 48), range(1, LAST - 2)),
        *slow(range(3, 4), range(11, 14), range(2, 4), range(4, 26)),
    ],
    ids=lambda lost: f"{lost.start}-{lost.stop}",
)
def test_daemon_takes_from_the_transcript_what_no_hook_has_told(
    lost: range, player: Player, through_one_daemon: dict[str, list[Any]]
) -> None:
    player.start()
    for at in range(LAST):
        if at not in lost:
            player.play(at)
    player.stop()
    found = player.told()[MAIN]
    gaps = [each[2] for each in found if each[:2] == ("fault", UNTOLD)]
    assert [each for each in found if each[0] != "fault"] == through_one_daemon[MAIN]
    assert sum(int(each.split()[0]) for each in gaps) == calls_in(lost)


def test_daemon_down_and_hooks_lost_counts_nothing_twice(
    player: Player, through_one_daemon: dict[str, list[Any]]
) -> None:
    player.start()
    for at in range(LAST):
        if at == 7:
            player.stop()
        if at == 17:
            player.start()
        if not 10 <= at < 15:
            player.play(at)
    player.stop()
    found = player.told()[MAIN]
    assert [each for each in found if each[0] != "fault"] == through_one_daemon[MAIN]
    # of the calls whose beginning or end was told, none is missing
    assert [each[2] for each in found if each[0] == "fault"] == [
        "2 calls taken from the transcript: no hook told, or the daemon was killed"
    ]
