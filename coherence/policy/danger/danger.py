"""Rows of the table of dangers, and the command or the call that a row looks at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import shown

DRY = ("--dry-run", "--dryrun", "--help", "--version", "--whatif", "-WhatIf")
"""Flags with which nearly every program only prints what it would do."""

_CLUSTER = lazy_regex(r"-[A-Za-z0-9]+")
_SUFFIX = lazy_regex(r"\.(?:exe|cmd|bat|com)$")
_ASSIGNMENT = lazy_regex(r"\w+=.*", re.DOTALL)
VALUES = {
    "sudo": "-u -g -h -p -C -r -t -U -D -R -T --user --group --host --prompt --chdir",
    "doas": "-u -C",
    "env": "-u -C --unset --chdir",
    "time": "-f -o",
    "nice": "-n --adjustment",
    "ionice": "-c -n",
    "xargs": "-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file --replace",
    **dict.fromkeys(("timeout", "gtimeout"), "-s -k --signal --kill-after"),
    "exec": "-a",
    "stdbuf": "-i -o -e --input --output --error",
    "caffeinate": "-t -w",
    **dict.fromkeys(("strace", "ltrace"), "-e -o -p -s -u"),
    "flock": "-w -E --timeout",
    "nsenter": "-t --target",
    "runuser": "-u -g",
    "npx": "-p --package",
    "uvx": "--from --with",
    "pkexec": "--user",
    "systemd-run": "-p -u --unit --property",
    **dict.fromkeys(("proxychains", "proxychains4"), "-f"),
    "wsl": "-d -u",
    "ssh": "-i -p -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w",
    "git": "-C -c --git-dir --work-tree --namespace --exec-path",
    **dict.fromkeys(("docker", "podman", "nerdctl"), "-H --host --context -c --config -l --log-level"),
    **dict.fromkeys(("docker-compose", "podman-compose"), "-f --file -p --project-name --profile"),
    **dict.fromkeys(
        ("kubectl", "oc", "helm", "k3s"),
        "-n --namespace --context --kube-context --kubeconfig --cluster --user -s --server --token",
    ),
    "aws": "--region --profile --output --endpoint-url --query --color",
    **dict.fromkeys(("gcloud", "az", "gh", "heroku", "fly"), "--project --account -R --repo -a --app"),
    "systemctl": "-H -M --host --machine -t --type",
    **dict.fromkeys(("redis-cli", "valkey-cli"), "-h -p -a -n -u --user --pass -s"),
    "npm": "--prefix -w --workspace",
    "tmux": "-L -S -f -c",
}
"""Options before the first operand that are followed by a value, by program."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One simple shell command, with its wrappers (``sudo``, ``env`` …) already taken off.

    Attributes
    ----------
    program
        Base name in lower case, without ``.exe``; empty where there is none, or where it is known only at run time.
    args
        The words after it, unquoted.
    flags
        Options before ``--``, values cut off at ``=``; ``-rf`` gives ``-rf``, ``-r`` and ``-f``; ``--`` if given.
    operands
        Words that are no options, without the values of options that stand before the first operand.
    lead
        The first four operands, each followed by a space: what a row's ``verbs`` are compared with.
    writes, appends
        File that a redirection writes, and whether it only appends.
    stdin
        What the command reads on its input, where the script says it (here-document, ``echo … |``).
    fed_by
        Name of a program that downloads or decodes (or ``yes``) earlier in the same pipeline.
    unread
        Text whose meaning is known only at run time, or that is no readable shell; usually empty.
    text
        The command as written, at most 200 characters.
    reads
        What a redirection or a variable of the script brings in: a file's name, or the substitution as written.
    folder
        Folder that the script has changed to before, as far as it says; usually empty.
    fetched
        True if the script has downloaded what this command runs.
    indirect
        True if it stands in a file that the script has written before and runs, or in the arguments of a tool that is
        named after its program: only enforced rows look at it.
    holding
        Files into which the script has copied a secret before.
    cut
        True if it stands for the rest of a text that is longer than what is read.
    """

    program: str = ""
    args: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    operands: tuple[str, ...] = ()
    lead: str = ""
    writes: str = ""
    appends: bool = False
    stdin: str = ""
    fed_by: str = ""
    unread: str = ""
    text: str = ""
    reads: str = ""
    folder: str = ""
    fetched: bool = False
    indirect: bool = False
    holding: frozenset[str] = frozenset()
    cut: bool = False


class ToolUse(msgspec.Struct, kw_only=True):
    """One tool call: its words, its arguments, and the shell text in them.

    Attributes
    ----------
    words
        The tool's name in lower case, cut into words: ``mcp__fs__deleteFile`` gives ``delete``, ``file``.
    pairs
        Every argument at every depth: its name in lower case, and its value if that is a text.
    scripts, argvs
        Shell texts, and command lines cut into words.
    of_program
        Shell texts of a tool that is named after a program.
    """

    words: tuple[str, ...]
    pairs: list[tuple[str, str]] = []
    scripts: list[str] = []
    argvs: list[tuple[str, ...]] = []
    of_program: list[str] = []

    def values(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the texts of the arguments with these names, in their order."""
        wanted = names if isinstance(names, frozenset) else frozenset(names)
        return iter([value for name, value in self.pairs if name in wanted])


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Words by which a request asks for exactly what a row finds.

    Attributes
    ----------
    acts
        One of these must stand in the sentence.
    things
        One of these too, unless the sentence names what the call is done to.
    addresses
        True if what the call is done to is an address: then only addresses in the sentence are held against it.
    enough
        True if an act and the name of what the call is done to are enough, without one of the things.
    named
        Acts that count only where the sentence names what the call is done to.
    """

    acts: str
    things: str
    addresses: bool = False
    enough: bool = True
    named: str = ""


class Danger(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table: it fires where everything it asks for is true.

    Attributes
    ----------
    name, kind
        The row's unique name, and the group it belongs to, such as ``delete``.
    says
        What happens, as the end of a sentence that starts with the command: ``deletes files``.
    call
        True if it looks at calls of tools (:class:`ToolUse`), by ``test`` alone, and not at shell commands.
    programs
        Names of the programs; empty for every command. A name that ends in ``*`` is a prefix.
    verbs
        What the operands must start with, one of these: ``("s3 rm", "s3 rb")``.
    flags
        One of these must be given.
    unless
        None of these may be given; help and dry runs unless told otherwise.
    test
        What else must be true of the command or the call: a check that returns a bool, or yields the names of what it
        is done to.
    enforced
        True if ``check`` refuses such a command whatever else is found, unless somebody asks for exactly that.
    asking
        Words by which somebody does.
    targets
        Names of what it is done to, where ``test`` yields none: databases, paths, branches, addresses. A request for
        another one asks for something else.
    weighs
        True if it counts as destroying something where nobody asked for that, in the sign ``destructive_unasked``; rows
        that stand beside wider ones do not.

    Examples
    --------
    >>> Danger(name="mine", kind="deploy", says="deploys", programs=("deploy",), flags=("--prod",)).name
    'mine'
    """

    name: str
    kind: str
    says: str
    call: bool = False
    programs: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    unless: tuple[str, ...] = DRY
    test: Callable[[Any], bool | Iterable[str]] | None = None
    enforced: bool = False
    asking: Asking | None = None
    targets: Callable[[Any], Iterable[str]] | None = None
    weighs: bool = True

    def about(self, program: str) -> bool:
        """Return whether the row looks at this program."""
        if not self.programs or program in self.programs:
            return True
        return any(name.endswith("*") and program.startswith(name[:-1]) for name in self.programs)

    def fires(self, given: Command | ToolUse) -> tuple[str, ...] | None:
        """Return what a dangerous command or call is done to, as far as it is named; ``None`` if it is none."""
        if isinstance(given, Command):
            if self.verbs and not any(given.lead.startswith(verb + " ") for verb in self.verbs):
                return None
            if self.flags and given.flags.isdisjoint(self.flags):
                return None
            if given.flags and not given.flags.isdisjoint(self.unless):
                return None
        found: bool | Iterable[str] = self.test is None or self.test(given)
        if found is False:
            return None
        named: tuple[str, ...] = ()
        if isinstance(found, Iterable):
            named = tuple(islice(found, MAX_TARGETS))
            found = bool(named)
        if not found:
            return None
        return named or (tuple(self.targets(given))[:MAX_TARGETS] if self.enforced and self.targets else ())


