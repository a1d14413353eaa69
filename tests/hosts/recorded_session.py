"""Recorder of one session of the real client: what hooks were handed, and how long the transcripts were then.

``python tests/hosts/recorded_session.py FOLDER`` plays the scripts and writes ``FOLDER`` anew; the tests in
``tests/integrations/claude_code/test_sameness.py`` play it back.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # this file runs alone

from hosts.claude_client import VERSION, run_claude
from hosts.messages_stub import MessagesStub, Scripts, Step, Text, Tool, Usage, Wait

EVENTS: dict[str, str | None] = {
    "SessionStart": None,
    "UserPromptSubmit": None,
    "PreToolUse": "*",
    "PostToolUse": "Agent|Task",
    "PostToolUseFailure": "*",
    "PostToolBatch": None,
    "PermissionDenied": "*",
    "SubagentStart": None,
    "SubagentStop": None,
    "Stop": None,
    "StopFailure": None,
    "PreCompact": None,
    "PostCompact": None,
    "SessionEnd": None,
}
"""Event that is recorded: its matcher."""

HOOK = """\
import fcntl, json, pathlib, sys
payload = json.load(sys.stdin)
path = pathlib.Path(payload["transcript_path"])
files = [path, *(path.with_suffix("") / "subagents").glob("*.jsonl")]
with open(sys.argv[1], "a") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    lines = {str(each): each.read_bytes().count(b"\\n") for each in files if each.exists()}
    file.write(json.dumps({"lines": lines, "payload": payload}) + "\\n")
"""
"""Hook that keeps its payload, and how many lines each transcript has."""

KEPT_LINES = ("user", "assistant", "summary")
"""Types of a transcript's lines that are kept; the others hold the client's own texts, or nothing that is read."""

DROPPED = ("slug", "version", "gitBranch", "userType", "entrypoint", "requestId", "prompt_snapshot")
"""Fields of lines that are left out."""

PLACE = "/home/user/shop"

_PYTHON = re.compile(r"/[\w./-]+/bin/python3")
_NOTE = re.compile(r"<note>.*?</note>\n?| \(file state is current in your context[^)]*\)", re.DOTALL)


def step(said: str, *calls: Tool, tokens: tuple[int, int, int]) -> Step:
    """Return a step of the model: its words, its calls, and tokens read, read from the cache, and written."""
    read, cached, written = tokens
    usage = {"input_tokens": read, "cache_read_input_tokens": cached, "output_tokens": written}
    return [*([Text(said)] if said else []), *calls, Usage(usage)]


def scripts(project: Path) -> Scripts:
    """Return what the model says and does, to two prompts and as a subagent."""
    shop = str(project / "shop.py")

    def bash(command: str) -> Tool:
        return Tool("Bash", {"command": command, "description": "Run it"})

    asked = {"description": "count rows", "prompt": "[[script:child]] Count the rows of rows.csv."}
    return {
        "fix": [
            step("I look at what is here first.", bash("ls"), tokens=(900, 0, 40)),
            step("", Tool("Read", {"file_path": shop}), tokens=(120, 900, 30)),
            step("The tests show what is wrong with total().", bash("python3 test_shop.py"), tokens=(150, 1_020, 35)),
            step(
                "The generator names the wrong variable.",
                Tool("Edit", {"file_path": shop, "old_string": "in row)", "new_string": "in rows)"}),
                tokens=(180, 1_170, 60),
            ),
            step(
                "Now the tests again, and the second file beside them.",
                bash("python3 test_shop.py"),
                Tool("Read", {"file_path": str(project / "rows.csv")}),
                tokens=(200, 1_350, 70),
            ),
            step("", bash("python3 report.py"), tokens=(90, 1_550, 20)),
            step("The report is missing; I try it once more.", bash("python3 report.py"), tokens=(90, 1_640, 25)),
            step("", bash("python3 report.py"), tokens=(90, 1_730, 20)),
            step("", bash("python3 report.py"), tokens=(90, 1_820, 20)),
            step(
                "A helper counts the rows meanwhile.",
                Tool("Agent", {**asked, "subagent_type": "general-purpose", "run_in_background": False}),
                tokens=(110, 1_910, 55),
            ),
            step("total() is mended: it summed over the wrong name. There is no report.", tokens=(80, 2_020, 45)),
        ],
        "child": [
            step("I count.", bash("wc -l rows.csv"), tokens=(300, 0, 15)),
            step("", bash("wc -l more.csv"), tokens=(60, 300, 12)),
            step("rows.csv has 3 rows; there is no more.csv.", tokens=(50, 360, 18)),
        ],
        "report": [
            step(
                "I write the report.",
                Tool("Write", {"file_path": str(project / "report.py"), "content": "print(6)\n"}),
                tokens=(400, 2_100, 50),
            ),
            step(
                "Another helper looks over it in the background.",
                Tool("Agent", {**asked, "prompt": "[[script:look]] Look over it.", "subagent_type": "general-purpose"}),
                tokens=(70, 2_450, 40),
            ),
            step("", bash("python3 report.py"), tokens=(70, 2_520, 20)),
            step("report.py prints the total, 6.", tokens=(60, 2_590, 22)),
            step("The helper has nothing to add.", tokens=(40, 2_650, 12)),
        ],
        "look": [
            [Wait(1.0), *step("I look.", bash("cat report.py"), tokens=(280, 0, 14))],
            step("It is fine.", tokens=(40, 280, 9)),
        ],
    }


PROMPTS = (
    "[[script:fix]] Mend total() in shop.py so that test_shop.py passes, then run report.py.",
    "[[script:report]] Write the missing report.py so that it prints the total.",
)


def record(folder: Path) -> None:
    """Run the client and write what hooks and transcripts held."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        place = Path(name)
        project = place / "shop"
        project.mkdir()
        (project / "shop.py").write_text("def total(rows):\n    return sum(price for price in row)\n")
        (project / "test_shop.py").write_text("from shop import total\nassert total([1, 2, 3]) == 6\nprint('passed')\n")
        (project / "rows.csv").write_text("1\n2\n3\n")
        (place / "hook.py").write_text(HOOK)
        log = place / "hooks.jsonl"
        entry = {"type": "command", "command": f"{sys.executable} {place / 'hook.py'} {log}", "timeout": 30}
        hooks = {
            event: [{**({"matcher": matcher} if matcher else {}), "hooks": [entry]}]
            for event, matcher in EVENTS.items()
        }
        with MessagesStub(scripts(project)) as stub:
            extra: list[str] = []
            for prompt in PROMPTS:
                done = run_claude(
                    prompt, stub=stub, folder=project, home=place / "home", settings={"hooks": hooks}, extra=extra
                )
                assert done.returncode == 0, done
                extra = ["--resume", done.result["session_id"]]
        hooked = [json.loads(line) for line in log.read_text().splitlines()]
        if os.environ.get("KEEP"):
            shutil.copytree(place, os.environ["KEEP"])
        write(
            folder,
            hooked,
            {str(project): PLACE, str(place): "/home/user", str(project).replace("/", "-"): "-home-user-shop"},
        )


