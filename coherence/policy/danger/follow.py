"""What a script has done before a command of it: the folder it changed to, what it has downloaded or copied."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator

import msgspec

from coherence.policy.danger.code import INTERPRETERS
from coherence.policy.danger.danger import Command
from coherence.policy.danger.disclosure import SENDERS, names_secret
from coherence.policy.danger.unwrap import SHELLS

_DOWNLOADERS = frozenset({"curl", "wget", "iwr", "invoke-webrequest", "aria2c", "fetch", "http"})
_COPIERS = frozenset(
    {
        "cp",
        "mv",
        "tar",
        "zip",
        "7z",
        "gzip",
        "base64",
        "cat",
        "gpg",
        "openssl",
        "xxd",
        "tee",
        "head",
        "tail",
        "sort",
        "ln",
        "rsync",
    }
    | {"install", "env", "printenv", "split", "jq", "sed", "awk", "grep", "dd"}
)
_IN_FOLDER = frozenset(
    [
        "rm",
        "find",
        "fd",
        "mv",
        "shred",
        "rimraf",
        "ri",
        "rd",
        "del",
        "remove-item",
        "terraform",
        "tofu",
        "terragrunt",
        "pulumi",
        "cdk",
    ]
)
MAX_FILES = 32
MAX_COPIES = 200


def followed(commands: Iterable[Command], read: Callable[[str], Iterable[Command]] | None = None) -> Iterator[Command]:
    """Yield a script's commands, each with what the ones before it have done.

    Parameters
    ----------
    commands
        Of one script, in their order.
    read
        Reads the text of a file that the script has written and runs, as a script.

    Examples
    --------
    >>> first, second = followed([
    ...     Command(program="cd", args=("/",), operands=("/",)),
    ...     Command(program="rm", args=("-rf", "*"), operands=("*",)),
    ... ])
    >>> second.folder
    '/'
    """
    folder = ""
    fetched: set[str] = set()
    copied: list[Command] = []  # read when something is sent: few scripts send anything
    text = ""
    files: dict[str, str] = {}
    for command in commands:
        program = command.program
        if folder and program in _IN_FOLDER:
            command = msgspec.structs.replace(command, folder=folder)
        if copied and (program in SENDERS or program in INTERPRETERS):
            command = msgspec.structs.replace(command, holding=_held(copied))
        if fetched and _runs(command, fetched):
            command = msgspec.structs.replace(command, fetched=True)
        yield command
        if files and read is not None and (name := next((name for name in files if _runs(command, {name})), None)):
            inside = _inside(command, files.pop(name), read)
            yield from (msgspec.structs.replace(inner, indirect=True, folder=folder) for inner in inside)
        if program in ("cat", "tee", "echo", "printf"):
            text = command.stdin or " ".join(command.args)
            if program == "tee" and command.operands and text:
                files[_base(command.operands[-1])] = text
        if program in ("cd", "pushd", "chdir", "set-location"):
            target = next((word for word in command.operands if word != "/d"), "~")
            folder = posixpath.normpath(posixpath.join(folder, target)) if target else folder
        elif program in _DOWNLOADERS:
            fetched |= {name for name in _saved(command) if name}
        elif (program in _COPIERS or command.writes) and len(copied) < MAX_COPIES:
            copied.append(command)
        if command.writes and not program:
            if text and len(files) < MAX_FILES:
                files[_base(command.writes)] = text
            if command.text.lstrip().startswith(("curl", "wget")):
                fetched.add(_base(command.writes))


def _held(commands: Iterable[Command]) -> frozenset[str]:
    """Return the files into which commands have copied a secret."""
    holding: frozenset[str] = frozenset()
    copies = False
    for command in commands:
        if command.writes:
            holding |= {command.writes} if copies else frozenset()
            continue
        read = f"{' '.join(command.args)[:4_000]} {command.reads}"
        dumps = command.program in ("env", "printenv") and not command.operands
        copies = dumps or bool(names_secret(read, holding))
        if copies and len(holding) < MAX_FILES:
            own = (word.partition("=")[2] if word.startswith(("of=", "--output=")) else word for word in command.args)
            holding |= {word for word in own if word[:1] != "-" and word[-1:] != "/" and _is_file(word)}
    return holding


def _inside(command: Command, text: str, read: Callable[[str], Iterable[Command]]) -> Iterable[Command]:
    """Return the commands of a file that is run: of a script, or one that holds the code of another language."""
    options = INTERPRETERS.get(command.program)
    if options:
        return (Command(program=command.program, args=(min(options), text), text=command.text),)
    return read(text)


def _is_file(word: str) -> bool:
    return len(word) > 1 and ("." in word or "/" in word) and not names_secret(word)


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _saved(command: Command) -> Iterator[str]:
    """Yield the names under which a download is saved."""
    args = command.args
    named = False
    for at, arg in enumerate(args):
        if (
            arg in ("-o", "--output", "-O", "--output-document", "-OutFile")
            and at + 1 < len(args)
            and not args[at + 1].startswith("-")
        ):
            if command.program == "curl" and arg == "-O":
                continue
            named = True
            yield _base(args[at + 1])
        elif arg.startswith(("--output=", "--output-document=")):
            named = True
            yield _base(arg.partition("=")[2])
        elif arg.startswith("-") and arg[-1:] == "o" and not arg.startswith("--") and at + 1 < len(args):
            named = True
            yield _base(args[at + 1])
    if not named and (command.program != "curl" or "-O" in command.flags or "--remote-name" in command.flags):
        yield from (_base(arg.partition("?")[0]) for arg in args if "://" in arg)


def _runs(command: Command, fetched: set[str]) -> bool:
    program = command.program
    if program in SHELLS or program in INTERPRETERS:
        return any(_base(word) in fetched for word in (*command.operands[:1], *command.reads.split()[:1]))
    return program in {name.casefold() for name in fetched} and command.text.lstrip("\"'").startswith(
        ("./", "/", "~", "sudo", "$")
    )
