"""Names of languages."""

from __future__ import annotations

LANGUAGES = {
    name: code
    for code, names in {
        "en": "english englisch anglais inglés inglese inglês",
        "de": "german deutsch allemand alemán tedesco alemão",
        "fr": "french französisch français francés francese francês",
        "es": "spanish spanisch espagnol español spagnolo espanhol",
        "it": "italian italienisch italien italiano",
        "pt": "portuguese portugiesisch portugais portugués português portoghese",
        "nl": "dutch niederländisch néerlandais holandés",
        "zh": "chinese chinesisch chinois chino 中文",
        "ja": "japanese japanisch japonais japonés 日本語",
        "ru": "russian russisch russe ruso",
    }.items()
    for name in names.split()
}
"""Name of a language -> its two letters."""
