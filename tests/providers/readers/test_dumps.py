"""Dumps of one run by the real packages; tests/data/dumps/README.md says how they were made."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutated_files import mutated, read_or_refuse
from property_sizes import examples

from coherence.core.errors import TranscriptError
from coherence.core.readings import Counters
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, Transcript

DUMPS = Path(__file__).parents[2] / "data" / "dumps"
FILES = sorted(each for each in DUMPS.iterdir() if each.suffix in (".json", ".jsonl"))
FORMATS = ("langchain", "pydantic-ai", "smolagents", "sharegpt", "inspect")

ASKED = "Find why the login test fails and fix it."
SAID = ("I run the login test first.", ['run_tests({"path": "test_login.py"})'])
FAILED = "FAILED test_login.py::test_token - KeyError: 'exp'"
FOUND = ("The token has no expiry. I add it in auth.py.", ['edit({"path": "auth.py"})'])
DENIED = "auth.py is read-only"
DONE = "auth.py cannot be written; the token needs an exp claim."


def said(step: Step) -> tuple[str, list[str]]:
    return step.content, list(map(str, step.tool_calls))


def assert_is_the_run(run: Transcript, denied: str = DENIED) -> None:
    asked, first, failed, second, refused, last = run.steps
    assert (asked.role, asked.content) == ("user", ASKED)
    assert (said(first), said(second), said(last)) == (SAID, FOUND, (DONE, []))
    assert [step.role for step in run.steps[1:]] == ["assistant", "tool"] * 2 + ["assistant"]
    # that a test failed is a result; that a tool could not be run is an error
    assert (failed.content, failed.tool_name, failed.is_error) == (FAILED, "run_tests", False)
    assert (refused.content, refused.tool_name, refused.is_error) == (denied, "edit", True)
    # as the script of the model tells them
    assert [step.usage for step in (first, second, last)] == [
        Counters(tokens_in=tokens, tokens_out=20) for tokens in (100, 150, 200)
    ]


@pytest.mark.parametrize(
    "name", ["langchain_dict.json", "langchain_dumpd.json", "langchain_model_dump.jsonl", "pydantic_ai.json"]
)
def test_read_transcripts_messages_with_an_image_are_the_run(name: str) -> None:
    [run] = read_transcripts(DUMPS / name)
    assert run.format == ("langchain" if name.startswith("langchain") else "pydantic-ai")
    assert run.system == "You fix tests."
    asked = run.steps[0]
    assert asked.content == f"{ASKED}\n[image]"
    assert_is_the_run(Transcript(id="", steps=(Step(role="user", content=ASKED), *run.steps[1:])))


def test_smolagents_reader_steps_of_calls_are_the_run() -> None:
    [run] = read_transcripts(DUMPS / "smolagents_full_steps.json")
    assert run.format == "smolagents"
    assert run.system.startswith("You are an expert assistant") and "\nYou fix tests.\n" in run.system
    assert_is_the_run(
        run,
        f"Error executing tool 'edit' with arguments {{'path': 'auth.py'}}: PermissionError: {DENIED}\n"
        "Please try again or use another tool",
    )


def test_smolagents_reader_code_is_a_call_of_the_interpreter_and_stands_there_alone() -> None:
    [run] = read_transcripts(DUMPS / "smolagents_run_result.json")
    assert said(run.steps[1]) == (SAID[0], ["python_interpreter(print(run_tests(path='test_login.py')))"])
    assert said(run.steps[3]) == (FOUND[0], ["python_interpreter(edit(path='auth.py'))"])
    assert [step.is_error for step in run.steps if step.role == "tool"] == [False, True, False]
    assert FAILED in run.steps[2].content and DENIED in run.steps[4].content
    assert said(run.steps[-1]) == (DONE, [])


@pytest.mark.parametrize("name", ["inspect.json", "inspect.eval"])
def test_inspect_reader_each_sample_is_the_run_with_its_grade(name: str) -> None:
    if name.endswith(".eval"):
        pytest.importorskip("zstandard")
    runs = {run.id: run for run in read_transcripts(DUMPS / name)}
    assert runs.keys() == {"login/token/1", "login/rights/1"}
    for run in runs.values():
        assert (run.format, run.system) == ("inspect", "You fix tests.")
        assert_is_the_run(run)
    # the grades of ``includes``: the last words hold "exp claim", and not "done"
    token, rights = runs["login/token/1"], runs["login/rights/1"]
    assert (token.group, token.success, token.went_wrong, token.outcome) == ("login/token", True, False, "good")
    assert (rights.group, rights.success, rights.went_wrong, rights.outcome) == ("login/rights", False, True, "failed")


@pytest.mark.parametrize("name", ["pydantic_ai.json", "smolagents_full_steps.json", "inspect.json"])
def test_read_transcripts_the_times_of_a_dump_never_run_backwards(name: str) -> None:
    for run in read_transcripts(DUMPS / name):
        times = [step.ts for step in run.steps if step.ts is not None]
        assert len(times) >= 5 and times == sorted(times)
        assert all(step.latency_s is None or 0 <= step.latency_s < 60 for step in run.steps)


def test_sharegpt_reader_turns_calls_and_observations(tmp_path: Path) -> None:
    plain, tagged = read_transcripts(DUMPS / "sharegpt.jsonl")
    assert (plain.id, plain.system, tagged.id, tagged.system) == ("plain", "You fix tests.", "tagged", "You fix tests.")
    assert [(step.role, *said(step), step.tool_name) for step in plain.steps] == [
        ("user", f"[image]\n{ASKED}", [], None),
        ("assistant", SAID[0], [], None),
        ("assistant", "", SAID[1], None),
        ("tool", FAILED, [], "run_tests"),
        ("assistant", "The token has no expiry.", [], None),
    ]
    assert [(step.role, *said(step), step.tool_name) for step in tagged.steps[1:4]] == [
        ("assistant", "I run the tests first.", [*SAID[1], 'read({"path": "auth.py"})'], None),
        ("tool", "FAILED test_login.py", [], "run_tests"),
        ("tool", "def token(): ...", [], "read"),
    ]


def damage(path: Path, seed: int) -> None:
    """Read a damaged file, as what it looks like or as one of the formats."""
    chance = random.Random(seed)
    text = mutated(chance, FILES)
    read_or_refuse(path, text, chance.choice((None, *FORMATS)))


def damage_archive(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray((DUMPS / "inspect.eval").read_bytes())
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(4, len(data))  # behind the signature, which would make it another file
        match chance.randrange(3):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at:]
            case _:
                data[at : at + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        if len(data) < 10:
            break
    path.write_bytes(data)
    with suppress(TranscriptError):
        assert read_transcripts(path)


@examples(300)
@given(st.integers(0, 2**32))
def test_readers_of_dumps_never_crash_on_a_damaged_file(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    damage(tmp_path_factory.getbasetemp() / "damaged.json", seed)
    damage_archive(tmp_path_factory.getbasetemp() / "damaged.eval", seed)


@pytest.mark.slow
def test_readers_of_dumps_never_crash_on_ten_thousand_damaged_files(tmp_path: Path) -> None:
    for seed in range(9_000):
        damage(tmp_path / "damaged.json", seed)
    for seed in range(1_000):
        damage_archive(tmp_path / "damaged.eval", seed)
