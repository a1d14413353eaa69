"""Reading a call's arguments: shell texts, command lines cut into words, and every named text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from shlex import join

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.detector import read_arguments
from coherence.policy.danger.danger import ToolUse

MAX_VALUES = 10_000
"""Arguments that are looked at, at every depth together."""

MAX_NESTED = 20_000
"""Characters of a text that is read as JSON."""

_WORD = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SHELL_TOOL = word_set("bash sh zsh shell terminal powershell pwsh cmd console ssh")
_RUN = word_set("run exec execute")
_RUN_WHAT = word_set("command commands cmd script in process")
_PROCESS = word_set("subprocess process spawn popen exec argv")
_WORD_KEYS = word_set("args arguments argv command cmd subcommand action flags options")
_SHELL_KEYS = word_set(
    "command commands cmd cmds bash shell shell_command shellcommand cmdline command_line commandline argv"
)
_SCRIPT_KEYS = frozenset({"script", "code"})
_LANGUAGE_KEYS = ("language", "lang", "interpreter", "runtime", "kernel")
_TALK_KEYS = word_set(
    "description reason explanation cwd workdir working_directory timeout id session session_id thought title env "
    "comment message"
)
_CODE_TOOL = word_set("python ipython jupyter notebook node javascript js repl interpreter ruby typescript sql")
_RUNS_CODE = _CODE_TOOL - {"sql"}
_LOOKS_LIKE_CODE = lazy_regex(
    r"^[^\S\n]*+(?:import |from \w+ import|def |class |print\(|del |async |await |const |let |var |function "
    r"|[\w.]++(?: = |\())",
    re.MULTILINE,
)


@lru_cache(maxsize=512)
def words_of(tool: str) -> tuple[str, ...]:
    """Return the words of a tool's own name, without the server's that some protocols put in front.

    Examples
    --------
    >>> words_of("mcp__github__deleteFile"), words_of("run_command")
    (('delete', 'file'), ('run', 'command'))
    """
    own = tool[:500].rstrip("_").rpartition("__")[2]
    return tuple(word.lower() for word in _WORD.findall(own))


@lru_cache(maxsize=512)
def is_shell(words: tuple[str, ...]) -> bool:
    """Return whether a tool's name says that it runs shell text."""
    # "run_python" runs code, as no shell does.
    if not _CODE_TOOL.isdisjoint(words):
        return False
    return not _SHELL_TOOL.isdisjoint(words) or (
        not _RUN.isdisjoint(words) and (len(words) == 1 or not _RUN_WHAT.isdisjoint(words))
    )


def runs_code(words: tuple[str, ...]) -> bool:
    """Return whether a tool's name says that it runs code in another language than shell."""
    return not _RUNS_CODE.isdisjoint(words)


def read_call(tool: str, arguments: bytes | object) -> ToolUse:
    """Find the shell texts of a call, and everything else that rows look at."""
    value = read_arguments(bytes(arguments)) if isinstance(arguments, bytes | bytearray | memoryview) else arguments
    words = words_of(tool)
    shell = is_shell(words)
    found = ToolUse(words=words)
    if isinstance(value, str):
        (found.scripts if shell else found.pairs).append(value if shell else ("", value))  # type: ignore[arg-type]
        if not shell and value.split(" ", 1)[0] in PROGRAMS.intersection(words):
            found.of_program.append(value)
        return found
    if isinstance(value, list | tuple):
        value = {"command" if shell else "": value}
    language = ""
    stack: list[object] = [value]
    seen = 0
    while stack and seen < MAX_VALUES:
        item = stack.pop()
        if isinstance(item, Mapping):
            if not item.keys().isdisjoint(_LANGUAGE_KEYS):
                language = next(
                    (str(item[key]).lower() for key in _LANGUAGE_KEYS if isinstance(item.get(key), str)), language
                )
            for key, inner in item.items():
                seen += 1
                _read_one(found, str(key).lower(), inner, item, shell, language)
                nested = _nested(inner)
                if not isinstance(nested, str) and isinstance(nested, Mapping | list | tuple):
                    stack.append(nested)
        elif isinstance(item, list | tuple):
            seen += len(item)
            stack.extend(inner for inner in item[:MAX_VALUES] if isinstance(inner, Mapping | list | tuple))
    program = next((word for word in words if word in PROGRAMS), "") if not PROGRAMS.isdisjoint(words) else ""
    if program and found.argvs and not shell:
        found.argvs[:] = [argv if argv[0] == program else (program, *argv) for argv in found.argvs]
    elif program and not shell:
        _read_program(program, found)
    # An argument of a name that nobody has thought of may be the command.
    if shell and not found.scripts and not found.argvs:
        found.scripts.extend(text for key, text in found.pairs if key not in _TALK_KEYS)
    return found


PROGRAMS = word_set(
    "git docker podman kubectl oc helm terraform tofu pulumi aws gcloud az gh glab psql mysql redis mongosh rm dd "
    "curl heroku npm restic velero"
)
"""Programs after which tools are named that take the program's own words."""


def _read_program(program: str, found: ToolUse) -> None:
    """Read the words of a tool that is named after a program: ``git(args=["push", "--force"])``."""
    texts = [value for key, value in found.pairs if key in _WORD_KEYS and len(value) <= 2_000]
    text = texts[0] if len(texts) == 1 else join(texts)
    if not text and len(found.words) > 1 and found.words[0] == program:
        named = [value for _, value in found.pairs if len(value) <= 60 and value not in ("true", "false", "0")]
        flags = [f"--{key}" for key, value in found.pairs if value == "true"]
        found.of_program.append(join([*found.words, *named[:8], *flags[:8]]))
    if text:
        found.of_program.append(text if text.split(" ", 1)[0] == program else f"{program} {text}")


def _read_one(
    found: ToolUse, key: str, value: object, beside: Mapping[object, object], shell: bool, language: str
) -> None:
    if isinstance(value, str):
        found.pairs.append((key, value))
        if key in _SHELL_KEYS or (key in _SCRIPT_KEYS and _is_shell_text(found, value, shell, language)):
            args = beside.get("args", beside.get("arguments"))
            if isinstance(args, list | tuple) and args and not any(blank in value for blank in " \n;&|"):
                found.argvs.append((value, *(str(arg) for arg in args if isinstance(arg, str | int))))
            else:
                found.scripts.append(value)
    elif isinstance(value, bool) or value in ({}, 0):
        found.pairs.append((key, str(value).lower()))
    elif isinstance(value, list | tuple):
        texts = tuple(item for item in value[:MAX_VALUES] if isinstance(item, str))
        found.pairs.extend((key, text) for text in texts)
        if key == "args" and texts and not _PROCESS.isdisjoint(found.words) and beside.keys().isdisjoint(_SHELL_KEYS):
            found.argvs.append(texts)
        if key in _SHELL_KEYS and texts:
            # "commands" holds one command a text, "command" the words of one.
            if key.endswith("s") or len(texts) == 1:
                found.scripts.extend(texts)
            else:
                found.argvs.append(texts)


def _nested(value: object) -> object:
    """Return the arguments that stand as JSON inside a text; any other value as it is."""
    if isinstance(value, str) and value[:1] in ("{", "[") and value[-1:] in ("}", "]") and len(value) <= MAX_NESTED:
        return read_arguments(value.encode("utf-8", "replace"))
    return value


def _is_shell_text(found: ToolUse, text: str, shell: bool, language: str) -> bool:
    if language:
        return not _SHELL_TOOL.isdisjoint(language.split())
    if shell:
        return True
    return _CODE_TOOL.isdisjoint(found.words) and _LOOKS_LIKE_CODE.search(text) is None
