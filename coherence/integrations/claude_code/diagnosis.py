"""Diagnosis of an installation: all that the hooks need, one check each, and the command that mends it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from coherence.core.errors import CoherenceError
from coherence.core.settings import load_for_hooks, project_file, user_file
from coherence.integrations.claude_code.delivery import check_delivery
from coherence.integrations.claude_code.gaps import find_gaps
from coherence.integrations.claude_code.hook_sources import HookSource, hook_sources
from coherence.integrations.claude_code.port_check import check_port
from coherence.integrations.claude_code.settings import (
    EVENTS,
    HTTP_EVENTS,
    SCOPES,
    Scope,
    disabling_file,
    hook_groups,
    settings_path,
)
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.folder import control, only_one
from coherence.integrations.daemon.hook_command import NEVER_FAILS, hook_command
from coherence.integrations.daemon.http_place import FILE, is_http_hook, read_place
from coherence.integrations.hook_settings import Group, is_ours, read_settings
from coherence.providers.minilm import MiniLMEmbedder
from coherence.providers.readers import read_transcripts
from coherence.store import schema
from coherence.store.connections import connect, explained, patiently
from coherence.store.rows import PURGED_SESSION

Status: TypeAlias = Literal["OK", "WARN", "FAIL"]
"""``WARN``: nothing is recorded yet, or something is worth a look. ``FAIL``: the hooks do not do what they should."""

OLDEST_CLIENT = (2, 1, 197)
"""Oldest version of the client that the hooks were tried with."""

CLIENT_S = 10.0
"""Seconds that the client may take to tell its version."""

ROUND_TRIPS = 20
"""Requests by which the daemon's answers are timed."""

SLOW_MS, TOO_SLOW_MS = 50.0, 500.0
"""Milliseconds of a round trip from which on an agent notices, and from which on hooks are in its way."""

LOG_LINES = 200
"""Newest lines of the daemon's log that are looked at."""

MAX_LOG = 256_000
"""Bytes of these lines."""

SPOOL_S = 1.0
"""Seconds in which a daemon takes in what waits for it."""

WAKING_S = 60.0
"""Seconds after which a daemon that was started and did not come never will."""

MAX_QUICK_CHECK = 200_000_000
"""Bytes of the largest store whose structure is checked; a second or so."""

AHEAD_S = 60.0
"""Seconds by which an event may lie in the future."""

MIN_FREE, LOW_FREE = 50_000_000, 500_000_000
"""Bytes of free space without which a store cannot go on, and below which it soon cannot."""

_ERROR = re.compile(r"(?:[\d-]+ [\d:,]+ (?:ERROR|CRITICAL) |Error: |\S+: No module named )")
"""Beginning of a line of the log: of the daemon, of its command, and of a Python that lacks this package."""


class Check(msgspec.Struct, frozen=True):
    """Result of one check.

    Parameters
    ----------
    name : str
        What was checked, in a word.
    status : {"OK", "WARN", "FAIL"}
        How it stands.
    found : str
        What was found, for people.
    mend : str
        The command, or the step, that mends it; empty where there is nothing to do.
    """

    name: str
    status: Status
    found: str
    mend: str = ""


class _Asked(NamedTuple):
    """Answer of the daemon, asked once for all checks."""

    answer: dict[str, Any] | None
    """``None``: none runs, or it does not answer."""
    problem: str = ""
    """Why it cannot be told whether one runs, or that it does not answer."""
    mend: str = ""


_Finding: TypeAlias = tuple[Status, str, str]
"""Status, what was found, and what mends it."""


def diagnose(state: Path, store: Path, project: Path | None = None, *, delivery_s: float | None = None) -> list[Check]:
    """Check what the hooks of Claude Code need; nothing is changed, unless the delivery is checked.

    A check that fails itself is a ``FAIL`` with its error. While the daemon is asked, the current folder is the state
    folder; it is what it was afterwards.

    Parameters
    ----------
    state : Path
        The folder of :func:`~coherence.integrations.daemon.hook_command.state_folder`.
    store : Path
        File in which the daemon keeps everything.
    project : Path, optional
        Folder of the project whose settings count; by default the current one.
    delivery_s : float, optional
        Check by a canary whether what hooks say reaches the agent, and wait so many seconds for a session that shows
        it.
    """
    files = {scope: settings_path(scope, project) for scope in SCOPES}
    sources = hook_sources(files)
    asked = _ask(state)
    checks: dict[str, Callable[[], _Finding]] = {
        "client": _client,
        "hooks": partial(_hooks, sources, files, state),
        "state": partial(_state, state),
        "daemon": partial(_daemon, sources, state, asked),
        "port": partial(check_port, state),
        "settings": _settings,
        "latency": partial(_latency, state, asked),
        "spool": partial(_spool, state, asked),
        "store": partial(_store, store),
        "gaps": partial(_gaps, store),
        "transcript": partial(_transcript, files["user"].parent / "projects"),
        "embedder": _embedder,
        "clock": partial(_clock, store),
        "disk": partial(_disk, state, store),
    }
    if delivery_s is not None:
        checks["delivery"] = partial(check_delivery, state, delivery_s)
    return [_run(name, check) for name, check in checks.items()]


