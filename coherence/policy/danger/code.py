"""Code in other languages that a shell command or a tool runs: what deletes files, what runs shell text."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.policy.danger.danger import Command
from coherence.policy.danger.paths import is_guarded
from coherence.policy.danger.sql import destroys_data

GIVEN_CODE = "(code)"
"""Program of the code that a tool is given: its language is not known."""

INTERPRETERS: dict[str, frozenset[str]] = {
    GIVEN_CODE: frozenset({"-c"}),
    **dict.fromkeys(("python", "python2", "python3", "pypy3", "py", "ipython"), frozenset({"-c"})),
    **dict.fromkeys(
        ("node", "nodejs", "bun", "deno", "ruby", "perl", "lua", "osascript"), frozenset({"-e", "-p", "-E", "--eval"})
    ),
    "php": frozenset({"-r"}),
    "awk": frozenset(),
    "gawk": frozenset(),
}
"""Interpreters and the options that are followed by code."""

_DELETES = lazy_regex(
    r"\bos\s*\.\s*(?:remove|unlink|rmdir|removedirs|truncate|kill|killpg)\s*\("
    r"|\brmtree\s*\(|\.\s*(?:unlink|rmdir)\s*\(|\bfrom\s+os\s+import\s[^\n]*\b(?:remove|unlink|rmdir)\b"
    r"|\b(?:rm|unlink|rmdir|rimraf|truncate)(?:Sync)?\s*\(|\bremoveSync\s*\(|\bemptyDirSync\s*\("
    r"|\bDeno\s*\.\s*remove(?:Sync)?\s*\(|\bprocess\s*\.\s*kill\s*\("
    r"|\bFile\s*\.\s*delete\b|\b(?:FileUtils|Dir)\s*\.\s*(?:rm\w*|delete|unlink|rmdir|remove_\w+)\b"
    r"|\bunlink\s+[$@\"'<(]|\bos\s*\.\s*remove\s*\(|\bdrop_?(?:table|database|collection|all)\s*\(|\bdelete_?many\s*\(\s*\{\s*\}",
    re.IGNORECASE,
)
_RUNS = lazy_regex(
    r"\b(?:system|os\.execute|popen|execSync|execFileSync|execFile|exec|spawnSync|spawn|shell_exec|passthru|run|call|check_call"
    r"|check_output|Popen|getoutput|execl|execvp|execv)\s*\(?\s*(?:\[\s*)?[frb]{0,2}(?=(?P<rest>[\"'`][^\n]{0,2000}))"
)
_WRITES = lazy_regex(
    r"\bopen\(\s*[\"'](?P<open>[^\"'\n]{1,500})[\"']\s*,\s*[\"'][wx]|\bwriteFile(?:Sync)?\(\s*[\"'](?P<write>[^\"'\n]{1,500})[\"']"
    r"|\bPath\(\s*[\"'](?P<path>[^\"'\n]{1,500})[\"']\s*\)\.write_"
)
_LITERAL = lazy_regex(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`([^`\n]*)`')
_QUERIES = lazy_regex(
    r"\b(?:execute|executescript|executemany|query|raw|text)\s*\(\s*[frb]{0,2}[\"'`]{1,3}(?P<sql>[^\"`]{0,2000})"
)
_IN_ENV = r"(?:\b(?:os\.)?environ(?:\.get)?|\$?\bENV|\bgetenv|\$_SERVER|\$_ENV)[\[({{]\s?[\"']?{}[\"']?\s?[\])}}]"
_ROOTS = lazy_regex(
    r"(?P<open>[$#]?\{)?(?:(?P<here>(?:\b(?:process|Deno|os|Path|pathlib\.Path|Cwd)(?:\.|::)|\b)(?:getcwdb?|cwd|Getwd)\(\)"
    r"|\bDir\.pwd\b|\bprocess\.env\.PWD\b|\b__dirname\b|" + _IN_ENV.format("PWD") + r")"
    r"|(?P<home>\b(?:pathlib\.)?Path\.home\(\)|(?:\brequire\([\"'](?:node:)?os[\"']\)\.|\bos\.|\b)homedir\(\)|\bDir\.home\b"
    r"|\bprocess\.env\.(?:HOME|USERPROFILE)\b|\bos\.UserHomeDir\(\)|\b(?:os\.path\.)?expanduser\([\"']~/?[\"']\)|"
    + _IN_ENV.format("HOME")
    + r"))(?P<close>\})?"
)
_ROOT_CUE = ("cwd", "getwd", "pwd", "home", "userprofile", "__dirname")
_JOINED = lazy_regex(r"([\"'`])(?: ?\+ ?| \. |(?P<path> / ))\1")
_CLUSTER = lazy_regex(r"-[A-Za-z0-9]{1,6}")
_BACKTICKS = lazy_regex(r"`([^`\n]*)`")

MAX_CODE = 100_000
"""Characters of a piece of code that are read, half from each end."""

MAX_SCRIPTS = 1_000
"""Shell texts that are read out of one piece of code."""


def code_of(command: Command) -> str:
    """Return the code that an interpreter is given in its arguments or on its input, else an empty text."""
    codes = INTERPRETERS.get(command.program)
    if codes is None:
        return ""
    args = command.args
    if not codes:
        return command.operands[0] if command.operands else ""
    for at, arg in enumerate(args):
        clustered = _CLUSTER.fullmatch(arg) is not None and "-" + arg[-1] in codes  # python -Ic "code"
        if (arg in codes or clustered) and at + 1 < len(args):
            return args[at + 1]
    if command.program == "deno" and command.lead.startswith("eval "):
        return " ".join(command.operands[1:])
    return command.stdin if not command.operands or command.operands[0] == "-" else ""


def _overwrites(code: str) -> bool:
    return any(is_guarded(found["open"] or found["write"] or found["path"]) for found in _WRITES.finditer(code))


def plain_roots(code: str) -> str:
    r"""Return code with ``'.'`` and ``'~'`` where it asks for the working folder and the home, and joined texts as one.

    Examples
    --------
    >>> plain_roots("rmSync(process.cwd() + '/dist')"), plain_roots("f'rm -rf {Path.home()}'")
    ("rmSync('./dist')", "f'rm -rf ~'")
    """
    low = code.casefold()
    if any(cue in low for cue in _ROOT_CUE):
        code = _ROOTS.sub(_plain_root, code)
    return _JOINED.sub(lambda found: "/" if found["path"] else "", code)


def _plain_root(found: re.Match[str]) -> str:
    root = "." if found["here"] else "~"
    if found["open"] and found["close"]:
        return root
    before = found.string[max(0, found.start() - 4) : found.start()].rstrip(" .+")[-1:]
    quote = '"' if before == '"' else "'"  # so that texts on both sides of a sign become one
    return f"{found['open'] or ''}{quote}{root}{quote}{found['close'] or ''}"


def destroys(code: str) -> bool:
    """Return whether code calls something that deletes files, kills processes or drops data.

    Examples
    --------
    >>> destroys("import shutil; shutil.rmtree('x')"), destroys("xs.remove(3); del xs[0]")
    (True, False)
    """
    code = ends(code, MAX_CODE, "\n")
    return (
        _DELETES.search(code) is not None
        or _overwrites(code)
        or any(destroys_data(found["sql"]) for found in _QUERIES.finditer(code))
    )


def code_destroys(command: Command) -> bool:
    """Return whether an interpreter is given code that deletes."""
    return destroys(code_of(command))


def scripts_in(code: str) -> Iterator[str | tuple[str, ...]]:
    """Yield the shell texts and word lists that code hands to another process.

    Examples
    --------
    >>> list(scripts_in("os.system('rm x'); subprocess.run(['git', 'clean', '-f'])"))
    ['rm x', ('git', 'clean', '-f')]
    """
    code = plain_roots(ends(code, MAX_CODE, "\n"))
    quoted: list[tuple[int, int]] | None = None
    for count, found in enumerate(_RUNS.finditer(code)):
        if count == MAX_SCRIPTS:
            return
        if quoted is None:
            quoted = [literal.span() for literal in _LITERAL.finditer(code)]
        at = bisect(quoted, (found.start(), len(code)))
        if at and quoted[at - 1][0] < found.start() < quoted[at - 1][1]:
            continue  # a text, not a call
        rest = found["rest"]
        many = "[" in found[0]
        literals = [
            next(group for group in literal if group is not None)
            for literal in _literals(rest.partition("]")[0] if many else rest)
        ]
        if many and literals:
            yield tuple(literals)
        elif literals:
            yield literals[0]
    for count, ticked in enumerate(_BACKTICKS.finditer(code)):
        if count == MAX_SCRIPTS:
            return
        yield ticked[1]


def _literals(text: str) -> Iterator[tuple[str | None, ...]]:
    return (found.groups() for found in _LITERAL.finditer(text))
