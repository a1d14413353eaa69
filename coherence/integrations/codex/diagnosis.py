"""Diagnosis of the hooks in Codex: whether they are all there, and whether the user has trusted them."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from coherence.core.errors import CoherenceError
from coherence.integrations.claude_code.diagnosis import Check
from coherence.integrations.codex.settings import EVENTS, NEXT_STEP, OFF_SWITCH, disabling_file, settings_path
from coherence.integrations.codex.settings import hook_groups as groups_for
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_settings import is_ours, read_settings

ANSWER_S = 10.0
"""Seconds that Codex may take to tell which hooks it trusts."""

_REQUESTS = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "coherence", "version": "1"}}},
    {"method": "initialized"},
    {"id": 2, "method": "hooks/list", "params": {"cwds": ["/"]}},
)


def diagnose_codex(state: Path) -> list[Check]:
    """Check the hooks in Codex; nothing where it has none of this package.

    Which of them are trusted is asked of ``codex app-server``, for Codex alone knows how it compares them.

    Parameters
    ----------
    state : Path
        The folder of :func:`~coherence.integrations.daemon.hook_command.state_folder`.
    """
    path = settings_path()
    try:
        hooks = read_settings(path).get("hooks", {})
    except (CoherenceError, OSError) as error:
        return [Check("codex", "FAIL", str(error))]
    ours = {
        event: [each for group in groups for each in group["hooks"] if is_ours(each)] for event, groups in hooks.items()
    }
    commands = {str(each.get("command")) for found in ours.values() for each in found}
    if not commands:
        return []
    return [_installed(path, hooks, commands, state), _trusted(commands)]


def _installed(path: Path, hooks: dict[str, Any], commands: set[str], state: Path) -> Check:
    observes = all("--observe" in command for command in commands)
    again = f"coherence init --host codex{' --observe' if observes else ''} --yes"
    off = disabling_file([path])
    if off is not None:
        return Check("codex", "FAIL", f"no hook runs: {OFF_SWITCH} is set in {off}", f"take it out of {off}")
    expected = groups_for(hook_command(state, observe=observes, host="codex"))
    missing = [event for event in EVENTS if not any(is_ours(each) for each in _hooks_of(hooks.get(event, [])))]
    if missing:
        found = f"{path}: {len(missing)} of {len(EVENTS)} events have no hook: {', '.join(missing)}"
        return Check("codex", "FAIL", found, again)
    for event, group in expected.items():
        if group not in hooks[event]:
            found = f"{path}: the hook for {event} was changed, or belongs to another installation or state folder"
            return Check("codex", "FAIL", found, again)
    return Check("codex", "OK", f"{path}: a hook for each of {len(EVENTS)} events")


def _hooks_of(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for group in groups:
        yield from group["hooks"]


def _trusted(commands: set[str]) -> Check:
    name = "codex-trust"
    program = shutil.which("codex")
    if program is None:
        return Check(name, "WARN", "no command `codex` on the PATH to ask", "npm install -g @openai/codex")
    listed = _ask(program)
    if listed is None:
        ask = f"{shlex.quote(program)} --version"
        return Check(name, "WARN", f"{program} does not tell which hooks it trusts; 0.169.0 does", ask)
    ours = [each for each in listed if each.get("command") in commands]
    skipped = [each for each in ours if each.get("trustStatus") not in ("trusted", "managed")]
    if skipped:
        events = ", ".join(str(each.get("eventName")) for each in skipped)
        found = f"Codex skips {len(skipped)} of {len(ours)} hooks, which nobody has trusted as they are: {events}"
        return Check(name, "FAIL", found, NEXT_STEP.partition(":")[0])
    if not ours:
        return Check(name, "FAIL", "Codex does not know the hooks", "coherence init --host codex --yes")
    if off := [str(each.get("eventName")) for each in ours if each.get("enabled") is False]:
        return Check(name, "FAIL", f"hooks are switched off in Codex: {', '.join(off)}", "start codex and enter /hooks")
    return Check(name, "OK", f"Codex trusts all {len(ours)} of them")


def _ask(program: str) -> list[dict[str, Any]] | None:
    """Return the hooks that Codex knows, ``None`` if it does not tell."""
    # Without its plug-ins, for whose list it would look on the network.
    command = [program, "-c", "features.plugins=false", "app-server"]
    alarm: threading.Timer | None = None
    try:
        with subprocess.Popen(  # noqa: S603 - what the user would start
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:  # it ends when its input does
            alarm = threading.Timer(ANSWER_S, process.kill)
            alarm.start()
            return _talk(process)
    except OSError:  # it cannot be started, or has ended before it was asked
        return None
    finally:
        if alarm is not None:
            alarm.cancel()


def _talk(process: subprocess.Popen[bytes]) -> list[dict[str, Any]] | None:
    if process.stdin is None or process.stdout is None:
        return None
    process.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in _REQUESTS))
    process.stdin.flush()
    return next((found for line in process.stdout if (found := _listed(line)) is not None), None)


def _listed(line: bytes) -> list[dict[str, Any]] | None:
    """Return the hooks of an answer, ``None`` if the line is something else."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        answer = json.loads(line)
        if answer.get("id") == 2:
            return [hook for folder in answer["result"]["data"] for hook in folder["hooks"]]
    return None