def check_danger(row: object) -> None:
    """Raise TypeError unless something is a row of the table."""
    if not isinstance(row, Danger):
        raise TypeError(f"dangers must hold rows of the class Danger, not {shown(row)}")


MAX_TARGETS = 8
"""Things that a call is done to, of which a request must name one."""

UNJUDGED = "unjudged"
"""Kind of the enforced row about a call that is too long to be judged: it warns, and refuses nothing."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A destructive call.

    Attributes
    ----------
    name, kind
        Of the row that fired.
    what
        One plain phrase: ``rm -rf y deletes files``.
    part
        The command, or the tool's name, that is the reason; at most 200 characters.
    asking, targets
        Of an enforced row: words by which somebody asks for exactly that, and what the call is done to.
    """

    name: str
    kind: str
    what: str
    part: str
    asking: Asking | None = None
    targets: tuple[str, ...] = ()


def flags_of(args: Iterable[str]) -> frozenset[str]:
    """Return the options among a command's words.

    Examples
    --------
    >>> sorted(flags_of(["-rf", "x", "--force=yes", "--dry-run=none", "--", "-q"]))
    ['--', '--force', '-f', '-r', '-rf']
    """
    found: set[str] = set()
    for arg in args:
        if not arg.startswith("-") or arg == "-":
            continue
        name, _, value = arg.partition("=")
        # kubectl runs in earnest with --dry-run=none.
        if value in ("none", "false"):
            continue
        found.add(name)
        if arg == "--":
            break
        if _CLUSTER.fullmatch(name):
            found.update("-" + letter for letter in name[1:])
    return frozenset(found)


