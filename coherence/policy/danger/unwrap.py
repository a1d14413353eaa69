"""Commands inside commands: what ``sudo``, ``bash -c``, ``find -exec``, ``ssh`` and their like really run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.code import INTERPRETERS, code_of, scripts_in
from coherence.policy.danger.danger import VALUES, Command, after_options, command_of, short
from coherence.policy.danger.shell import MAX_SIGNS, simple_commands
from coherence.policy.danger.signs import count_signs

MAX_DEPTH = 16
"""Commands inside commands that are followed; a text below is only searched for dangerous words."""

SHELLS = word_set("sh bash zsh dash ksh mksh fish ash csh tcsh rbash source . at batch")
"""Programs that run their ``-c`` argument or their input as shell text."""

POWERSHELLS = frozenset({"powershell", "pwsh"})
"""Programs that run PowerShell text; the parts of it that matter here read like shell."""

_SCRIPTS = word_set("eval watch parallel trap iex invoke-expression")

# The keywords stand here because the grammar reads them as programs in places (after `!`), and the rough reading does.
_WRAPPERS = word_set(
    "sudo doas env nohup time nice ionice xargs timeout gtimeout command builtin exec coproc busybox toybox stdbuf "
    "setsid unbuffer chronic caffeinate strace ltrace taskset chrt flock chroot unshare nsenter runuser npx bunx "
    "uvx entr start pkexec systemd-run proxychains proxychains4 firejail wsl { ! if then elif else while until do"
)
"""Programs that run the command in their arguments."""
_OPERAND_FIRST = word_set("timeout gtimeout taskset chrt flock chroot")
"""Those with an operand of their own before that command."""
_RUNNERS = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "conda", "mamba", "micromamba", "rye"), "run"),
    **dict.fromkeys(("bundle", "npm", "pnpm", "yarn", "mise", "direnv"), "exec"),
    "adb": "shell",
}
_CONTAINERS = word_set("docker podman nerdctl docker-compose podman-compose")
_WITH_C = word_set("su script runuser flock vagrant")
_CONTAINER_VALUES = (
    "-e -u -w -v -p -l -m -h --env --user --workdir --env-file --detach-keys --volume --publish --name --network "
    "--entrypoint --mount --platform --memory --cpus --label --hostname --gpus --add-host --index"
)
_RUNNER_VALUES = "-n -p --name --prefix --with --python --directory --project"
_PASSES_ON = lazy_regex(r"\$[@*{]|\beval\b")  # a shell's text that runs its arguments


MAX_SCRIPT = 60_000
"""Characters of one script that are read; Linux hands no program an argument of twice as many."""
MAX_CHARACTERS = 120_000
"""Characters of all scripts of a call that are read: giving one input to many shells would take quadratic time."""
MAX_COMMANDS = 500
"""Commands of a call that are judged."""


class Unwrapper:
    """Yields the commands of a call's scripts and all that they run; what lies beyond the bounds is marked as cut."""

    def __init__(self) -> None:
        self._characters = MAX_CHARACTERS
        self._signs = MAX_SIGNS
        self._commands = MAX_COMMANDS

    def script(self, script: str, depth: int = 0) -> Iterator[Command]:
        """Yield the commands of a shell script."""
        if depth > MAX_DEPTH:
            yield Command(unread=script, text=short(script))
            return
        read = script[: min(MAX_SCRIPT, self._characters)]
        if self._characters < MAX_CHARACTERS:  # the first is bounded by itself; those after it share as many signs
            self._signs -= count_signs(read, self._signs)
            read = read if self._signs >= 0 else ""
        self._characters -= len(read)
        if read:
            for command in simple_commands(read):
                yield from self.words(command, depth)
                if self._commands <= 0:
                    break
        if len(read) < len(script) or self._commands <= 0:
            yield Command(unread=script[:MAX_SCRIPT], text=short(script), cut=True)

    def words(self, command: Command, depth: int = 0) -> Iterator[Command]:
        """Yield a command, then those that it runs."""
        self._commands -= 1
        if depth > MAX_DEPTH:
            yield Command(unread=" ".join((command.program, *command.args)), text=command.text)
            return
        yield command
        for inner in _inner(command):
            if isinstance(inner, str):
                if inner:
                    yield from self.script(inner, depth + 1)
            elif inner:
                unknown = inner[0].startswith(("$", "`"))
                text = short(" ".join(inner[:100]))
                given = {"stdin": command.stdin, "fed_by": command.fed_by, "reads": command.reads}
                part = command_of(inner, dynamic=unknown, text=text, **given)
                yield from self.words(part, depth + 1)