def _run(name: str, check: Callable[[], _Finding]) -> Check:
    try:
        return Check(name, *check())
    except CoherenceError as error:  # its message is for people
        return Check(name, "FAIL", str(error))
    except Exception as error:
        return Check(name, "FAIL", f"the check failed: {type(error).__name__}: {error}")


def mend(state: Path) -> list[str]:
    """Mend what is safe to mend, and return what was done, for people.

    The state folder is made private, the socket of a daemon that was killed is removed, and so is the note that a
    daemon is being started, once it is older than :data:`WAKING_S`. What cannot be mended is left as it is.
    """
    done: list[str] = []
    for step in (_mend_mode, _mend_socket, _mend_waking):
        with suppress(OSError):
            done += step(state)
    return done


def _mend_mode(state: Path) -> Iterator[str]:
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(folder)
        if _can_be_private(found) and stat.S_IMODE(found.st_mode) & 0o777 != 0o700:
            os.fchmod(folder, 0o700)
            yield f"made {state} private: its mode was {_mode(found)}, and is 0700"
    finally:
        os.close(folder)


def _mend_socket(state: Path) -> Iterator[str]:
    if not _is_private(state) or not os.path.lexists(state / hook.SOCKET):
        return
    with chdir(state), only_one() as alone:  # so that none comes to life meanwhile
        if alone:
            os.unlink(hook.SOCKET)
            yield f"removed {state / hook.SOCKET}: no daemon listened there"


def _mend_waking(state: Path) -> Iterator[str]:
    age = _age_of_waking(state)
    if _is_private(state) and age is not None and age > WAKING_S:
        os.unlink(state / hook.WAKING)
        yield f"removed {state / hook.WAKING}: the daemon that it announced {age:,.0f} s ago did not come"


def _ask(state: Path) -> _Asked:
    """Ask the daemon how it is; whatever goes wrong is told, too."""
    try:
        with chdir("."):  # which the question changes
            return _Asked(control(state, "status"))
    except Exception as error:
        if isinstance(error.__cause__, TimeoutError):
            problem = f"one listens in {state}, and does not answer within {hook.ANSWER_S:g} s"
            return _Asked(None, problem, "end the process `coherence daemon run`; the next hook starts another")
        return _Asked(None, str(error))


