"""Signs of shell text that its grammar gives a meaning, counted before the text is parsed."""

from __future__ import annotations

from coherence.core.lazy import lazy_regex

MAX_DOCUMENTS = 16
"""Here-documents of a script that are skipped."""

_SIGNS = b"|&;()<>{}[]$`!"
_OTHERS = bytes(set(range(256)) - set(_SIGNS))
_INDENT = lazy_regex(r"\n\t+")
_TOKEN = lazy_regex(
    r"\\."
    r"|'[^']*+'?"
    r"|(?P<quoted>\"(?:[^\"\\]|\\.)*+\"?)"
    r"|(?<!\S)#[^\n]*+"
    r"|<<-?[ \t]*+(?P<quote>['\"\\]?)(?P<document>\w[\w.-]{0,40})(?P=quote)?"
    r"|(?P<line>\n)"
    r"|(?P<signs>[|&;()>{}\[\]$`!]++|<++)",
)


def count_signs(script: str, most: int) -> int:
    r"""Return how many signs stand outside quotes, comments and here-documents; it stops counting above ``most``.

    Substitutions in double quotes and in here-documents are shell text again, so signs count there too.

    Examples
    --------
    >>> count_signs("echo 'a|b' | wc -l > x  # (c)", 100)
    2
    >>> count_signs("\n".join(["cat <<'E' > x", "a | b | c", "E", "ls | wc"]), 100)
    4
    """
    text = _INDENT.sub("\n", script)
    count = at = 0
    waiting: list[tuple[str, bool]] = []
    left = MAX_DOCUMENTS
    while count <= most and (token := _TOKEN.search(text, at)) is not None:
        kind, at = token.lastgroup, token.end()
        if kind == "signs":
            count += len(token[0])
        elif kind == "quoted":
            count += 1 + _substituted(token[0])
        elif kind == "document":
            count += 2
            left -= 1
            if left >= 0:
                waiting.append((token["document"], bool(token["quote"])))
        elif kind == "line" and waiting:
            for word, is_quoted in waiting:
                end = text.find(f"\n{word}\n", at - 1)
                if end < 0 and text.endswith(f"\n{word}"):
                    end = len(text) - len(word) - 1
                if end >= at - 1:
                    count += 0 if is_quoted else _substituted(text[at:end])
                    at = min(end + len(word) + 1, len(text))
            waiting = []
    return count


def may_exceed(script: str, most: int) -> bool:
    """Tell whether more signs than that may count, from how many there are at all; it is told much sooner."""
    return _counted(script) + script.count('"') > most


def _substituted(text: str) -> int:
    return _counted(text) if "`" in text or "$(" in text else 0


def _counted(text: str) -> int:
    return len(text.encode("utf-8", "replace").translate(None, _OTHERS))
