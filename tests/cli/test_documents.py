"""Every ``--json`` output against the schema that ships with the package, each command run for real."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from guard.helpers import Boom, Memory
from guard.trails import Varies
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from coherence import Fleet, Monitor
from coherence.cli.documents import SAME, read_schema, schema_names
from coherence.cli.main import main
from coherence.evaluation import own_runs
from coherence.guard import Guard
from coherence.guard.bounds import Bound, Bounds
from coherence.lessons import LessonStore, Origin
from coherence.providers import HashingEmbedder
from coherence.store.rows import RunRow
from coherence.store.runs import write_runs
from coherence.store.store import Store

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
HASHING = ("--embedder", "hashing")
BARE = {"calibration.reset", "lessons.add", "replay.none"}
"""Documents without a place for the name of their schema."""


def run(*arguments: str | Path | int, input: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=input)


def everything(m: Monitor) -> None:
    """Record an event of each kind, failures in a row, a question whether a call may run, and a refusal."""
    m.goal("make the tests pass")
    m.message("user", "make the tests pass")
    m.message("assistant", "I try.", model="m-1", response_id="r-1", logprobs=[-0.1, -3.0, -3.2, -0.1])
    m.usage(tokens_in=10, tokens_out=5, cost_usd=0.01, model="m-1")
    m.memory("tests live in tests/", id="where")
    m.correction("with pytest, please")
    m.feedback(0.5, text="fine")
    m.compaction("the tests fail")
    for at in range(8):
        call = m.tool_call("Bash", {"command": f"pytest {at}"})
        m.tool_result("ImportError: no module named x", error=True, call=call, error_type="ImportError", duration_s=0.1)
        m.decide()
    m.check("Bash", {"command": "rm -rf /"})
    m.message("nobody", "a fault")  # type: ignore[arg-type]  # wrong on purpose
    m.confirm(m.check("Bash", {"command": "rm -rf /"}), "a person agrees")
    m.note("the model changed")
    m.usage(tokens_in=9, tokens_out=1, tokens_cached=8)
    m.unblock("a person looked")
    m.outcome(success=False, score=0.1, text="gave up")
    m.decide()


def guarded(path: Path, agent: str, rate: Callable[[int, int], float], calls: int, **options: Any) -> None:
    config, drawn = Memory(), random.Random(1)
    bounds = Bounds({"level": Bound(least=0, most=9)}, **options)
    with Guard(
        store=path, strategy=Varies(), config_adapter=config, bounds=bounds, canary_share=0.5, canary_slice=8
    ) as guard:
        for number in range(calls):

            def call(number: int = number) -> None:
                if drawn.random() >= rate(config.config["level"], number):
                    raise Boom("no")

            with suppress(Boom):
                guard.run(call, agent=agent, task="answer")


def line_of(number: int, labels: dict[str, Any] | None = None) -> str:
    """Return a run of 26 steps as a line."""
    steps = [
        {"role": "assistant", "content": f"I read part {at * 7 % 26} of module {number} and test it."}
        for at in range(26)
    ]
    run = {"id": f"run {number}", "goal": "Test all modules", "steps": steps, "labels": labels or {}}
    return json.dumps(run) + "\n"


@pytest.fixture(autouse=True, scope="module")
def few_runs() -> Iterator[None]:
    """Let a scale be fitted on few runs: of what it is worth nothing is asked here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in (("RUNS_NEEDED", 5), ("STEPS_NEEDED", 130), ("LABELS_NEEDED", 3)):
            patch.setattr(own_runs, name, number)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores and files with something of everything."""
    folder = tmp_path_factory.mktemp("documents")
    store = folder / "runs.db"
    with Monitor(agent="a", store=store, embedder=HashingEmbedder(), config={"guidance": {"randomise": True}}) as m:
        everything(m)
    with Store(store) as kept, kept.transaction() as transaction:
        risks = [number * 19 % 53 / 250 for number in range(1, 53)]
        rows = [
            RunRow(at, (("goal_hijack", "3", risk), ("light.stall", "events-5", risk)), at % 2 > 0)
            for at, risk in enumerate(risks * 2, 1)
        ]
        write_runs(transaction, "a", "9", rows)
    with Fleet(budget={"cost_usd": 1.0, "tool_calls": {"Bash": 1}}, store=folder / "fleet.db", embedder=False) as fleet:
        for agent in ("one", "other"):
            fleet.agent(agent).usage(tokens_in=10, tokens_out=5, model="unheard of")
            fleet.agent(agent).tool_result("done", tool="Bash")
            fleet.agent(agent).decide()
            fleet.agent(agent).check("Bash", {"command": "ls"})
    with LessonStore(folder / "lessons.db", embedder=HashingEmbedder()) as lessons:
        origin = Origin("builder", "s1", (3, 6, 9))
        lessons.record(
            pattern="NoModule", error_text="No module named 'yaml'", fix_text="pip install pyyaml", origin=origin
        )
    guarded(folder / "guard.db", "worse", lambda level, number: 0.9 if level == 1 else 0.0, 120)
    guarded(
        folder / "guard.db", "better", lambda level, number: 0.0 if number > 500 else 0.85 + 0.06 * (level > 1), 540
    )
    guarded(folder / "guard.db", "on trial", lambda level, number: 0.85, 60)
    guarded(folder / "guard.db", "waits", lambda level, number: 0.5, 40, auto_apply=False)
    said = {"step": "message", "role": "assistant", "text": "It costs 1,250 dollars."}
    case = {"id": "mine", "kind": "silent_failure", "expected": "review", "why": "unknown", "goal": "Ask"}
    (folder / "cases.json").write_text(json.dumps({"cases": [case | {"steps": [said]}]}))
    (folder / "broken.jsonl").write_text('{"kind": "call"')
    (folder / "audit").mkdir()
    assert run("audit", "export", store, folder / "audit").exit_code == 0
    trail = folder / "audit" / "audit.jsonl"
    trail.write_text(trail.read_text().replace("ImportError", "Nothing", 1))
    (folder / "other.toml").write_text("[pressure]\nguide = 0.01\nwarn = 0.02\nblock = 0.03\n")
    (folder / "nothing.jsonl").write_text('{"id": "nothing", "steps": []}\n')
    stuck = [{"role": "tool", "tool_name": "Bash", "tool_result": "no such file", "is_error": True}] * 12
    (folder / "stuck.jsonl").write_text(json.dumps({"id": "stuck", "goal": "go", "steps": stuck}) + "\n")
    good = "".join(line_of(number) for number in range(5))
    (folder / "many.jsonl").write_text(good)
    bad = {"derailed": True, "onset_step": 13}
    (folder / "bad.jsonl").write_text("".join(line_of(100 + number, bad) for number in range(3)))
    return folder


CASES = """
score  score {data}/tau_airline.jsonl.gz {folder}/nothing.jsonl {folder}/stuck.jsonl {folder}/no.jsonl {hashing}
compare          compare {data}/tau_airline.jsonl.gz {folder}/stuck.jsonl {hashing}
eval             eval {data}/agentdojo.jsonl.gz --metric repetition {hashing}
blame            blame {data}/whowhen.jsonl.gz --format runs
eval-cases       eval-cases {folder}/cases.json
metrics          metrics
doctor           doctor
sessions         sessions --store {folder}/runs.db
replay           replay {folder}/runs.db
replay           replay a --store {folder}/runs.db --at 20
replay           replay a --store {folder}/runs.db --until-fire
replay.none      replay a --store {folder}/runs.db --at 1
replay.check     replay {folder}/runs.db --check
replay.config    replay {folder}/runs.db --config {folder}/other.toml
audit.verify     audit verify {folder}/audit/audit.jsonl
experiments      experiments --store {folder}/runs.db
experiments      experiments --store {folder}/runs.db --measure error
explain          explain repeated_failure --store {folder}/runs.db
explain.refusal  explain last --store {folder}/runs.db
explain.list     explain --store {folder}/runs.db
calibrate        calibrate {folder}/many.jsonl --out {folder}/scale.json {hashing}
calibrate        calibrate {folder}/many.jsonl {folder}/bad.jsonl --out {folder}/labels.json {hashing}
calibration      calibration {folder}/runs.db
calibration.reset calibration {folder}/lessons.db --reset
lessons.add      lessons add --pattern Git --error "fatal: x" --fix "git init" {lessons} {hashing}
lessons.search   lessons search "No module named 'yaml'" {lessons} {hashing}
lessons.list     lessons list {lessons}
lessons.show     lessons show 1 {lessons}
lessons.import   lessons import {folder}/broken.jsonl {lessons} {hashing}
lessons.stats    lessons stats {lessons} {hashing}
guard.status     guard status {guard}
guard.status     guard status better {guard}
guard.status     guard status "on trial" {guard}
guard.history    guard history worse --slices {guard}
guard.history    guard history better --slices {guard}
guard.history    guard history "on trial" --slices {guard}
guard.history    guard history waits --slices {guard}
guard.patches    guard patches worse {guard}
guard.patches    guard patches better {guard}
guard.patches    guard patches worse 1 {guard}
guard.verify     guard verify {guard}
config.check     config check {folder}/other.toml {folder}/bad.jsonl
config.show      config show --all
status           status --state {folder}/none
statusline       statusline --state {folder}/none
"""
"""Each document, and a command that prints it with ``--json``."""

TABLE = [line.split(maxsplit=1) for line in CASES.split("\n") if line]


def called(command: str, folder: Path) -> Result:
    """Run a command, its placeholders filled in."""
    stores = {name: f"--store {folder}/{name}.db" for name in ("lessons", "guard")}
    return run(*shlex.split(command.format(data=DATA, folder=folder, hashing=" ".join(HASHING), **stores)), "--json")


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(read_schema(name))


def check(name: str, document: Any) -> None:
    validator(name).validate(document)


def records(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [document]


def lines(path: Path) -> Iterator[Any]:
    return map(json.loads, path.read_text().splitlines())


@pytest.mark.parametrize(("name", "command"), TABLE)
def test_documents_what_a_command_prints_fits_its_schema_and_names_it(name: str, command: str, folder: Path) -> None:
    result = called(command, folder)
    assert isinstance(result.exception, SystemExit | None), result.exception
    document = json.loads(result.stdout)
    check(name.removesuffix(".none"), document)
    if name in BARE:
        return
    assert records(document), "an empty array shows nothing"
    assert {record["schema"] for record in records(document)} == {f"coherence.{name}/1"}


def test_documents_each_line_fits_its_schema(folder: Path) -> None:
    readings, scores = folder / "readings.jsonl", folder / "scores.jsonl"
    source = DATA / "tau_airline.jsonl.gz"
    scored = run("score", source, *HASHING, "--jsonl", readings, "--step-scores", scores, "--store", folder / "s.db")
    assert scored.exit_code == 0
    stores = [folder / name for name in ("runs.db", "s.db", "fleet.db")]
    printed = [run("log", "--store", store, "--limit", 500, "--json").stdout for store in stores]
    log = [json.loads(line) for line in "".join(printed).splitlines()]
    for name, found in (("score.jsonl", [*lines(readings)]), ("score.step-scores", [*lines(scores)]), ("log", log)):
        for line in found:
            check(name, line)
        assert {line["schema"] for line in found} == {f"coherence.{name}/1"}
    assert len({line["event"]["kind"] for line in log}) == 12, "an event of each kind"
    assert [line["event"]["tree"]["tool_calls"] for line in log if line["event"].get("tree")], "what others have spent"


def commands(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)
        else:
            yield ".".join((*words, name)), command


def test_documents_every_command_with_json_has_a_schema_and_a_run_above() -> None:
    printing = {name for name, each in commands(main) if any("--json" in option.opts for option in each.params)}
    assert len(printing) > 20
    assert {SAME.get(name, name) for name in printing} <= set(schema_names())
    tried = {name.removesuffix(".none") for name, _ in TABLE} | {"export", "log", "score.jsonl", "score.step-scores"}
    tried.add("collect")  # by tests/integrations/test_event_receiver.py
    assert tried == set(schema_names())


@pytest.mark.parametrize("name", schema_names())
def test_documents_each_schema_is_one_and_is_printed_whole(name: str) -> None:
    printed = json.loads(run("schema", name).stdout)
    Draft202012Validator.check_schema(printed)
    assert printed == read_schema(name)
    assert printed["title"] == f"coherence.{name}/1" and "definitions.json" not in json.dumps(printed)
    assert f"\n{name} " in run("schema").stdout


@pytest.mark.parametrize(
    "change",
    [
        {"band": "blue"},
        {"decision": "stop"},
        {"more": 1},
        {"band": "unknown"},
        {"coherence_index": None},
        {"coherence_index": 1.5},
        {"schema": "coherence.score.jsonl/2"},
    ],
)
def test_documents_a_schema_refuses_what_is_none(change: dict[str, Any]) -> None:
    reading = {
        "schema": "coherence.score.jsonl/1", "run_id": "r", "step": 0, "metrics": {"stall": None},
        "coherence_index": 0.9, "band": "green", "cause": "", "scale": "events-5", "coverage": 1.0, "errors": [],
        "unknown": {"stall": "no tool result yet"}, "risk": None, "pressure": 0.0, "mode": "observe",
        "decision": "continue", "message": "",
    }  # fmt: skip
    check("score.jsonl", reading)
    check("score.jsonl", reading | {"coherence_index": None, "band": "unknown"})
    with pytest.raises(ValidationError):
        check("score.jsonl", reading | change)