def _inner(command: Command) -> Iterator[str | tuple[str, ...]]:
    """Yield what a command runs: shell texts, and commands cut into words."""
    program, args = command.program, command.args
    if program in SHELLS or program in POWERSHELLS or program in _WITH_C or program == "cmd":
        yield from _shell(command)
    if program in _WRAPPERS:
        # "command -v rm" only asks where rm is.
        if program != "command" or command.flags.isdisjoint(("-v", "-V")):
            skip = int(program in _OPERAND_FIRST)
            yield after_options(args, VALUES.get(program, ""), skip, env=program in ("sudo", "env", "doas"))
        if program == "env":
            yield from (arg[2:] for arg in args[:20] if arg.startswith("-S"))
            if "-S" in args:
                yield " ".join(command.operands)
    elif program in _SCRIPTS:
        yield " ".join(args[:1] if program == "trap" else after_options(args, "-n -t -c"))
    elif program == "ssh":
        yield " ".join(after_options(args, VALUES[program], 1))
        # Without a command, what it reads is run.
        if len(command.operands) < 2:
            yield command.stdin
    elif program in ("find", "fd", "fdfind"):
        yield from _find(args)
    elif program in _CONTAINERS:
        for verb in ("exec", "run"):
            if verb in command.operands[:3]:
                yield after_options(args[args.index(verb) + 1 :], _CONTAINER_VALUES, 1)
                break
    elif program == "git" and command.lead.startswith("config "):
        # git config alias.x '!rm -rf y'
        yield from (arg[1:] for arg in args[:20] if arg.startswith("!"))
    elif program in ("tmux", "screen"):
        # tmux send-keys 'rm -rf y' Enter
        yield from (arg for arg in args[:100] if " " in arg)
    elif program in ("kubectl", "oc", "lxc", "incus") and "--" in args:
        yield args[args.index("--") + 1 :]
    elif program in _RUNNERS and command.lead.startswith(_RUNNERS[program] + " "):
        yield after_options(args[args.index(_RUNNERS[program]) + 1 :], _RUNNER_VALUES)
    elif program in INTERPRETERS:
        yield from scripts_in(code_of(command))


def _shell(command: Command) -> Iterator[str | tuple[str, ...]]:
    args = command.args
    for at, arg in enumerate(args):
        low = arg.lower()
        if (command.program in POWERSHELLS and low in ("-c", "-command", "/c")) or (
            command.program == "cmd" and low in ("/c", "/k")
        ):
            yield " ".join(args[at + 1 :])
            return
        if (
            command.program not in POWERSHELLS
            and arg.startswith("-")
            and "c" in arg
            and (arg == "--command" or arg[1] != "-")
        ):
            rest = after_options(args[at + 1 :], "")
            yield "".join(rest[:1])
            if rest and _PASSES_ON.search(rest[0]):
                yield " ".join(rest[2:])  # bash -c '"$@"' _ rm -rf y: the "_" is $0
            return
    first = command.operands[0] if command.operands else "-"
    if first in ("-", "/dev/stdin") or command.program in ("at", "batch") or "-s" in command.flags:
        yield command.stdin
    elif first.startswith("<("):
        yield "$" + first[1:]


def _find(args: Sequence[str]) -> Iterator[tuple[str, ...]]:
    start = -1
    for at, arg in enumerate(args):
        if start < 0 and arg in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            start = at + 1
        elif start >= 0 and arg in (";", "+", "\\;"):
            yield tuple(args[start:at])
            start = -1
    if start >= 0:
        yield tuple(args[start:])
