"""One wording for messages that tools word differently, and the exception or code that a message begins with."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.lessons.error_words import EXCEPTION_NAME


def reword(message: str) -> tuple[str, str]:
    """Return the exception or code of a headline, or nothing, and its message in one wording.

    Examples
    --------
    >>> reword("requests.exceptions.ConnectionError: timed out")
    ('ConnectionError', 'timed out')
    >>> reword("error[E0382]: borrow of moved value: `x`"), reword("zsh: command not found: jq")[1]
    (('E0382', 'borrow of moved value: `x`'), "command not found: 'jq'")
    """
    exception, message = _exception_of(_PROGRAM.sub("", " ".join(message.split())))
    told = _TOLD_IN.search(message) if "{" in message or '="' in message or message[:1] in ("'", '"') else None
    if told:
        said = next(group for group in told.groups() if group)
        message = f"{message[: told.start()].partition('{')[0]}{said}".strip()
    for pattern, replacement in _REWORDINGS:
        found = pattern.match(message)
        if found:
            message = found.expand(replacement) + message[found.end() :]
            break
    if exception == "ImportError" and message.startswith("No module named"):
        exception = "ModuleNotFoundError"
    if not exception and message.startswith("assert "):
        exception = "AssertionError"
    return exception, _ASIDE.sub("", message)


def _exception_of(message: str) -> tuple[str, str]:
    exception = ""
    for _ in range(3):
        coded = _CODED.match(message)
        named = None if coded else _NAMED.match(message)
        found = coded or named or _QUALIFIED.match(message)
        if found is None or (exception and not coded):
            break
        name = named[2] if named and named[2] else re.split(r"[.:\\/]", found[1])[-1]
        exception = name if name.lower() != "error" else ""
        message = message[found.end() :].strip()
    return exception, message


_PROGRAM = lazy_regex(r"^(?:\.?/[\w.+-]{1,60}){0,12}/(?=[\w+-]{1,60}: )")
_CODED = lazy_regex(
    r"(?:error|warning|fatal error)?\s?\[?((?-i:E[A-Z]{3,20}(?=[:,]? )|[A-Z]{1,6}-?\d{3,6}|ERR_[A-Z_]{2,60}))\]?"
    r"(?:\s?:\s*|\s(?=[a-z]))",
    re.IGNORECASE,
)
_NAMED = lazy_regex(rf"({EXCEPTION_NAME}|Error|panic)(?:\s?\[(\w{{1,60}})\]|\s\((\w{{1,60}})\))?(?::\s*|\s-\s|$)")
_QUALIFIED = lazy_regex(r"((?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,80})(?::\s*|$)")
_TOLD_IN = lazy_regex(
    r"[\"'](?:message|error|detail|msg|error_description"
    r"|reason)[\"']\s?:\s?(?:\"((?:[^\"\\]|\\.){1,400})\"?|'((?:[^'\\]|\\.){1,400})'?)"
    r"|(?:^|\s)(?:msg|err|error)=\"((?:[^\"\\]|\\.){1,400})\"?"
)
_ASIDE = lazy_regex(
    r"\]?\s(?:\{$|\{[\"'].{0,400}$|\(Request ID[^()]{0,100}\)|\(@INC[^()]{0,300}\)|\(you may [^()]{1,200}\)"
    r"|\((?:from|choose|available|valid|known|possible|supported)[^()]{0,300}\)$"
    r"|\((?:unknown location|[^()\s]{0,200}[/\\][^()]{0,200})\)\.?$"
    r"|\([^()]{1,200}, line \d{1,7}\)$|\[type=[^\]]{1,300}\].{0,200}$|\(type=[^()]{1,100}\)$"
    r"|(?:in|at) [^\s'\"]{1,300}(?::\d{1,7}|\s(?:on )?line \d{1,7})\.?$"
    r"|\(?(?:Did you (?:mean|forget)|did you mean|Maybe you meant|Perhaps you|perhaps you).{0,300}$)"
)
_SHELL = r"(?:-?(?:/\S{0,80}/)?(?:ba|z|da|a|k|c|tc|fi)?sh(?:\.exe)?|\S{1,200}\.(?:ba|z)?sh):\s?(?:line )?(?:\d+:\s?)?"
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
