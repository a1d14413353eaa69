"""Good work that looks like trouble stays calm, and trouble that nobody flags does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coherence import Monitor
from coherence.sensor.light import BANDS

WORDS = ("parse_date", "parseDate", "date_parser", "strptime", "fromisoformat")


def thermometer(m: Monitor) -> None:
    for _ in range(40):
        m.tool_call("read_thermometer", {"room": "lab"})
        m.tool_result("21.5 C")
        m.decide()


def greps_without_match(m: Monitor) -> None:
    for word in WORDS:
        m.message("assistant", f"I search for {word}.")
        m.tool_call("Grep", {"pattern": word})
        m.tool_result("")
        m.decide()


def lint_and_fix(m: Monitor) -> None:
    for number in range(8):
        m.tool_call("Bash", {"command": "ruff check ."})
        m.tool_result(f"login.py:{number + 3}:1 E501 line too long\nFound {8 - number} errors.")
        m.tool_call("Edit", {"path": "login.py", "old": f"a{number}", "new": f"b{number}"})
        m.tool_result("edited")
        m.decide()


def code_after_tests(m: Monitor) -> None:
    for number in range(6):
        for path, text in ((f"test_{number}.py", f"assert f{number}() == {number}"), (f"f{number}.py", "def f(): ...")):
            m.tool_call("Write", {"path": path, "text": text})
            m.tool_result("ok")
            m.tool_call("Bash", {"command": f"pytest test_{number}.py"})
            m.tool_result("1 passed" if path.startswith("f") else "1 failed\nNameError: name 'f' is not defined")
            m.decide()


def polls_with_progress(m: Monitor) -> None:
    for number in range(15):
        m.tool_call("get_status", {"job": 7})
        m.tool_result(f"running, {number * 6} %")
        m.decide()


def unflagged_errors(m: Monitor) -> None:
    for number in range(12):
        m.tool_call("Bash", {"command": f"make step{number}"})
        m.tool_result(f"bash: make{number}: command not found")
        m.decide()


def one_test_in_sixteen_spellings(m: Monitor) -> None:
    starts = ("pytest", "python -m pytest", "python3 -m pytest", "PYTHONPATH=. pytest")
    for command in [f"{start} {option}" for start in starts for option in ("", "-q", "-x", "--tb=short")]:
        m.tool_call("Bash", {"command": command})
        m.tool_result("E   ImportError: cannot import name 'login'\n1 failed")
        m.decide()


def exploding_cost(m: Monitor) -> None:
    for number in range(16):
        m.message("assistant", "Still thinking about the login test.")
        m.usage(tokens_in=int(1000 * 1.6**number), tokens_out=200, cost_usd=0.01 * 1.6**number)
        m.decide()


def word_salad(m: Monitor) -> None:
    for number in range(5):
        m.message("assistant", f"I read part {number} of login.py and see the check.")
        m.tool_call("Read", {"part": number})
        m.tool_result(f"part {number} of the code")
        m.decide()
    m.message("assistant", "the of login with is to then the a date in parser of by fails are of the token is with of")
    m.decide()


def worst(act: Callable[[Monitor], None]) -> int:
    """Return the number of the worst band, 0 = green."""
    with Monitor(goal="Fix the failing login test in the repository.", config={"timeout_s": 60.0}) as m:
        act(m)
        return max(BANDS.index(reading.band) for reading in m.history() if reading.coherence_index is not None)


@pytest.mark.parametrize(
    ("act", "most"),
    [(thermometer, 1), (greps_without_match, 1), (lint_and_fix, 0), (code_after_tests, 0), (polls_with_progress, 0)],
)
def test_combine_good_work_that_looks_like_trouble_stays_calm(act: Callable[[Monitor], None], most: int) -> None:
    assert worst(act) <= most


@pytest.mark.parametrize("act", [unflagged_errors, one_test_in_sixteen_spellings, exploding_cost, word_salad])
def test_combine_trouble_that_nobody_flags_is_at_least_orange(act: Callable[[Monitor], None]) -> None:
    assert worst(act) >= 2
