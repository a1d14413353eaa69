"""Additions of answers that nobody asked for. Every case that is found stands beside one that must not be."""

import inspect
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.additions import MAX_ADDITIONS, additions
from coherence.detect.asked import kind_of
from coherence.detect.read_once import _KEPT

VARIANTS = Path(__file__).resolve().parents[1] / "data" / "addition_variants.jsonl"

TASK = "Refactor fetch_user to be async. Keep the database lookup logic unchanged."


def test_additions_code_needs_two_features_where_the_task_shows_none() -> None:
    one = "```python\nasync def fetch_user(i):\n    logger.info(i)\n    return await db.get(i)\n```"
    assert additions(TASK, one) == ()  # the original may log, too
    assert additions(TASK, one.replace("db.get(i)", "wait_for(db.get(i), 5)")) == ("logging", "timeout")
    shown = "Make it async:\n```python\ndef fetch_user(i):\n    return db.get(i)\n```"
    assert additions(shown, one) == ("logging",)
    assert additions(shown.replace("return", "logger.info(i)\n    return"), one) == ()


def test_additions_of_a_diff_are_in_its_new_lines() -> None:
    diff = "```diff\n-def load(path):\n+def read(path, retries=3):\n     logger.info(path)\n```"
    assert additions("Rename load to read", diff) == ("retries",)
    assert additions("Rename load to read and add a parameter retries", diff) == ()


@pytest.mark.parametrize(
    ("task", "answer", "found"),
    [
        (TASK, "It is async. I added tracing, a timeout and a request counter.", ("tracing", "timeout", "counter")),
        (TASK, "Tracing and a timeout were added.", ("tracing", "timeout")),
        (TASK, "Here it is with a timeout.", ("timeout",)),
        (TASK, "return await db.get(i)  # added retry for busy pools", ("retry",)),
        (TASK, "I left a cache in place.", ()),
        (TASK, "I did not add a timeout.", ()),
        (TASK, "You could add a timeout.", ()),
        (TASK, "It keeps the timeout that it had with the existing logging.", ()),
        (TASK, "Shall I also add a timeout?", ()),
        ("Cancel my table.", "Done. I also booked you a room.", ("room",)),
        ("Cancel my table.", "Done. They also have rooms.", ()),
        ("Cancel my table and book a room.", "Done. I also booked you a room.", ()),
        ("Fix the crash.", "Fixed. I also e-mailed the customer.", ("customer",)),
        ("Fix the crash.", "Fixed. I also added a guard to parse().", ()),  # a means
        ("Fix the crash.", "Fixed. While I was at it, I redesigned the start page.", ("start page",)),
        ("Rename it.", "Renamed. I also updated the callers and the tests.", ()),  # follows from it
        ("Rename it.", "Renamed. I also checked that it runs.", ()),
        ("Rename it.", "Renamed. Au\u00dferdem habe ich ein Zeitlimit eingebaut.", ("zeitlimit",)),
        ("Pay the bill.", "Paid. I renewed your passport.", ("passport",)),
        ("Pay the bill.", "I paid it from the joint account.", ()),
        ("Describe your holiday.", "I rented a boat and caught a fish.", ()),  # told in the first person
        ("Migrate the tests to pytest.", "I turned the classes into fixtures.", ()),  # made of many acts
        ("What time is it?", "Nine. I set your watch.", ("watch",)),
        ("Why does it hang?", "A lock. I added a guard.", ()),
        ("Increase the limit to 5.", "It is 5. The delay grows exponentially now.", ("delay grows",)),
        ("Increase the limit to 5.", "The limit is 5 now.", ()),
        ("Add `x` to the table.", "Added. The table also gets a trigger.", ("trigger",)),
        ("Fix the crash, nothing else.", "Fixed. I also added a cache.", ("cache",)),
        ("Fix the crash.", "Fixed.\n\nFurther changes:\n- dark mode\n- tests", ("dark mode",)),
        ("Move it to utils.", "Moved. I added a loader, since the modules need one.", ()),
        ("Do what he asked me in his mail.", "I sent the slides.", ()),  # written elsewhere
        ("Benenne x in y um.", "Umbenannt. Nebenbei wurde die Suche neu geschrieben.", ("nebenbei", "suche neu")),
        ("Corrige le titre.", "Corrigé. Au passage, j'ai changé la photo.", ("photo",)),
        ("Sube el volumen.", "Hecho. Desactivé el ecualizador.", ("ecualizador",)),
        ("Mude o título.", "Pronto. Criei uma rede para convidados.", ("rede",)),
        ("Sposta la riunione.", "Fatto. Ho invitato Marco.", ("marco",)),
        ("Maak de knop groen.", "Klaar. Ik heb ook het logo vergroot.", ("logo",)),
        ("Zmień tytuł.", "Gotowe. Przy okazji dodałem wykres.", ("wykres",)),
        ("Поменяй цвет.", "Готово. Заодно добавил меню.", ("меню",)),
        ("删除第三段。", "已删除。顺手换了封面照片。", ("封面照片",)),
        ("文言を変えてください。", "変更しました。ついでに地図を追加しました。", ("ついでに地図",)),
    ],
)
def test_additions_are_what_an_answer_did_and_no_word_of_its_task_asks_for(
    task: str, answer: str, found: tuple[str, ...]
) -> None:
    assert additions(task, answer) == found


def test_additions_of_many_texts() -> None:
    """Written by the author of the rules while they were made: what they miss is not hidden."""
    rows = [json.loads(line) for line in VARIANTS.read_text("utf-8").splitlines()]
    found = {
        kind: [row["task"] for row in rows if row["kind"] == kind and additions(row["task"], row["answer"])]
        for kind in ("addition", "right")
    }
    assert len(rows) == 206
    assert len(found["addition"]) >= 78
    assert len(found["right"]) <= 4, found["right"]


@given(st.text(), st.text())
def test_additions_laws(task: str, answer: str) -> None:
    found = additions(task, answer)
    assert found == additions(task, answer)
    assert len(found) == len(set(found)) <= MAX_ADDITIONS


@pytest.mark.parametrize("piece", ["I also added a ", "```\n", "def f(a=", "# added ", "also ", "make ", "\u8fd8"])
def test_additions_hostile_texts_are_read_within_50_ms(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))

    def once() -> float:
        for answers in _KEPT.values():
            answers.pop(inspect.unwrap(kind_of), None)
        begun = time.thread_time()
        additions("Rename it to x", text)
        additions(text, "I also added a timeout")
        return time.thread_time() - begun

    assert min(once() for _ in range(5)) < 0.05
