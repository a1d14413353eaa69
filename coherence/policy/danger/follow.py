"""The effect of a script's earlier commands: the folder it is in, and what it has downloaded, written or copied."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.code import INTERPRETERS
from coherence.policy.danger.danger import Command
from coherence.policy.danger.disclosure import SENDERS, names_secret
from coherence.policy.danger.unwrap import SHELLS

_DOWNLOADERS = word_set("curl wget iwr invoke-webrequest aria2c fetch http")
_COPIERS = word_set(
    "cp mv tar zip 7z gzip base64 cat gpg openssl xxd tee head tail sort ln rsync install env printenv split jq sed "
    "awk grep dd"
)
_IN_FOLDER = word_set("rm find fd mv shred rimraf ri rd del remove-item terraform tofu terragrunt pulumi cdk")
_CLIENTS = word_set("psql mysql mariadb sqlite3 cqlsh mongosh mongo clickhouse-client")
_OUTPUT = word_set("-o --output -O --output-document -OutFile")
_TIMES = lazy_regex(r"^[ \t]{0,8}(?:@\w{4,8}|(?:[\d*/,-]{1,20}[ \t]+){5}(?:root[ \t]+)?)", re.MULTILINE)
_RECIPE = lazy_regex(r"^[ \t]+[@+-]{0,3}(?P<line>\S[^\n]{0,2000})", re.MULTILINE)
_STARTS = ("./", "/", "~", "sudo", "$", ".\\", "%", "start-process", "&", "nohup", "(", "exec")
_DECODES = lazy_regex(r"\|\s?(?:base64 (?:-d|-D|--decode)|xxd -r|openssl enc)\b[^|]{0,60}$")
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
    folder = text = ""
    fetched: set[str] = set()
    files: dict[str, str] = {}
    added: frozenset[str] = frozenset()
    copied: list[Command] = []  # read when something is sent: few scripts send anything
    for command in commands:
        program = command.program
        if folder and program in _IN_FOLDER:
            command = replace(command, folder=folder)
        if program == "git":
            if command.lead.startswith("add ") and (secret := names_secret(" ".join(command.operands[1:50]))):
                added |= {secret} if ".env." not in secret else added
            elif added and command.lead.startswith("push "):
                command = replace(command, holding=added)
        elif copied and (program in SENDERS or program in INTERPRETERS):
            command = replace(command, holding=_held(copied))
        if fetched and _runs(command, fetched):
            command = replace(command, fetched=True)
        yield command
        if read is not None and program in ("crontab", "at") and command.stdin:
            yield from (replace(inner, indirect=True) for inner in read(_TIMES.sub("", command.stdin)))
        if files:
            yield from _given(command, files, folder, read)
        if program in ("cat", "tee", "echo", "printf"):
            text = command.stdin or " ".join(command.args)
            if program == "printf" or "-e" in command.flags:
                text = text.replace("\\n", "\n").replace("\\t", "\t")
        writes = command.operands[-1] if program == "tee" and command.operands else command.writes
        if writes and text and program in ("", "tee") and len(files) < MAX_FILES:
            files[_base(writes)] = text
        if program in ("cd", "pushd", "chdir", "set-location"):
            target = next((word for word in command.operands if word != "/d"), "~")
            folder = posixpath.normpath(posixpath.join(folder, target)) if target else folder
        elif program in _DOWNLOADERS:
            fetched |= {name for name in _saved(command) if name}
        elif (program in _COPIERS or command.writes) and len(copied) < MAX_COPIES:
            copied.append(command)
        if command.writes and not program and _prints_download(command.text):
            fetched.add(_base(command.writes))


def _prints_download(text: str) -> bool:
    return text.lstrip().startswith(("curl", "wget")) or _DECODES.search(text) is not None


def _given(
    command: Command, files: dict[str, str], folder: str, read: Callable[[str], Iterable[Command]] | None
) -> Iterator[Command]:
    """Yield what a command does with a file that the script has written: it gives it to a client, or runs it."""
    if command.program in _CLIENTS:
        words = (*command.args[:40], *command.reads.split()[:2])
        names = (_base(word.partition("=")[2] or word) for word in words)
        yield from (replace(command, stdin=files[name], indirect=True) for name in names if name in files)
    name = next((name for name in files if _runs(command, {name})), None)
    if name is None or read is None:
        return
    text, options = files.pop(name), INTERPRETERS.get(command.program)
    if command.program == "make":
        text = "\n".join(found["line"] for found in _RECIPE.finditer(text)).replace("$(HOME)", "$HOME")
    if options:
        # Any of the options would do; the least one is the same in each process.
        yield Command(program=command.program, args=(min(options), text), text=command.text, indirect=True)
    else:
        yield from (replace(inner, indirect=True, folder=folder) for inner in read(text))


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


def _is_file(word: str) -> bool:
    return len(word) > 1 and ("." in word or "/" in word) and not names_secret(word)


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _saved(command: Command) -> Iterator[str]:
    """Yield the names under which a download is saved."""
    args, curl = command.args, command.program == "curl"
    named = False
    for at, arg in enumerate(args):
        flag, _, value = arg.partition("=")
        letters = arg.startswith("-") and not arg.startswith("--") and arg[-1:] == ("o" if curl else "O")
        if not value and ((flag in _OUTPUT and not (curl and flag == "-O")) or letters):
            value = next((word for word in args[at + 1 : at + 2] if not word.startswith("-")), "")
        if value and (flag in _OUTPUT or letters):
            named = True
            yield _base(value)
    if not named and (not curl or "-O" in command.flags or "--remote-name" in command.flags):
        yield from (_base(arg.partition("?")[0]) for arg in args if "://" in arg)


def _runs(command: Command, names: set[str]) -> bool:
    """Return whether a command runs one of some files."""
    program = command.program
    if program == "make":
        return any(name.lower() == "makefile" for name in names)
    if program in SHELLS or program in INTERPRETERS or program in ("start-process", "start", "java"):
        return any(_base(word) in names for word in (*command.operands[:1], *command.reads.split()[:1]))
    first = _base(command.text.split(" ", 1)[0].strip("\"'&"))
    if first != program and first in names:
        return True
    return program in names and (
        f"/{program}" in command.text.lower() or command.text.lstrip("\"'").lower().startswith(_STARTS)
    )