def _client() -> _Finding:
    oldest = ".".join(map(str, OLDEST_CLIENT))
    path = shutil.which("claude")
    if path is None:
        return "WARN", "no command `claude` on the PATH", "npm install -g @anthropic-ai/claude-code"
    try:
        said = subprocess.run(  # noqa: S603 - what the user would start
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=CLIENT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "WARN", f"{path} --version gave no answer within {CLIENT_S:g} s", f"{shlex.quote(path)} --version"
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", said.stdout.decode("utf-8", "replace"))
    if found is None:
        return "WARN", f"{path} does not tell its version", f"{shlex.quote(path)} --version"
    if tuple(map(int, found.groups())) < OLDEST_CLIENT:
        return "WARN", f"{path} is {found[0]}; the hooks were tried from {oldest} on", "claude update"
    return "OK", f"{path} is {found[0]}", ""


def _hooks(sources: list[HookSource], files: dict[Scope, Path], state: Path) -> _Finding:
    off = disabling_file(files[scope] for scope in reversed(SCOPES))
    if off is not None:
        return "FAIL", f"no hook runs: disableAllHooks is set in {off}", f"take disableAllHooks out of {off}"
    if (gone := next((each for each in sources if each.is_plugin and not each.path.is_file()), None)) is not None:
        return "FAIL", f"the plug-in is installed from {gone.path}, which does not exist", f"{gone.init} --yes"
    installed = {source: hooks for source in sources if (hooks := _ours(source.path))}
    if not installed:
        return "WARN", "no settings of Claude Code have them", "coherence init --yes"
    findings = [_installed(source, hooks, state) for source, hooks in installed.items()]
    worst = max(findings, key=lambda finding: ("OK", "WARN", "FAIL").index(finding[0]))
    if worst[0] != "OK":
        return worst
    if os.environ.get("COHERENCE_DISABLED", "").strip().lower() not in hook.ENABLED:
        return "WARN", "COHERENCE_DISABLED is set here, which switches them off", "unset COHERENCE_DISABLED"
    places, last = ", ".join(str(source.path) for source in installed), list(installed)[-1]
    if len({_command(hooks) for hooks in installed.values()}) > 1:
        return "WARN", f"different commands run for the same event, from {places}", last.remove
    if len(installed) > 1 and last.is_plugin:
        return "WARN", f"two hooks run for each event, which is counted once, from {places}", last.remove
    return "OK", "; ".join(found for _, found, _ in findings), ""


class _Ours(NamedTuple):
    """A hook of this package in settings."""

    event: str
    matcher: Any
    hook: dict[str, Any]


def _ours(path: Path) -> list[_Ours]:
    return [
        _Ours(event, group.get("matcher"), each)
        for event, groups in read_settings(path).get("hooks", {}).items()
        for group in groups
        for each in group["hooks"]
        if is_ours(each)
    ]


def _installed(source: HookSource, hooks: list[_Ours], state: Path) -> _Finding:
    """Judge the hooks of one file."""
    path = source.path
    command = _command(hooks)
    observes = command.endswith(" --observe")
    posts = any(is_http_hook(each.hook) for each in hooks)
    again = source.init + " --observe" * observes + " --http" * posts + " --yes"
    for each in hooks:
        if each.event in EVENTS and each.matcher not in (None, "", "*", EVENTS[each.event]):
            # It would be replaced where it stands.
            found = f"{path}: the hook for {each.event} is for {each.matcher!r} alone"
            return "FAIL", found, again if source.is_plugin else f"{source.remove} && {again}"
    place = read_place(state) if posts else None
    if posts and place is None:
        return "FAIL", f"{path}: the hooks are posted to a port, and {state / FILE} names none", again
    groups = hook_groups(command, place, observe=observes)
    if wrong := _change(hooks, groups) or _wrong_command(command, observes=observes):
        return "FAIL", f"{path}: {wrong}", again
    words = shlex.split(command)
    if Path(words[4]) != state:
        asks = f"COHERENCE_STATE={shlex.quote(words[4])} coherence doctor"
        return "WARN", f"{path}: the hooks meet the daemon in {words[4]}, and this looks at {state}", asks
    if command != hook_command(state, observe=observes):
        return "WARN", f"{path}: the hooks belong to another installation: {words[0]} {words[3]}", again
    how = "which only look on" if observes else "all with the same command"
    how += f", {len(HTTP_EVENTS)} of them posted" * posts
    return "OK", f"{path}: a hook for each of {len(EVENTS)} events, {how}", ""


def _command(hooks: list[_Ours]) -> str:
    """Return what the hooks run, empty if none runs anything."""
    found = next((each.hook["command"] for each in hooks if "command" in each.hook), "")
    return str(found).removesuffix(NEVER_FAILS)


def _change(hooks: list[_Ours], groups: dict[str, Group]) -> str:
    """Return what is different from what ``coherence init`` writes, but for matchers and the command itself."""
    missing = [event for event in EVENTS if not any(each.event == event for each in hooks)]
    if missing:
        return f"{len(missing)} of {len(EVENTS)} events have no hook: {', '.join(missing)}"
    if len({each.hook["command"] for each in hooks if "command" in each.hook}) > 1:
        return "the hooks run different commands"
    changed = [each.event for each in hooks if each.event not in groups or [each.hook] != groups[each.event]["hooks"]]
    return f"changed by hand: the hook for {', '.join(changed)}" if changed else ""


def _wrong_command(command: str, *, observes: bool) -> str:
    """Return why a command cannot be that of a hook."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation mark without its other
        words = []
    if len(words) != 5 + observes or words[1:3] != ["-I", "-S"]:
        return f"the command was changed: {command}"
    if not (os.path.isfile(words[0]) and os.access(words[0], os.X_OK)):
        return f"the hooks need {words[0]}, which does not exist or cannot be run"
    if not os.path.isfile(words[3]):
        return f"the hooks need {words[3]}, which does not exist"
    return ""


def _hook_build(sources: list[HookSource]) -> str:
    """Return the build that the hooks have, else that of this package."""
    for source in sources:
        with suppress(CoherenceError, OSError, ValueError, IndexError):
            return str(os.stat(shlex.split(_command(_ours(source.path)))[3]).st_mtime_ns)
    return hook.build()


def _settings() -> _Finding:
    user, project = user_file(), project_file()
    try:
        load_for_hooks(user, project)
    except ValueError as error:
        return "FAIL", f"settings are left out: {error}", "coherence config check"
    files = " and ".join(str(each) for each in (user, project) if each is not None and each.is_file())
    return "OK", f"sessions are followed with {files}" if files else "the default settings are used", ""


def _state(state: Path) -> _Finding:
    try:
        found = os.lstat(state)
    except FileNotFoundError:
        return "WARN", f"{state} is not there yet; the first hook makes it", ""
    elsewhere = "COHERENCE_STATE=ANOTHER_FOLDER coherence init --yes"
    if stat.S_ISLNK(found.st_mode):
        return "FAIL", f"{state} is a symbolic link, which hooks do not follow", elsewhere
    if not stat.S_ISDIR(found.st_mode):
        return "FAIL", f"{state} is no folder", elsewhere
    if not _can_be_private(found):
        return "FAIL", f"{state} belongs to somebody else, or is for all", elsewhere
    if stat.S_IMODE(found.st_mode) & 0o777 != 0o700:
        return (
            "FAIL",
            f"{state} has the mode {_mode(found)} and must have 0700",
            f"chmod 700 {shlex.quote(str(state))}",
        )
    return "OK", f"{state} is private", ""


def _can_be_private(found: os.stat_result) -> bool:
    """Tell whether a folder is of this user; one with the sticky bit is for all, such as /tmp."""
    return found.st_uid == os.getuid() and not found.st_mode & stat.S_ISVTX


def _is_private(state: Path) -> bool:
    try:
        found = os.lstat(state)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and _can_be_private(found) and not found.st_mode & 0o077


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"


def _daemon(sources: list[HookSource], state: Path, asked: _Asked) -> _Finding:
    if asked.problem:
        return "FAIL", asked.problem, asked.mend
    log = state / hook.LOG
    error = _newest_error(log)
    told = f"; newest error in its log: {error}" if error else ""
    reads = f"tail -n 40 {shlex.quote(str(log))}" if error else ""
    if asked.answer is None:
        age = _age_of_waking(state)
        if os.path.lexists(state / hook.SOCKET):
            return "WARN", f"none runs; one that was killed has left its socket{told}", "coherence doctor --fix"
        if age is not None and age > WAKING_S:
            return "WARN", f"one was started {age:,.0f} s ago and did not come{told}", reads or "coherence doctor --fix"
        return "WARN", f"none runs; the next hook starts it{told}", reads
    who = f"process {asked.answer['pid']} runs, with {_count(len(asked.answer['sessions']), 'session')}"
    if asked.answer["build"] != _hook_build(sources):
        return "WARN", f"{who}, and is of another version than the hooks{told}", "coherence daemon stop"
    return ("WARN", f"{who}{told}", reads) if error else ("OK", who, "")


def _age_of_waking(state: Path) -> float | None:
    """Return how many seconds ago a hook has started a daemon that has not come yet."""
    with suppress(OSError):
        return time.time() - os.lstat(state / hook.WAKING).st_mtime
    return None


def _newest_error(log: Path) -> str:
    """Return the newest error in a log, empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - MAX_LOG, 0))
            lines = file.read(MAX_LOG).decode("utf-8", "replace").splitlines()[-LOG_LINES:]
    except FileNotFoundError:
        return ""
    newest, in_traceback, follows = "", False, False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            in_traceback = True
        elif in_traceback and line and not line.startswith(" "):
            newest = f"{newest}: {line}" if follows else line
            in_traceback = follows = False
        elif not in_traceback:
            follows = _ERROR.match(line) is not None
            newest = line if follows else newest
    return newest


