"""One wording for what tools word differently, and the exception or code that a message begins with."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex


def reword(message: str) -> tuple[str, str]:
    """Return the exception or code of a headline, or nothing, and its message in one wording.

    Examples
    --------
    >>> reword("requests.exceptions.ConnectionError: timed out")
    ('ConnectionError', 'timed out')
    >>> reword("error[E0382]: borrow of moved value: `x`"), reword("zsh: command not found: jq")[1]
    (('E0382', 'borrow of moved value: `x`'), "command not found: 'jq'")
    """
    message = " ".join(message.split())
    message = _RPC.sub("", message) if "rpc error" in message else message
    if ": fatal: " in message or ": error: " in message or ": panic: " in message:
        message = _WRAPPED.sub("", message)
    if message.endswith(")") and (found := _CAUSED.search(message)):
        message = f"{message[: found.start()]}: {found[1]}"
    exception, message = _exception_of(_PROGRAM.sub("", message) if message[:1] in "/." else message)
    told = _TOLD_IN.search(message) if "{" in message or '="' in message or message[:1] in ("'", '"') else None
    if told:
        said = next(group for group in told.groups() if group)
        message = f"{message[: told.start()].partition('{')[0]}{said}".strip()
    for pattern, replacement in _REWORDINGS if "not found" in message.lower() else _REWORDINGS[NOT_FOUND:]:
        found = pattern.match(message)
        if found:
            message = found.expand(replacement) + message[found.end() :]
            break
    if exception == "ImportError" and message.startswith("No module named"):
        exception = "ModuleNotFoundError"
    if not exception and message.endswith(")") and (found := _TRAILING_CLASS.search(message)):
        exception, message = found[1].rpartition("::")[2], message[: found.start()]
    if not exception and message.startswith("assert "):
        exception = "AssertionError"
    for _ in range(3):
        shorter = _ASIDE.sub("", message)
        if shorter == message:
            break
        message = shorter
    if message.endswith("]") and "[" not in message:
        message = message[:-1]
    if message.startswith("[") and "]" not in message:
        message = message[1:]
    if not exception:
        found = _CODE_WITHIN.search(message)
        exception = found[0] if found else ""
    return exception, message


def _exception_of(message: str) -> tuple[str, str]:
    exception = ""
    for _ in range(3):
        coded = _CODED.match(message)
        named = None if coded else _NAMED.match(message)
        found = coded or named or _QUALIFIED.match(message)
        if found is None:
            break
        name = found[1].rpartition(".")[2].rpartition("::")[2].rpartition("\\")[2].rpartition("/")[2]
        if name in ("Error", "error", "Exception", "RuntimeError") and exception:
            break
        if named and named[2]:
            name = named[2]
        if exception and not coded:
            break
        exception = name if name not in ("Error", "error") else ""
        message = message[found.end() :].strip()
    if not exception and message.endswith((")", "):")) and (found := _IN_PARENTHESES.match(message)):
        exception, message = found[1], found[2]
    return exception, message


_WRAPPED = lazy_regex(r"^[^'\"`{(]{1,160}?: (?:fatal|error|panic): (?=\S)")
"""What a program says before it quotes the error of another one."""
_CAUSED = lazy_regex(
    r"(?:: [^:()]{1,80}: \S{1,300})? \(Caused by \w{1,60}\((?:[\"']?<[^<>]{1,200}>:? ?|[\"']?\w{1,60}\([^()]{1,200}\): "
    r"|[\"'])?[\"']?(.{1,300}?)[\"')\]]{1,6}$"
)
"""The cause that an exception of Python quotes at its end."""
_RPC = lazy_regex(r"\brpc error: code = \w{1,40} desc = ")
_PROGRAM = lazy_regex(r"^(?:\.?/[\w.+-]{1,60}){0,12}/(?=[\w+-]{1,60}: )")
_TRAILING_CLASS = lazy_regex(r"\s\(((?:\w{1,60}::){0,4}\w{1,60}(?:Error|Exception|NotFound))\)$")
_IN_PARENTHESES = lazy_regex(r"(?:\w{1,60}::){0,4}(\w{1,60}(?:Error|Exception|NotFound)) \((.{1,300})\):?$")
_CODED = lazy_regex(
    r"(?:error|warning|fatal error)?\s?\[?((?-i:E[A-Z]{3,20}(?=[:,]? )|[A-Z]{1,6}-?\d{3,6}|ERR_[A-Z_]{2,60}))\]?"
    r"(?:\s?:\s*|\s(?=[a-z]))",
    re.IGNORECASE,
)
_NAMED = lazy_regex(
    r"((?:[A-Za-z_$][\w$]{0,80}(?:\.|::|\\|/)){0,12}[A-Z][\w$]{0,100}?"
    r"(?:Error|Exception|Warning|Fault|Interrupt|Exit|Timeout|NotFound|Failure|Failed|Panic|DoesNotExist"
    r"|Overflow|Iteration|Mismatch|Denied|NotReady|Exceeded|Unavailable|Conflict|Violation|Unauthorized|Forbidden)"
    r"|Error|panic)"
    r"(?:\s?\[(\w{1,60})\]|\s\((\w{1,60})\))?(?::\s*|\s-\s|$)"
)
_QUALIFIED = lazy_regex(r"((?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,80})(?::\s*|$)")
_CODE_WITHIN = lazy_regex(r"\bE[A-Z]{4,20}\b(?<!ERROR)|\bERR_[A-Z_]{3,60}\b|\b[A-Z]{2}\d{4}\b")
_TOLD_IN = lazy_regex(
    r"[\"'](?:message|error|detail|msg|error_description"
    r"|reason)[\"']\s?:\s?(?:\"((?:[^\"\\]|\\.){1,400})\"?|'((?:[^'\\]|\\.){1,400})'?)"
    r"|(?:^|\s)(?:msg|err|error)=\"((?:[^\"\\]|\\.){1,400})\"?"
)
_ASIDE = lazy_regex(
    r"\s(?:\{$|\{[\"'].{0,400}$|\(Request ID[^()]{0,100}\)|\(@INC[^()]{0,300}\)|\(you may [^()]{1,200}\)"
    r"|\((?:from|choose|available|valid|known|possible|supported)[^()]{0,300}\)$"
    r"|\((?:unknown location|[^()\s]{0,200}[/\\][^()]{0,200})\)\.?$"
    r"|\([^()]{1,200}, line \d{1,7}\)$|\[type=[^\]]{1,300}\].{0,200}$|\(type=[^()]{1,100}\)$"
    r"|(?:in|at) [^\s'\"]{1,300}(?::\d{1,7}|\s(?:on )?line \d{1,7})\.?$"
    r"|\(?(?:Did you (?:mean|forget)|did you mean|Maybe you meant|Perhaps you|perhaps you).{0,300}$)"
)
_SHELL = r"(?:-?(?:/\S{0,80}/)?(?:ba|z|da|a|k|c|tc|fi)?sh(?:\.exe)?|\S{1,200}\.(?:ba|z)?sh):\s?(?:line )?(?:\d+:\s?)?"
NOT_FOUND = 3
"""So many of these, the first ones, say that something was not found."""
_REWORDINGS = (
    (lazy_regex(rf"^{_SHELL}command not found: (\S+)$"), r"command not found: '\1'"),
    (
        lazy_regex(
            rf"^(?:{_SHELL})?(?:[\w./-]{{1,80}}(?:\[\d+\])?: )?['\"]?([^\s:'\"]+)['\"]?: command not found\.*$",
            re.I,
        ),
        r"command not found: '\1'",
    ),
    (lazy_regex(rf"^{_SHELL}([^\s:]+): not found$"), r"command not found: '\1'"),
    (lazy_regex(rf"^(?:{_SHELL})?Unknown command:? ['\"]?([^\s'\"]+)['\"]?$"), r"command not found: '\1'"),
    (
        lazy_regex(
            rf"^(?:{_SHELL}\s?)?(?:\d+ )?(segmentation fault|killed|aborted|bus error|illegal instruction)"
            r"(?:\s+\(core dumped\))?(?:\s+[^\s:]\S*)?$",
            re.I,
        ),
        r"\1",
    ),
    (lazy_regex(rf"^{_SHELL}"), ""),
)
