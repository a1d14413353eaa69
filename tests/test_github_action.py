"""The GitHub Action of the examples: its files hold together, and its scripts run as they are shipped."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "github-action"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
WORKFLOW: dict[Any, Any] = yaml.safe_load((FOLDER / "workflow.yml").read_text("utf-8"))
STEP_KEYS = {"name", "id", "if", "shell", "env", "run"}

needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "jq"))), reason="needs bash, curl and jq, as GitHub's machines have them"
)


def step(name: str) -> dict[str, Any]:
    return next(each for each in ACTION["runs"]["steps"] if each["name"] == name)


def test_action_has_the_keys_of_a_composite_action() -> None:
    assert ACTION.keys() == {"name", "description", "inputs", "outputs", "runs"}
    assert ACTION["runs"].keys() == {"using", "steps"} and ACTION["runs"]["using"] == "composite"
    for each in ACTION["runs"]["steps"]:
        assert each.keys() <= STEP_KEYS and {"name", "shell", "run"} <= each.keys()
        assert "${{" not in each["run"], "an input in a script's text would be run as a part of it"
    for given in ACTION["inputs"].values():
        assert given.keys() <= {"description", "required", "default"}
        assert ("default" in given) is not given.get("required", False)


def test_action_refers_to_inputs_and_steps_that_are_there() -> None:
    text = (FOLDER / "action.yml").read_text("utf-8")
    assert set(re.findall(r"\binputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    ids = {each["id"] for each in ACTION["runs"]["steps"] if "id" in each}
    assert set(re.findall(r"\bsteps\.([\w-]+)", text)) == ids
    for script in re.findall(r"\$GITHUB_ACTION_PATH/(\S+?)\"", text):
        assert (FOLDER / script).is_file()
    for name in ("Score", "Comment"):
        source = (FOLDER / f"{name.lower()}.sh").read_text("utf-8")
        assert [key for key in step(name)["env"] if key not in source] == [], "each variable is used"


def test_workflow_calls_the_action_with_its_inputs_and_no_more_rights_than_it_needs() -> None:
    assert WORKFLOW.keys() == {"name", True, "permissions", "jobs"}  # YAML 1.1 reads the key `on` as true
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    (job,) = WORKFLOW["jobs"].values()
    assert job.keys() == {"runs-on", "steps"}
    (use,) = (each for each in job["steps"] if each.get("uses", "").startswith("./"))
    given = use["with"].keys()
    assert given <= ACTION["inputs"].keys()
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= given


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_stop_at_errors_and_parse(script: Path) -> None:
    assert "set -euo pipefail" in script.read_text("utf-8")
    assert subprocess.run(["bash", "-n", script], capture_output=True, text=True).stderr == ""


class Api:
    """The comments of one pull request, on the loopback device."""

    def __init__(self, comments: list[dict[str, Any]], status: int = 200) -> None:
        self.asked: list[tuple[str, str, str, dict[str, Any]]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = int(re.search(r"[?&]page=(\d+)", self.path)[1])  # type: ignore[index]
                self.reply(comments[100 * (page - 1) : 100 * page])

            def do_POST(self) -> None:
                self.reply({})

            do_PATCH = do_POST

            def reply(self, answer: object) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                api.asked.append((self.command, self.path, self.headers["Authorization"], body))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        for comment in comments:
            comment["url"] = f"{self.url}{comment['url']}"
        Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a job, with the command of the package under test."""
    commands = tmp_path / "bin"
    commands.mkdir()
    command = commands / "coherence"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m coherence "$@"\n')
    command.chmod(0o755)
    (tmp_path / "runs").mkdir()
    paths = os.pathsep.join((str(commands), str(Path(sys.executable).parent), os.environ["PATH"]))
    files = {name: str(tmp_path / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    return {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        **files,
        "PATH": paths,
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "FILES": "runs/**/*.jsonl",
        "FAIL_ON": "warn",
        "EMBEDDER": "hashing",
        "GITHUB_TOKEN": "secret-token",
        "GITHUB_REPOSITORY": "somebody/agent",
        "PULL_REQUEST": "7",
    }


def run(script: str, machine: dict[str, str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(FOLDER / script)]
    return subprocess.run(command, cwd=tmp_path, env=machine, capture_output=True, text=True, timeout=120)


def write_runs(folder: Path, *, stuck: int, name: str = "stuck") -> None:
    good = [{"role": "user", "content": "List"}, {"role": "assistant", "content": "There are two files."}]
    failed = {"role": "tool", "tool_name": "Bash", "tool_result": "no such file", "is_error": True}
    runs = [{"id": "good", "goal": "List", "steps": good}]
    runs += [{"id": name, "goal": "List", "steps": [failed] * 12} for _ in range(stuck)]
    folder.mkdir(exist_ok=True)
    (folder / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in runs))


@needs_tools
def test_score_sh_writes_the_summary_and_the_status_and_lets_the_job_go_on(
    machine: dict[str, str], tmp_path: Path
) -> None:
    write_runs(tmp_path / "runs" / "deeper", stuck=1, name="```\n@everyone <b>stuck")
    result = run("score.sh", machine, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "status=1\n"
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text("utf-8")
    lines = summary.splitlines()
    assert lines[0] == "### coherence: a run went off course"
    assert (lines[2], summary.count("```")) == ("```text", 2), "no name of a run ends the block"
    good, stuck = lines[3:5]
    assert re.fullmatch(r"[·█]{2} +continue  good +nothing stands out", good)
    # twelve failures in a row
    assert re.match(r"[·█▆▄▂]{11}▂  block     ''' @everyone <b>stuck  ", stuck)
    assert lines[-1] == "`█` green  `▆` yellow  `▄` orange  `▂` red  `·` unknown"


@needs_tools
@pytest.mark.parametrize(
    ("stuck", "status", "says"),
    [pytest.param(0, "0", "all runs are on course", marks=pytest.mark.slow), (-1, "2", "not everything")],
)
def test_score_sh_tells_good_runs_and_missing_files(
    machine: dict[str, str], tmp_path: Path, stuck: int, status: str, says: str
) -> None:
    if stuck == 0:
        write_runs(tmp_path / "runs", stuck=0)
        write_runs(tmp_path / "runs" / "deeper", stuck=0)
        machine["FILES"] = "runs/*.jsonl runs/deeper/a.jsonl"
    result = run("score.sh", machine, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"status={status}\n"
    assert says in (tmp_path / "GITHUB_STEP_SUMMARY").read_text("utf-8")


def comment(number: int, body: str, kind: str = "Bot") -> dict[str, Any]:
    return {"url": f"/comments/{number}", "body": body, "user": {"type": kind}}


MARK = "<!-- coherence -->\nan older result"


@needs_tools
@pytest.mark.parametrize(
    ("comments", "asked"),
    [
        ([], ["GET", "POST /repos/somebody/agent/issues/7/comments"]),
        ([comment(1, "hello"), comment(2, MARK)], ["GET", "PATCH /comments/2"]),
        # somebody else has written the mark
        ([comment(1, MARK, "User")], ["GET", "POST /repos/somebody/agent/issues/7/comments"]),
        ([comment(at, "hello") for at in range(100)] + [comment(100, MARK)], ["GET", "GET", "PATCH /comments/100"]),
    ],
    ids=["none", "an older one", "of somebody else", "on the second page"],
)
def test_comment_sh_writes_one_comment_over_the_older_one(
    machine: dict[str, str], tmp_path: Path, comments: list[dict[str, Any]], asked: list[str]
) -> None:
    api = Api([dict(each) for each in comments])
    folder = tmp_path / "temp" / "coherence"
    folder.mkdir(parents=True)
    (folder / "summary.md").write_text('### coherence: "quoted" $(and) `all`\n', "utf-8")
    try:
        result = run("comment.sh", {**machine, "GITHUB_API_URL": api.url}, tmp_path)
    finally:
        api.close()
    assert result.returncode == 0, result.stderr
    assert [method if method == "GET" else f"{method} {path}" for method, path, _, _ in api.asked] == asked
    assert {token for _, _, token, _ in api.asked} == {"Bearer secret-token"}
    assert api.asked[-1][3] == {"body": '<!-- coherence -->\n### coherence: "quoted" $(and) `all`\n'}
    assert not (folder / "curl").exists(), "the token does not stay"
    assert "secret-token" not in result.stdout + result.stderr


@needs_tools
def test_comment_sh_a_token_without_the_right_costs_a_warning_only(machine: dict[str, str], tmp_path: Path) -> None:
    api = Api([], status=403)
    folder = tmp_path / "temp" / "coherence"
    folder.mkdir(parents=True)
    (folder / "summary.md").write_text("### coherence\n", "utf-8")
    try:
        result = run("comment.sh", {**machine, "GITHUB_API_URL": api.url}, tmp_path)
    finally:
        api.close()
    assert result.returncode == 0
    assert result.stdout.startswith("::warning::coherence could not comment")


@pytest.mark.parametrize("status", ["0", "1", "2"])
def test_action_ends_with_the_status_of_the_score(status: str) -> None:
    last = ACTION["runs"]["steps"][-1]
    assert subprocess.run(["bash", "-c", last["run"]], env={"STATUS": status}).returncode == int(status)
