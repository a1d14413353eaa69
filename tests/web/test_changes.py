"""Changes: what a page writes is what the command line would have written, and only with leave."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coherence.cli.main import main
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.guard import Guard
from coherence.lessons.store import LessonStore
from coherence.monitor.monitor import Monitor
from coherence.store.runs import count_runs, labelled_runs, session_label
from coherence.store.store import Store
from coherence.store.told import newest_firings
from web.serving import WAIT_S, answered, record, serving

CHANGES: dict[str, dict[str, Any]] = {
    "label": {"agent": "coder", "session": "1", "label": "bad"},
    "label-firing": {"id": "x", "label": "good"},
    "unblock": {"agent": "coder", "session": "1", "reason": "I looked"},
    "lesson/edit": {"id": 1, "fix": "pip install pyyaml"},
    "lesson/forget": {"id": 1},
    "guard/rollback": {"agent": "coder"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    record(tmp_path / "runs.db")
    return tmp_path / "runs.db"


def test_changes_are_refused_by_a_server_that_only_shows(path: Path) -> None:
    with Store(path) as store:
        before = store.extent()
    with serving(path) as served:
        for name, body in CHANGES.items():
            refused = served.post(name, body)
            assert refused.status_code == 403 and "--write" in refused.json()["error"]
            assert served.client.get(f"/api/{name}").status_code in (404, 405)
    with Store(path) as store:
        assert store.extent() == before and session_label(store, "coder", "1") is None


def test_label_of_a_session_is_kept_shown_and_feeds_the_calibration(path: Path) -> None:
    with serving(path, writes=True) as served, Store(path) as store:
        with Monitor(agent="coder", session="2", store=path, embedder=False, goal="say hello") as monitor:
            monitor.message("assistant", "Hello.")
            monitor.decide()
        assert answered(served.post("label", CHANGES["label"])) == {"run": 1}
        assert answered(served.post("label", {"agent": "coder", "session": "2", "label": "good"})) == {"run": 1}
        # each run counts by its label from now on
        assert count_runs(store, "coder")[:2] == (1, 1)
        labels = {line["session"]: line["label"] for line in answered(served.client.get("/api/overview"))["lines"]}
        assert labels == {"1": "bad", "2": "good"}
        answered(served.post("label", {**CHANGES["label"], "label": None}))
        assert session_label(store, "coder", "1") is None and count_runs(store, "coder")[:2] == (1, 0)
        said = answered(served.post("label", {**CHANGES["label"], "comment": "it never read the error"}))
        assert said == {"run": 1}
        texts = answered(served.client.get("/api/events?agent=coder&session=1&text=never+read"))
        assert [event["kind"] for event in texts] == ["feedback"]
        assert not store.verify()


def test_label_of_a_session_is_the_same_as_that_of_the_command_line(path: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.db"
    with sqlite3.connect(path) as source, sqlite3.connect(twin) as copy:
        source.backup(copy)
    for each in (source, copy):
        each.close()
    with serving(path, writes=True) as served:
        answered(served.post("label", CHANGES["label"]))
    assert CliRunner().invoke(main, ["label", str(twin), "coder/1", "bad"]).exit_code == 0
    kept = []
    for file in (path, twin):
        with Store(file) as store:
            tables = ("runs", "run_maxima", "relabels")
            kept.append([store.fetch(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables])
            learned = labelled_runs(store, "coder")
            assert [(run.session, run.run, run.good) for run in learned] == [("1", 1, False)]
    assert kept[0] == kept[1]


def test_label_of_a_firing_and_end_of_a_block_reach_the_session(path: Path) -> None:
    with serving(path, writes=True) as served, Store(path) as store:
        firing = newest_firings(store, 1)[0]
        assert answered(served.post("label-firing", {"id": firing.id, "label": "bad"})) == {"id": firing.id}
        session = answered(served.client.get("/api/session?agent=coder&session=1"))
        assert {each["id"]: each["label"] for each in session["firings"]}[firing.id] == "bad"
        refusal = session["refusals"][0]
        assert not refusal["unblocked"]
        assert answered(served.post("label-firing", {"id": refusal["id"], "label": "good"})) == {"id": refusal["id"]}
        assert answered(served.post("unblock", CHANGES["unblock"])) == {}
        session = answered(served.client.get("/api/session?agent=coder&session=1"))
        assert session["refusals"][0]["unblocked"] and session["refusals"][0]["label"] == "good"
        assert not store.verify()


def test_lessons_are_edited_and_forgotten(path: Path) -> None:
    with LessonStore(path, embedder=False) as lessons:
        number = lessons.record(
            error_text="ImportError: no module named yaml", fix_text="pip install yaml", tool="Bash", pattern="import"
        )
    with serving(path, writes=True) as served:
        assert [lesson["fix"] for lesson in answered(served.client.get("/api/lessons"))] == ["pip install yaml"]
        made = answered(served.post("lesson/edit", {"id": number, "fix": "pip install pyyaml"}))["id"]
        found = answered(served.client.get("/api/lessons?text=yaml"))
        assert [(lesson["id"], lesson["fix"]) for lesson in found] == [(made, "pip install pyyaml")]
        empty = served.post("lesson/edit", {"id": made, "fix": " "})
        assert empty.status_code == 400 and "error" in empty.json()
        assert answered(served.post("lesson/forget", {"id": made})) == {}
        assert answered(served.client.get("/api/lessons")) == []
        assert served.post("lesson/forget", {"id": made}).status_code == 404


class Proposer:
    """Strategy that always proposes the same."""

    def analyze(self, **asked: object) -> dict[str, object]:
        return {"level": 2}


class Settings:
    """Adapter with a configuration in memory."""

    def __init__(self) -> None:
        self.config: dict[str, object] = {"level": 1}

    def get_config(self, *, agent_id: str) -> dict[str, object]:
        return dict(self.config)

    def apply_config(self, *, agent_id: str, config_patch: dict[str, object]) -> bool:
        self.config |= config_patch
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, object]) -> None:
        self.config = dict(backup_config)


def test_rollback_has_the_process_with_the_adapter_restore_what_was_before(path: Path) -> None:
    settings = Settings()
    bounds = Bounds({"level": Bound(least=0, most=9)}, auto_apply=True)
    with (
        Guard(store=path, strategy=Proposer(), config_adapter=settings, bounds=bounds, canary_slice=10_000) as guard,
        serving(path, writes=True) as served,
    ):
        for number in range(60):
            with suppress(ZeroDivisionError):
                guard.run(partial(truediv, 1, number % 2), agent="support")
        guard.flush()
        assert settings.config == {"level": 2}
        patch = answered(served.client.get("/api/guard"))["agents"][0]["patches"][0]
        assert patch["can_roll_back"] and patch["patch"] == {"level": 2}
        assert answered(served.post("guard/rollback", {"agent": "support", "why": "too short"})) == {
            "number": patch["number"]
        }
        deadline = time.monotonic() + WAIT_S
        while settings.config != {"level": 1} and time.monotonic() < deadline:
            guard.run(lambda: 1, agent="support")
            guard.flush()
            time.sleep(0.05)
        assert settings.config == {"level": 1}
        assert not answered(served.client.get("/api/guard"))["agents"][0]["patches"][0]["can_roll_back"]


def test_rollback_without_a_patch_says_so(path: Path) -> None:
    with Guard(store=path):
        pass
    with serving(path, writes=True) as served:
        refused = served.post("guard/rollback", {"agent": "coder"})
        assert refused.status_code == 404 and "nothing to roll back" in refused.json()["error"]


def test_changes_of_what_is_not_there_are_errors_that_name_it(path: Path) -> None:
    with serving(path, writes=True) as served:
        for name in ("label", "unblock"):
            refused = served.post(name, {**CHANGES[name], "agent": "nobody"})
            assert refused.status_code == 404 and "nobody/1" in refused.json()["error"]
        assert served.post("label-firing", {"id": "no-such", "label": "good"}).status_code == 404
        assert served.post("lesson/edit", {"id": 99, "fix": "x"}).status_code == 404


def test_changes_of_many_pages_at_once_are_all_kept(path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with serving(path, writes=True) as served, Store(path) as store:
        before = store.count_events()
        with ThreadPoolExecutor(8) as pool:
            bodies = [{**CHANGES["unblock"], "reason": f"reason {number}"} for number in range(40)]
            assert {answer.status_code for answer in pool.map(lambda body: served.post("unblock", body), bodies)} == {
                200
            }
        assert store.count_events() == before + 40
        assert not store.verify()