def command_of(argv: Sequence[str], *, dynamic: bool = False, **fields: Any) -> Command:
    """Return a command by its words and other fields; ``dynamic``: its program is known only at run time.

    Examples
    --------
    >>> found = command_of(("/usr/bin/Git.exe", "-C", "x", "push", "-f", "origin"))
    >>> found.program, found.operands, found.lead
    ('git', ('push', 'origin'), 'push origin ')
    """
    name = argv[0] if argv and not dynamic else ""
    program = name.replace("\\", "/").rpartition("/")[2].lower()
    program = _SUFFIX.sub("", program) if "." in program else program
    args = tuple(argv[1:])
    operands = after_options(args, VALUES.get(program, ""))
    operands = tuple([arg for arg in operands if arg == "-" or not arg.startswith("-")])
    lead = " ".join((*operands[:4], ""))
    return Command(program=program, args=args, flags=flags_of(args), operands=operands, lead=lead, **fields)


def after_options(args: Sequence[str], valued: str, skip: int = 0, *, env: bool = False) -> tuple[str, ...]:
    """Return the words from the first operand on, ``skip`` operands later; ``valued`` names options with a value."""
    at, with_value = 0, valued.split()
    while at < len(args):
        arg = args[at]
        if arg.startswith("-") and arg != "-":
            at += 2 if arg in with_value else 1
        elif env and _ASSIGNMENT.fullmatch(arg):
            at += 1
        elif skip:
            skip -= 1
            at += 1
        else:
            break
    return tuple(args[at:])


def short(text: str, most: int = 200) -> str:
    """Return a text on one line, cut to ``most`` characters and fit for UTF-8."""
    line = " ".join(text[: 4 * most].split())
    cut = line if len(line) <= most and len(text) <= 4 * most else line[: most - 1] + "…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode("utf-8")
