"""What a script has done before a command of it: the folder it changed to, what it has downloaded or copied."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.code import INTERPRETERS
from coherence.policy.danger.danger import Command
from coherence.policy.danger.disclosure import SENDERS, names_secret
from coherence.policy.danger.unwrap import SHELLS

_DOWNLOADERS = word_set("curl wget iwr invoke-webrequest aria2c fetch http certutil bitsadmin start-bitstransfer")
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
_IN_FOLDER = word_set("rm find fd mv shred rimraf ri rd del remove-item terraform tofu terragrunt pulumi cdk")
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
    added: frozenset[str] = frozenset()
    for command in commands:
        program = command.program
        if folder and program in _IN_FOLDER:
            command = msgspec.structs.replace(command, folder=folder)
        if program == "git":
            if command.lead.startswith("add ") and (secret := names_secret(" ".join(command.operands[1:50]))):
                added |= {secret} if ".env." not in secret else added
            elif added and command.lead.startswith("push "):
                command = msgspec.structs.replace(command, holding=added)
        elif copied and (program in SENDERS or program in INTERPRETERS):
            command = msgspec.structs.replace(command, holding=_held(copied))
        if (fetched and _runs(command, fetched)) or (
            program in _FROM_AFAR and any("://" in arg for arg in command.args)
        ):
            command = msgspec.structs.replace(command, fetched=True)
        yield command
        if files and (text_ := _fed(command, files)):
            yield msgspec.structs.replace(command, stdin=text_, indirect=True)
        if read is not None and program == "make" and command.stdin and "-" in command.args:
            yield from (msgspec.structs.replace(inner, indirect=True) for inner in read(_recipe(command.stdin)))
        if files and read is not None and (name := next((name for name in files if _runs(command, {name})), None)):
            inside = _inside(command, files.pop(name), read)
            yield from (msgspec.structs.replace(inner, indirect=True, folder=folder) for inner in inside)
        if read is not None and program in ("crontab", "at", "batch") and command.stdin:
            yield from _later(read, command.stdin, folder)
        if program in ("cat", "tee", "echo", "printf"):
            text = command.stdin or " ".join(command.args)
            if program == "printf" or "-e" in command.flags:
                text = text.replace("\\n", "\n").replace("\\t", "\t")
            if program == "tee" and command.operands and text:
                files[_base(command.operands[-1])] = text
                if read is not None and _RUN_LATER.search(command.operands[-1]) is not None:
                    yield from _later(read, text, folder)
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
            if text and read is not None and _RUN_LATER.search(command.writes) is not None:
                yield from _later(read, text, folder)
            if command.text.lstrip().startswith(("curl", "wget")) or _DECODES.search(command.text) is not None:
                fetched.add(_base(command.writes))


_DECODES = lazy_regex(r"\|\s?(?:base64 (?:-d|-D|--decode)|xxd -r|openssl enc)\b[^|]{0,60}$")
_RUN_LATER = lazy_regex(
    r"(?:^|/)(?:\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv|xprofile|bash_login|bash_logout)|rc\.local)$|\.git/hooks/\w"
    r"|/etc/(?:cron|profile|init\.d|bash\.bashrc)"
)
"""Files that a shell, a clock or version control runs by itself."""
_TIMES = lazy_regex(r"^[ \t]{0,8}(?:@\w{4,8}|(?:[\d*/,-]{1,20}[ \t]+){5}(?:root[ \t]+)?)", re.MULTILINE)


def _later(read: Callable[[str], Iterable[Command]], text: str, folder: str) -> Iterator[Command]:
    """Yield the commands of a text that is run later by itself."""
    for inner in read(_TIMES.sub("", text)):
        yield msgspec.structs.replace(inner, indirect=True, folder=folder)


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
    if command.program in _RECIPES:
        return read(_recipe(text))
    if options:
        return (Command(program=command.program, args=(min(options), text), text=command.text),)
    return read(text)


_RECIPES = {
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile"),
}
"""Programs, and the files whose commands they run."""
_RECIPE_LINE = lazy_regex(r"^(?:[ \t]+[@+-]{0,3}|[\w.-]{1,60}:[^\n;]{0,60};\s?)(?P<line>\S[^\n]{0,2000})", re.MULTILINE)
_SCRIPT_ENTRY = lazy_regex(r"\"[\w:-]{1,40}\" ?: ?\"(?P<line>[^\"\n]{1,2000})\"")


def _recipe(text: str) -> str:
    """Return the commands of a Makefile or of a package's scripts, as a shell reads them."""
    entries = _SCRIPT_ENTRY if text.lstrip().startswith("{") else _RECIPE_LINE
    lines = "\n".join(found["line"] for found in entries.finditer(text))
    return lines.replace("$(HOME)", "$HOME").replace("$$", "$")


def _is_file(word: str) -> bool:
    return len(word) > 1 and ("." in word or "/" in word) and not names_secret(word)


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


_FROM_AFAR = word_set("mshta msiexec regsvr32 wscript cscript")
"""Programs that run what stands at an address."""
_TO_FILE = {"wget": "O"}


def _saved(command: Command) -> Iterator[str]:
    """Yield the names under which a download is saved."""
    args = command.args
    named = False
    for at, arg in enumerate(args):
        if (
            arg in ("-o", "--output", "-O", "--output-document", "-OutFile", "-Destination")
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
        elif arg.startswith("-") and not arg.startswith("--") and arg[-1:] in _TO_FILE.get(command.program, "o"):
            named = True
            yield _base("".join(args[at + 1 : at + 2]))
        elif command.program in ("certutil", "bitsadmin", "start-bitstransfer") and "://" in arg:
            yield _base("".join(args[at + 1 : at + 2]))
    if not named and (command.program != "curl" or "-O" in command.flags or "--remote-name" in command.flags):
        yield from (_base(arg.partition("?")[0]) for arg in args if "://" in arg)


_CLIENTS = word_set("psql mysql mariadb sqlite3 cqlsh mongosh mongo clickhouse-client")


def _fed(command: Command, files: Mapping[str, str]) -> str:
    """Return the text of a written file that the client of a database is given."""
    if command.program not in _CLIENTS:
        return ""
    words = (*command.args[:40], *command.reads.split()[:2])
    return next((files[name] for word in words if (name := _base(word.partition("=")[2] or word)) in files), "")


_STARTS = ("./", "/", "~", "sudo", "$", ".\\", "%", "start-process", "&", "nohup", "(", "exec")


def _runs(command: Command, fetched: set[str]) -> bool:
    program = command.program
    if program in _RECIPES:
        return not fetched.isdisjoint((*_RECIPES[program], *map(_base, command.operands[:1])))
    if (
        program in SHELLS
        or program in INTERPRETERS
        or program in ("start-process", "start", "saps", "rundll32", "java")
    ):
        return any(_base(word) in fetched for word in (*command.operands[:1], *command.reads.split()[:1]))
    names = {name.casefold() for name in fetched}
    first = _base(command.text.split(" ", 1)[0].strip("\"'&")).lower()
    if program + ".exe" in names or (first != program and first in names):
        return True
    if program in names and f"/{program}" in command.text.lower():
        return True
    return program in names and command.text.lstrip("\"'").lower().startswith(_STARTS)