def _latency(state: Path, asked: _Asked) -> _Finding:
    if asked.answer is None:
        return "WARN", "not measured: no daemon answers", ""
    cold = min(_time_ms(_start_python) for _ in range(3))
    with chdir("."):
        warm = sorted(_time_ms(lambda: control(state, "status")) for _ in range(ROUND_TRIPS))
    middle, high = statistics.median(warm), warm[-(-ROUND_TRIPS * 95 // 100) - 1]
    status: Status = "FAIL" if high > TOO_SLOW_MS else "WARN" if high > SLOW_MS else "OK"
    found = f"the daemon answers in {middle:.1f} ms (p50), {high:.1f} ms (p95); Python starts in {cold:.0f} ms"
    return status, found, "" if status == "OK" else "coherence daemon stop"


def _start_python() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], stdin=subprocess.DEVNULL, check=True)


def _time_ms(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def _spool(state: Path, asked: _Asked) -> _Finding:
    count = _waiting(state)
    if count and asked.answer is not None:
        time.sleep(SPOOL_S)
        count = _waiting(state)
    if not count:
        return "OK", "nothing waits for the daemon", ""
    if asked.answer is None:
        return "OK", f"{_count(count, 'payload')} for the daemon to take in when it starts", ""
    log = shlex.quote(str(state / hook.LOG))
    return "WARN", f"{_count(count, 'payload')} that the daemon does not take in", f"tail -n 40 {log}"


def _waiting(state: Path) -> int:
    return sum(1 for _ in (state / hook.SPOOL).glob("*.payload"))


def _store(store: Path) -> _Finding:
    if not store.exists():
        return "WARN", f"{store} is not there yet; the daemon makes it", ""
    size = store.stat().st_size
    verify = f"coherence audit verify {shlex.quote(str(store))}"
    owner, version = _fetch(store, _OWNER)[0]
    if owner != schema.APPLICATION_ID:
        if size and (owner or version):
            return "FAIL", f"{store} is a file of another program", "name another one in COHERENCE_STORE"
        return "WARN", f"{store} is empty", ""
    if version > schema.newest_version():
        return "FAIL", f"{store} is of a newer version of this package", "pip install -U coherence-sensor"
    if size < MAX_QUICK_CHECK and (told := _fetch(store, "PRAGMA quick_check(1)")[0][0]) != "ok":
        return "FAIL", f"{store} is damaged: {told}", verify
    _fetch(store, "SELECT * FROM events ORDER BY id DESC LIMIT 1")
    count = _fetch(store, _HOOK_SESSIONS, (PURGED_SESSION,))[0][0]
    log = Path(f"{store}-wal")
    place = f"{store}, {_size(size + (log.stat().st_size if log.exists() else 0))}"
    if not count:
        return "WARN", f"{place}: no session of Claude Code yet", ""
    return "OK", f"{place}: {_count(count, 'session')} of Claude Code", ""


_OWNER = "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
_HOOK_SESSIONS = "SELECT count(*) FROM sessions WHERE source = 'hook' AND config <> ?"
_NEWEST = "SELECT ts FROM events ORDER BY id DESC LIMIT 1"


def _gaps(store: Path) -> _Finding:
    if not store.exists() or _fetch(store, _OWNER)[0][0] != schema.APPLICATION_ID:
        return "OK", "nothing is recorded yet", ""
    found, shows = find_gaps(partial(_fetch, store))
    return ("WARN", found, shows) if found else ("OK", "hooks have told everything, and in time", "")


def _fetch(store: Path, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return rows of a store, read without the right to change it."""
    path = Path(os.path.abspath(store))
    with explained(path):
        # To look for a log makes one where there is none.
        connection = connect(path, "ro" if os.path.exists(f"{path}-wal") else "ro&immutable=1")
        try:
            return patiently(path, hook.ANSWER_S, lambda: connection.execute(sql, values).fetchall())
        finally:
            connection.close()


def _transcript(folder: Path) -> _Finding:
    newest, path = max(((_changed(path), path) for path in folder.glob("*/*.jsonl")), default=(0.0, folder))
    if not newest:
        return "WARN", f"none in {folder} yet", ""
    try:
        runs = read_transcripts(path, "claude-code")
    except (CoherenceError, OSError) as error:
        return "WARN", f"the newest one cannot be read: {error}", ""
    return "OK", f"the newest one is read: {_count(sum(len(run.steps) for run in runs), 'step')} in {path}", ""


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _embedder() -> _Finding:
    embedder = MiniLMEmbedder()
    embedder.embed("x")
    return "OK", f"the shipped model gives vectors of {embedder.dimensions} dimensions", ""


def _clock(store: Path) -> _Finding:
    rows = _fetch(store, _NEWEST) if store.exists() and _fetch(store, _OWNER)[0][0] == schema.APPLICATION_ID else []
    if not rows:
        return "OK", "no event yet to compare it with", ""
    ahead = rows[0][0] - time.time()
    if ahead > AHEAD_S:
        return "WARN", f"the newest event lies {ahead:,.0f} s in the future", "set the clock of this machine"
    return "OK", f"the newest event is {max(-ahead, 0):,.0f} s old", ""


def _disk(state: Path, store: Path) -> _Finding:
    free, place = min((shutil.disk_usage(place).free, str(place)) for place in map(_existing, (store, state)))
    status: Status = "FAIL" if free < MIN_FREE else "WARN" if free < LOW_FREE else "OK"
    mends = "" if status == "OK" else f"free some space at {place}"
    return status, f"{_size(free)} are free at {place}", mends


def _existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that is there."""
    return next(each for each in (path, *path.parents) if each.exists())


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _size(number: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number / 1e3:,.1f} kB"