def write(folder: Path, hooked: list[dict[str, Any]], places: dict[str, str]) -> None:
    """Write the transcripts without the vendor's texts, and each payload with the lines that are kept of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    main = Path(hooked[-1]["payload"]["transcript_path"])
    kept: dict[str, list[int]] = {}
    for path in sorted({Path(path) for each in hooked for path in each["lines"]}):
        lines = list(_lines(path))
        kept[str(path)] = [number for number, _ in lines]
        written = folder / ("main.jsonl" if path == main else path.name)
        written.write_text("".join(f"{_placed(line, places)}\n" for _, line in lines))
    with (folder / "hooks.jsonl").open("w") as file:
        for each in hooked:
            lines_then = {
                ("main.jsonl" if Path(path) == main else Path(path).name): sum(at < count for at in kept[path])
                for path, count in each["lines"].items()
            }
            file.write(_placed({"lines": lines_then, "payload": each["payload"]}, places) + "\n")


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(path.read_text().splitlines()):
        found = json.loads(line)
        if found.get("type") in KEPT_LINES:
            yield number, {name: value for name, value in found.items() if name not in DROPPED}


def _placed(value: object, places: dict[str, str]) -> str:
    text = json.dumps(_without_vendor_texts(value), separators=(",", ":"))
    for place, name in places.items():
        text = text.replace(place, name)
    return _PYTHON.sub("python3", text)


def _without_vendor_texts(value: Any) -> Any:
    """Return a value without what the client says to its model in words of its own."""
    if isinstance(value, dict):
        return {name: _without_vendor_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_vendor_texts(each) for each in value]
    if isinstance(value, str) and value.startswith("[Subagent hand-back]"):
        return f"A subagent's report: {value[-40:]}"
    if isinstance(value, str) and value.startswith("Async agent launched"):
        return "A subagent was started."
    return _NOTE.sub("", value) if isinstance(value, str) else value


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    print(f"recorded with Claude Code {VERSION}")
