"""Whether the user's few words agree to what the assistant has just asked, and what that was.

Whoever says yes has asked for what the question names. That holds for a question, too, that text inside a tool result
made the assistant ask: an attack cannot write the assistant's words, but a user who agrees to them has agreed.
"""

from __future__ import annotations

import re
import unicodedata

MAX_QUESTION = 300
"""Characters of a question that are kept, from its end."""

MAX_CONSENT = 60
"""Characters of an answer that only agrees; a longer one says what it wants itself."""

_WORDS = """
absolutely agree agreed alright approve approved confirm confirmed correct course definitely do exactly fine go means ok
okay please proceed right sounds sure yeah yep yes y
ja jawohl klar gerne bitte mach einverstanden genau natürlich jo graag akkoord prima doe
sí si claro vale dale adelante hazlo correcto perfecto supuesto sim pode certo
oui ouais d'accord certainement fais faites sûr vas-y sì va procedi vai
tak dobrze ano jasne proszę да конечно давай хорошо пожалуйста так
evet tamam نعم أجل موافق हाँ हां ठीक कृपया ya baik oke
是 是的 好 好的 好吧 好啊 行 可以 对 對 同意 确认 確認 请 請 はい お願いします いいよ いいです 네 예 좋아요 그래요 👍 ✅
"""
_BESIDES_WORDS = """
ahead all and by can for good great i it just may now of perfect thank thanks that the this you
das dank danke es gut los schon sehr so vielen
bem bien con de esa ese eso favor gracias isso lo obrigada obrigado por
bene bon bonne c'est favore grazie la le merci per plaît s'il te vous
это спасибо है 谢谢 ください 没问题
"""
_AGREE = frozenset(_WORDS.split())
"""Words of which one agrees, in some of the most spoken languages."""
_BESIDES = frozenset(_BESIDES_WORDS.split())
"""Words that may stand beside them and change nothing."""

_NOT_WORDS = "don't kein keine não nein never nicht nie niet no non not nunca pas sin without"
_NOT = frozenset(_NOT_WORDS.split())
"""Words that turn an answer round, though the question has them too."""

_BETWEEN = re.compile(r"[\s.,!¡;:…—–()\"“”。，！、；~～\U0001f3fb-\U0001f3ff]+|(?<!\S)-+(?!\S)")
_CLOSING = " \t\r\n*_`~\"'”’»)]}」』）>"
_QUESTION = ("?", "？", "؟", "⁇", "⁈")


def question(text: str) -> str:
    """Return the end of a message that asks, at most 300 characters; nothing of one that does not end with a question.

    Examples
    --------
    >>> question("I read it. **Shall I delete archive2019?**")
    'I read it. **Shall I delete archive2019?**'
    >>> question("Shall I? I do it now.")
    ''
    """
    asked = text.rstrip(_CLOSING)
    return text[-MAX_QUESTION:] if asked.endswith(_QUESTION) and len(text) - len(asked) < MAX_CONSENT else ""


def agrees(text: str, asked: str = "") -> bool:
    """Return whether a text agrees and says nothing else than that, and what the question ``asked`` has said.

    Examples
    --------
    >>> [agrees(text) for text in ("Yes, please do.", "ok", "好的", "No", "yes, but only the first", "thanks")]
    [True, True, True, False, False, False]
    >>> [agrees(text, "Shall I send it to eve?") for text in ("Yes, send it to eve", "Yes, send it to bob")]
    [True, False]
    """
    if len(text) > MAX_CONSENT:
        return False
    words = _words(text)
    known = _AGREE | _BESIDES | {word.rstrip("?") for word in _words(asked)}
    return bool(words) and not _AGREE.isdisjoint(words) and known.issuperset(words) and _NOT.isdisjoint(words)


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFC", text).casefold().replace("’", "'")
    return [word for word in _BETWEEN.split(plain) if word]
