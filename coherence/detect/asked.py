"""Kinds of tasks: a change, something to be mended, something new, or an answer; and whether that is all."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.detect.read_once import read_once

TOLD_CHARS = 4_000
"""Characters of a task that tell what it asks for."""

Kind: TypeAlias = Literal["change", "mend", "make", ""]
"""Kind of task: a change as it stands, something to be mended or made better, something new, anything else."""

_MEND = lazy_regex(
    r"\b(?:fix|repair|solve|improv\w+|harden|robust\w*|reliab\w+|resilien\w+|production|optimi[sz]\w+|fast(?:er)?"
    # Not "the debug flag".
    r"|slow\w*|speed|performan\w+|debug(?:ging)? (?:the|this|it|why)|diagnos\w+|investigat\w+|why|hangs?|crash\w*"
    r"|fail\w*|errors?|bugs?"
    # Not "delete the review".
    r"|broken|wrong|secur\w+|review (?:the|this|my|our|it)|observab\w+|best practices?|behebe\w*|reparier\w*"
    r"|korrigier\w*|fehler\w*"
    r"|langsam|schneller|verbesser\w*|corrig\w+|répar\w+|amélior\w+|erreur|lent|arregl\w+|mejor\w+|rápid\w+|lento"
    r"|исправ\w+|ошибк\w+|улучш\w+)\b|修复|改进|优化|错误|修正|改善",
    re.IGNORECASE,
)
_MAKE = lazy_regex(
    r"\b(?:build|creat\w+|writ(?:e|ing)|implement\w*|develop\w*|design|prepare|organi[sz]e|stand up|spin up"
    r"|bring up|provision|generate|set up|scaffold|prototype|add|new|draft"
    r"|compose|make (?:me |us )?an?|erstell\w*|bau(?:e|en)?|schreib\w*|entwickl\w+|crée\w*|écri\w+|développ\w+"
    r"|ajout\w+"
    r"|crea|escrib\w+|desarroll\w+|añad\w+|напиш\w+|созда\w+)\b|创建|编写|写一|开发|实现|添加|作成|書い",
    re.IGNORECASE,
)
_SPELLING = lazy_regex(
    r"\b(?:typos?|spelling|misspel\w+|grammar|punctuation|indentation|whitespace|links?|labels?|captions?|titles?"
    r"|headings?"
    r"|tippfehler|einrückung|rechtschreib\w+|faute|orthographe|ortografía|ortografia)\b",
    re.IGNORECASE,
)
_CHANGE = lazy_regex(
    r"\b(?:typos?|spelling|grammar|update|set|refactor\w*|renam\w+|convert\w*|translat\w+|mov(?:e|ing)"
    r"|extract|inline|split|reformat|format|sort|simplif\w+"
    r"|rewrite|port|migrate|replace|chang(?:e|ing)|switch|turn|swap|reorder|shorten|reword|rephrase|remove|delete"
    r"|drop"
    r"|bump|upgrade|make [^.!?\n]{1,60}\b(?:async\w*|returns?|use|accept|take|static|private|public)"
    r"|unchanged|umbenenn\w*|benenn\w*|übersetz\w*|konvertier\w*"
    r"|verschieb\w*|ersetz\w*|entfern\w*|kürz\w*|sortier\w*|refaktorisier\w*|änder\w*|renomm\w+|tradui\w+|converti\w*"
    r"|déplac\w+|remplac\w+|supprim\w+|raccourci\w*|renombr\w+|traduc\w+|conviert\w+|muev\w+|reemplaz\w+|elimin\w+"
    r"|acort\w+|переимен\w+|рефактор\w+|перевед\w+|замен\w+)\b|重命名|改成|改为|翻译|转换|替换|删除|重构|翻訳|変換",
    re.IGNORECASE,
)

_ASKS = lazy_regex(
    r"[\W_]{0,3}(?:what|why|who|whom|whose|which|where|when|how|is|are|was|were|does|did|do you|has|have you"
    r"|warum|wie|was"
    r"|wer|wo|wann|welche[rsmn]?|wieso|pourquoi|comment|qui|quel(?:le)?s?|où|quand|combien|por qué|cómo|quién"
    r"|cuál(?:es)?"
    r"|dónde|cuándo|qué|como|почему|как|что|кто|где|когда)\b(?=[^.!?\n]{0,300}[?？])",  # not "What I need is a script."
    re.IGNORECASE,
)
_REQUEST = lazy_regex(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\bkannst du\b|\bkönn(?:en|ten) sie\b|\bbitte\b"
    r"|\b(?:peux|pouvez|pourri\w+)[- ](?:tu|vous)\b|\bpuedes?\b|\bpodrías?\b",
    re.IGNORECASE,
)
FENCE = lazy_regex(r"```[^\n`]{0,40}\n([^`]{0,20000})(?:```|\Z)")
CODE_LINE = lazy_regex(
    r"[ \t]{0,40}(?:[+-] ?)?[ \t]{0,40}(?:(?:async|def|class|import|from|return|await|with|for|if|elif|else|try"
    r"|except"
    r"|finally|let|const|var|fn|func|function|pub|public|private|static|raise|throw|yield|use|defer)\b(?=[^\n]{0,200}"
    r"[({=:;])|[\w.:\[\]]{1,80}!?\s?(?:\(|[-+:|]?=[^=])|[@}\])]|(?:import|from|use) \w)"
)
_TEXT = lazy_regex(
    r"\b(?:tell|describe|explain|imagine|write|compose|draft|reply|respond|answer|schreib\w*|erzähl\w*|beschreib\w*"
    r"|antworte\w*|écri\w+|décri\w+|racont\w+|répon\w+|escrib\w+|describ\w+|cuent\w+|respond\w+|escrev\w+"
    r"|scriv\w+)\b|写|書い",
    re.IGNORECASE,
)
_REWORDING = lazy_regex(
    r"\b(?:summar\w+|translat\w+|paraphrase|rephrase|rewrite|shorten|reword|proofread|correct|übersetz\w*|kürz\w*"
    r"|tradui\w+|résum\w+|raccourc\w+|traduc\w+|resum\w+|acort\w+|traduz\w*)\b|翻译|总结|翻訳|要約",
    re.IGNORECASE,
)
"""Tasks that ask for a text, in which "I" need not be the one who answers."""

_MESSAGE = lazy_regex(
    r"\b(?:tell|inform|notify|reply|respond|answer|text|write|message|e-?mail|let|sag|schreib\w*|antworte\w*|teile?"
    r"|di[st]|écri\w+|répon\w+|inform\w+|dile|escrib\w+|respond\w+|avis\w+|diga|escreva|scriv\w+|rispond\w+)\b"
    r"[^!?\n]{0,60}\b(?:that|dass|daß|que|che|dat)\b",
    re.IGNORECASE,
)

_BRIEF = lazy_regex(
    r"\b(?:(?:only|just|nothing but|nur|bloß|seulement|juste|uniquement|solo|sólo|solamente|apenas|só|soltanto"
    r"|alleen)"
    r" (?:the |an? |give (?:me )?the |der |die |das |den |le |la |el |o |il |de |het )?(?:name|number|word|answer"
    r"|date|year"
    r"|city|title|zahl|wort|antwort|jahr|datum|nom|nombre|chiffre|mot|réponse|número|palabra|respuesta|fecha|nome"
    r"|naam)"
    r"|(?:one|a single) (?:word|name|synonym|number|letter|digit)|ein(?:em|en)? (?:wort|satz)|un (?:seul )?mot"
    r"|una (?:sola )?palabra|yes or no)\b",
    re.IGNORECASE,
)

_OPEN = lazy_regex(
    # deploy.sh is a file.
    r"\b(?:convert\w*|migrat\w+|port (?:the|it|this|our)|porting|deploy(?:ing)?(?!\.)|publish\w*|releas\w+"
    r"|install\w*|refactor\w*|reduc\w+|simplif\w+|rewrit\w+|reorgani[sz]\w+|clean\w*|plan|perform|follow|arrange"
    r"|moderni[sz]\w+|redesign\w*|restructur\w+|split|extract[^.!?\n]{0,60}\b(?:into|class|function|method)"
    r"|make[^.!?\n]{0,60}(?:[ai]ble|async\w*|responsive|robust|work|sure)|konvertier\w*|migrier\w*|refaktor\w*"
    r"|vereinfach\w*|aufräum\w*|teile|migrez?|simplifi\w+|nettoy\w+|convierte\w*|simplific\w+|limpi\w+)\b|重构|转换",
    re.IGNORECASE,
)
"""A change that is made of many acts, which need not be named."""

_ADD = lazy_regex(
    r"\W*(?:please |bitte )?(?:add|append|insert|include|füge?|ergänze|ajoute[zr]?|añad\w+|agreg\w+|adicion\w+"
    r"|aggiung\w+|voeg|dodaj|добав\w+)\b|.{0,20}(?:添加|加上|增加|追加)",
    re.IGNORECASE,
)

_ELSEWHERE = lazy_regex(
    r"\b(?:(?:the|these|following) (?:following )?(?:actions|instructions|steps|tasks)"
    r"|(?:told|asked|sent|shared|proposed?|e-?mailed|messaged) (?:me|us|you|some|an?|significant)"
    r"|(?:his|her|their|it) (?:request|needs)|accordingly|if (?:there|it|its|not|the))\b",
    re.IGNORECASE,
)
"""Tasks of which the request is written somewhere else, is many things, or depends."""

_COUNTED = lazy_regex(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,3})[- ](?:\w+ )?(?:words?|sentences?|lines?"
    r"|bullet\w*|points?"
    r"|paragraphs?|items?|synonyms?|examples?|verses?|characters?)\b|\b(?:haiku|limerick|tweet|chapter|section)\b"
    r"|\b(?:ein|zwei|drei|vier|fünf|\d{1,3}) (?:Wörter\w*|Sätze\w*|Zeilen|Punkte\w*)|\b(?:une?|deux|trois|cinq"
    r"|\d{1,3})"
    r" (?:mots?|phrases?|lignes?|points?)|\b(?:una?|dos|tres|cinco|\d{1,3}) (?:palabras?|frases?|líneas?|puntos?)",
    re.IGNORECASE,
)
"""Words of a task that tell how much of a text it wants."""

_LIMIT = lazy_regex(
    r"\b(?:(?:nothing|anything|nowhere) else|(?:everything|all) else|the (?:rest|others)\b|no other|not? more"
    r"|(?:do not|don['’]t)"
    r" (?:change|touch|alter|edit|add)|without (?:changing|touching|altering|adding)|only|exactly|verbatim"
    r"|sonst nichts|alles andere|nichts anderes|den rest|der rest|nur|ohne [^.!?\n]{0,40}zu (?:ändern|verändern)"
    r"|rien d['’]autre|le reste|seulement|uniquement|sans (?:changer|modifier|toucher)"
    r"|nada más|el resto|lo demás|solo|sólo|solamente|sin (?:cambiar|tocar|modificar)"
    r"|nada mais|o resto|apenas|somente|sem (?:mudar|alterar|mexer)|nient['’]altro|soltanto|il resto|senza"
    r"|alleen|verder niets|niets anders|tylko|reszt\w+|только|ничего больше|остальн\w+)\b"
    r"|只|仅|其他|其余|不要|だけ|のみ|以外|만",
    re.IGNORECASE,
)
"""Words of a task that wants nothing beyond what it names."""


@read_once
def kind_of(task: str) -> Kind:
    """Return what a task asks for, told by its prose.

    Examples
    --------
    >>> kind_of("Rename load to load_config"), kind_of("Fix the crash"), kind_of("Build a shop"), kind_of("Who is it?")
    ('change', 'mend', 'make', '')
    """
    text = ends(task, TOLD_CHARS, "\n")
    # Pasted code asks for nothing, whatever its comments say: "# fix the bug".
    prose = "\n".join(line for line in FENCE.sub("\n", text).split("\n") if not CODE_LINE.match(line))
    if is_question(prose):
        return ""
    # "Fix the typo" changes what stands there, as "rename" does.
    if _MEND.search(prose) and not _SPELLING.search(prose):
        return "mend"
    change, make = _CHANGE.search(prose), _MAKE.search(prose)
    # "Rename the file that we write" is a change, "Write a script that renames files" makes something.
    if change and (make is None or change.start() < make.start()):
        return "change"
    return "make" if make else ""


def is_question(task: str) -> bool:
    """Tell whether a task asks to be told something rather than for something to be done.

    Examples
    --------
    >>> is_question("Which plan has roaming?"), is_question("Can you rename it?")
    (True, False)
    """
    text = ends(task, TOLD_CHARS, "\n").strip()
    asks = text.endswith(("?", "\uff1f")) and _REQUEST.search(text) is None
    return asks or _ASKS.match(text) is not None


CLOSED_CHARS = 400
"""Characters of prose above which a task of no known kind may ask for anything."""


@read_once
def is_closed(task: str) -> bool:
    """Tell whether a task asks for an act that brings nothing of its own, or says that it wants nothing else.

    Examples
    --------
    >>> is_closed("Pay the invoice"), is_closed("Fix the crash"), is_closed("Fix the crash, nothing else")
    (True, False, True)
    """
    text = ends(task, TOLD_CHARS, "\n")
    if (("?" in text or "\uff1f" in text) and not _REQUEST.search(text)) or is_question(text):
        return False
    if len(FENCE.sub("", text)) > CLOSED_CHARS or is_delegated(task):
        return False
    return kind_of(task) in ("change", "") or is_limited(task) or _ADD.match(text) is not None


@read_once
def is_delegated(task: str) -> bool:
    """Tell whether what a task asks for is written somewhere else.

    Examples
    --------
    >>> is_delegated("Do what he asked me in his mail"), is_delegated("Pay the bill")
    (True, False)
    """
    return _ELSEWHERE.search(task, 0, TOLD_CHARS) is not None


@read_once
def is_one_act(task: str) -> bool:
    """Tell whether a closed task is done by one act, not by many that it need not name.

    Examples
    --------
    >>> is_one_act("Pay the invoice"), is_one_act("Convert the class to hooks"), is_one_act("Describe your holiday")
    (True, False, False)
    """
    if not is_closed(task) or kind_of(task) == "mend" or wants_text(task):
        return False
    return is_limited(task) or _OPEN.search(task, 0, TOLD_CHARS) is None


def rewords(task: str) -> bool:
    """Tell whether a text that is asked for may say "we" in the name of others.

    Examples
    --------
    >>> rewords("Shorten this: We met."), rewords("Pay the invoice")
    (True, False)
    """
    return _REWORDING.search(task, 0, TOLD_CHARS) is not None or wants_text(task)


def is_counted(task: str) -> bool:
    """Tell whether a task says how much of a text it wants.

    Examples
    --------
    >>> is_counted("Write a haiku"), is_counted("Summarise it in two sentences"), is_counted("Write a story")
    (True, True, False)
    """
    return len(task) <= CLOSED_CHARS and _COUNTED.search(task) is not None


def is_message(task: str) -> bool:
    """Tell whether a task says what a message is to tell.

    Examples
    --------
    >>> is_message("Tell Ben that I am late"), is_message("Write to Ben")
    (True, False)
    """
    return len(task) <= CLOSED_CHARS and _MESSAGE.search(task) is not None


def is_brief(task: str) -> bool:
    """Tell whether a task wants a word, a name or a number.

    Examples
    --------
    >>> is_brief("Which city is it? Just the name."), is_brief("Which city is it?")
    (True, False)
    """
    return len(task) <= CLOSED_CHARS and _BRIEF.search(task) is not None


def may_be_mended(task: str) -> bool:
    """Tell whether a task speaks of something to be mended or explained."""
    return _MEND.search(task, 0, TOLD_CHARS) is not None


@read_once
def wants_text(task: str) -> bool:
    """Tell whether a task asks for a text, in which "I" need not be the one who answers.

    Examples
    --------
    >>> wants_text("Describe your holiday"), wants_text("Pay the invoice")
    (True, False)
    """
    if _TEXT.search(task, 0, TOLD_CHARS):
        return True
    return _REWORDING.search(task, 0, TOLD_CHARS) is not None and not is_limited(task)


@read_once
def is_limited(task: str) -> bool:
    """Tell whether a task says that it wants nothing beyond what it names.

    Examples
    --------
    >>> is_limited("Fix the crash, nothing else."), is_limited("Fix the crash.")
    (True, False)
    """
    return _LIMIT.search(ends(task, TOLD_CHARS, "\n")) is not None
