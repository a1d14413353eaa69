"""What an answer adds that its task does not ask for: things announced as extra, and features that nobody named.

Precision before recall. What a task leaves open (a fault to find, something to build, work to make robust) may be done
by any means; a change that is asked for as it stands (to rename, to convert, to translate) brings nothing of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal, TypeAlias
from unicodedata import normalize

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.constraints import ACTORS, ACTS, BOUNDS, DONE, NAMED, SKIPPED, forbidden, is_negation
from coherence.detect.languages import differ
from coherence.detect.ngrams import bag, shares
from coherence.detect.text_analysis import statements

MAX_CHARS = 8_000
"""Characters of a task or an answer that are read; of a longer one, half from its beginning and half from its end."""

TOLD_CHARS = 4_000
"""Characters of a task that tell what it asks for."""

MAX_ADDITIONS = 6

FEATURES: dict[str, tuple[str, str]] = {
    "logging": (
        r"logging|loggers?|logs?|logged|protokollierung|journalisation|registro de eventos|bitácora|логирование",
        "日志|ログ",
    ),
    "tracing": (
        r"tracing|tracers?|traces?|spans?|telemetry|opentelemetry|telemetrie|traçage|télémétrie|trazas|telemetría",
        "追踪|遥测|トレース",
    ),
    "metrics": (
        r"metrics?|counters?|gauges?|prometheus|statsd|instrumentation|monitoring|analytics|zähler|metriken|compteurs?"
        r"|métriques?|contador(?:es)?|métricas?|счётчик",
        "计数器|指标|监控|メトリクス|カウンター",
    ),
    "timeout": (
        r"time-?outs?|time limits?|zeitüberschreitung|zeitlimit|délais? d['’]attente|tiempos? de espera|таймаут",
        "超时|タイムアウト",
    ),
    "retries": (r"retry|retries|back-?off|wiederholungsversuche?|nouvelles tentatives|reintentos?", "重试|リトライ"),
    "caching": (r"cach(?:es?|ing|ed)|memoi[sz](?:ation|ed)|zwischenspeicher|mise en cache|caché", "缓存|キャッシュ"),
    "rate limiting": (r"rate[- ]limit(?:s|ing|er)?|throttling|circuit[- ]breakers?", "限流"),
    "error handling": (
        r"(?:error|exception)[- ]handl(?:ing|ers?)|fehlerbehandlung|gestion des erreurs|manejo de errores",
        "错误处理|エラー処理",
    ),
    "validation": (r"validation|validators?|validates|validierung|validación", "校验|验证"),
    "docstrings": (r"docstrings?|doc comments?|comments|kommentare|commentaires|comentarios", "注释|コメント"),
    "type hints": (r"type (?:hints?|annotations?)|typannotationen|annotations de type|anotaciones de tipo", "类型注解"),
    "interface": (
        r"command[- ]line(?: \w+)?|cli|dockerfile|feature flags?|dark mode|mode sombre|modo oscuro|middleware",
        "命令行|深色模式",
    ),
}
"""Feature -> how texts name it, in several languages, and in those without spaces: what comes unasked with code."""

WATCHING = ("logging", "tracing", "metrics", "interface")
"""Features that tell what happens, or are a thing of their own: hardly ever a means to mend something."""

_FEATURES = {
    name: lazy_regex(rf"(?<!\w)(?:{latin})(?!\w)|{dense}", re.IGNORECASE) for name, (latin, dense) in FEATURES.items()
}
_CODE_FEATURES = lazy_regex(
    r"(?P<logging>\blog(?:ger|ging)?[.:]{1,2}\w|console\.(?:log|info|warn|error))"
    r"|(?P<tracing>trac(?:er|ing)\b|start_as_current_span|opentelemetry)"
    r"|(?P<metrics>metrics?\b|counter\b|statsd|prometheus|histogram\b)"
    r"|(?P<timeout>time_?out\b|wait_for\b)"
    r"|(?P<retries>retr(?:y|ies)\b|backoff|tenacity)"
    r"|(?P<caching>lru_cache|memoize|cache[.(\[])",
    re.IGNORECASE,
)

_NAMES = {act: lazy_regex(rf"\b(?:{'|'.join(ACTS[act][0].split())})\b", re.IGNORECASE) for act in ("change", "remove")}

Kind: TypeAlias = Literal["change", "mend", "make", ""]
"""What a task asks for: a change as it stands, something to be mended or made better, something new, anything else."""

_MEND = lazy_regex(
    r"\b(?:fix|repair|solve|improv\w+|harden|robust\w*|reliab\w+|resilien\w+|production|optimi[sz]\w+|fast(?:er)?"
    r"|slow\w*|speed|performan\w+|debug\w*|diagnos\w+|investigat\w+|find out|why|hangs?|crash\w*|fail\w*|errors?|bugs?"
    r"|broken|issue|wrong|secur\w+|review|observab\w+|best practices?|behebe\w*|reparier\w*|korrigier\w*|fehler\w*"
    r"|langsam|schneller|verbesser\w*|corrig\w+|répar\w+|amélior\w+|erreur|lent|arregl\w+|mejor\w+|rápid\w+|lento"
    r"|исправ\w+|ошибк\w+|улучш\w+)\b|修复|改进|优化|错误|修正|改善",
    re.IGNORECASE,
)
_MAKE = lazy_regex(
    r"\b(?:build|creat\w+|writ(?:e|ing)|implement\w*|develop\w*|design|generate|set up|scaffold|prototype|add|new|draft"
    r"|compose|make (?:me |us )?an?|erstell\w*|bau(?:e|en)?|schreib\w*|entwickl\w+|crée\w*|écri\w+|développ\w+|ajout\w+"
    r"|crea|escrib\w+|desarroll\w+|añad\w+|напиш\w+|созда\w+)\b|创建|编写|写一|开发|实现|添加|作成|書い",
    re.IGNORECASE,
)
_SPELLING = lazy_regex(
    r"\b(?:typos?|spelling|misspel\w+|grammar|punctuation|tippfehler|faute|orthographe)\b", re.IGNORECASE
)
_CHANGE = lazy_regex(
    r"\b(?:typos?|spelling|grammar|update|set|refactor\w*|renam\w+|convert\w*|translat\w+|mov(?:e|ing)"
    r"|extract|inline|split|reformat|format|sort|simplif\w+"
    r"|rewrite|port|migrate|replace|chang(?:e|ing)|switch|turn|swap|reorder|shorten|reword|rephrase|remove|delete|drop"
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
    r"|dónde|cuándo|qué|como|почему|как|что|кто|где|когда)\b(?=[^.!?\n]{0,300}[?？])",
    re.IGNORECASE,
)
_REQUEST = lazy_regex(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\bkannst du\b|\bkönn(?:en|ten) sie\b|\bbitte\b"
    r"|\b(?:peux|pouvez|pourri\w+)[- ](?:tu|vous)\b|\bpuedes?\b|\bpodrías?\b",
    re.IGNORECASE,
)
_STRONG = lazy_regex(
    r"\b(?:(?:took|taken|taking) the liberty|(?:took|take|taking) the (?:opportunity|chance)|at it\b|as (?:a"
    r"|an extra|an added) bonus|bonus:|for good measure"
    r"|on top of (?:that|it|this)|beyond (?:what|the request)|unasked|without being asked|proactively|unprompted"
    r"|threw in|thrown in|went ahead and|gone ahead and|nebenbei|bei der gelegenheit|gleich noch|ungefragt"
    r"|(?:j['’]en ai|en) profité|tant que j['’]y étais|en bonus|aprovech(?:é|ando)|de paso)\b|顺便|顺手|ついでに",
    re.IGNORECASE,
)
_WEAK = lazy_regex(
    r"\b(?:also|additionally|in addition|(?:comes|ships|come|shipped) with|moreover|furthermore|besides"
    r"|as well|plus|außerdem|zusätzlich|ausserdem|ferner"
    r"|auch|darüber hinaus|aussi|également|de plus|en outre|también|además|asimismo|inoltre|anche|também)\b"
    r"|另外|此外|还|也|さらに|また",
    re.IGNORECASE,
)
MARKS = word_set(
    "also additionally additional additions addition moreover furthermore besides well plus comes ships come shipped "
    "liberty opportunity chance bonus measure top beyond unasked asked proactively unprompted threw thrown ahead extra "
    "extras improvements enhancements auch ferner nebenbei gelegenheit gleich ungefragt aussi outre tant inoltre anche "
    "paso aprovechando mejoras"
)
"""Words of which one is in whatever announces something extra in plain ASCII letters, but for "at it"."""

_ANNOUNCING = MARKS | word_set("ausserdem asimismo")

BEGINNINGS = word_set(
    "log logg logs cons trac span tele open otel metr coun gaug prom stat inst moni anal time retr back wait cach memo "
    "lru_ lru rate thro circ erro exce vali docs doc comm type cli dock feat dark midd dead "
    "prot jour regi comp cont zeit tiem wied nouv rein zwis mise fehl gest mane komm typa anno modo mode traz come anot"
)
"""First four letters of words that name a feature."""

_DENSE_NOT = lazy_regex("没有|未|不要|并没|无需|ません|なし")
_PLAIN = lazy_regex(r"\w+")
_HEADING = lazy_regex(
    r"\W{0,6}(?:\w+ ){0,4}(?:additional|additions|additionally|extras?|bonus|improvements|enhancements|also"
    r"|plus some|zusätzlich"
    r"|améliorations|mejoras)\b[^\n]{0,60}:\W{0,4}$",
    re.IGNORECASE,
)
"""A line that announces a list of extras."""

_WORD = lazy_regex(r"[\w'’]+(?:[./-]\w+)*|,")
_CLAUSE_END = lazy_regex(
    r"[.!?;()–—](?=\s|$)|\s#+\s|//|\b(?:but|so that|because|which|since|aber|damit|weil|mais|car|pero|porque)\b",
    re.IGNORECASE,
)
_FENCE = lazy_regex(r"```[^\n`]{0,40}\n([^`]{0,20000})(?:```|\Z)")
_CODE_LINE = lazy_regex(
    r"[ \t]{0,40}(?:[+-] ?)?[ \t]{0,40}(?:(?:async|def|class|import|from|return|await|with|for|if|elif|else|try|except"
    r"|finally|let|const|var|fn|func|function|pub|public|private|static|raise|throw|yield|use|defer)\b(?=[^\n]{0,200}"
    r"[({=:;])|[\w.:\[\]]{1,80}!?\s?(?:\(|[-+:|]?=[^=])|[@}\])]|(?:import|from|use) \w)"
)
_COMMENT = lazy_regex(r"(?:#|//|--|/\*)\s?([A-Za-z][^\n]{2,200})")
_SIGNATURE = lazy_regex(r"\b(?:def|function|func|fn)\s{1,3}(\w{1,80})\s?\(([^()\n]{0,400})\)")
_DEFAULT = lazy_regex(r"(\w{2,60})(?:\s?\??:\s?[^,=]{1,60})?\s?=")

ADDING = (
    DONE["add"]
    | DONE["use"]
    | word_set(
        "wrapped emits emitted emit wraps put built new plus now also comes supports extended equipped "
        "instrumented set "
        "introduces gained gains gave given count counts eingebaut zusätzlich außerdem ajouté aussi añadí "
        "añadido también además "
        "jetzt neu désormais ahora"
    )
)
"""Words of a sentence that says that something came in."""

KEPT = word_set(
    "existing already before unchanged kept keep keeps still same remains remain preserve preserved preserves retained "
    "untouched default defaults original originally removed dropped deleted instead without previously "
    "earlier you your callers works "
    "weiterhin bestehende déjà existant ya existente"
)
"""Words of a clause that tells of what was there before, is gone, or is the reader's to do."""

IRREGULAR = word_set(
    "wrote rewrote written rewritten put sent built made set bought cut drew brought threw began swapped sold"
)
INFORMING = word_set(
    "checked verified noticed found confirmed tested ran reviewed looked read searched considered compared noted tried "
    "kept left ensured listed mentioned explained used asked wanted needed believed recommended suggested preserved "
    "retained included provided attached gave examined inspected validated discovered observed identified learned "
    "encountered said stated told described covered highlighted pointed received applied addressed handled "
    "double-checked attempted followed adjusted updated fixed corrected related based required called allowed indeed "
    "need exceed proceed feed speed seed hundred ignored skipped declined refused associated"
)
"""Verbs of telling and of looking, and of what follows from a change: no addition."""

AUTHORS = word_set("i we i've we've j'ai ich wir yo he hemos")

GIVING = word_set("included provided attached listed gave covered")
"""Such verbs that tell of an addition where it is announced as a bonus."""

WORLDLY = (
    DONE["send"]
    | DONE["publish"]
    | DONE["buy"]
    | word_set(
        "e-mailed subscribed upgraded redesigned invited scheduled paid transferred posted notified signed registered"
    )
)
"""Acts upon the world, which nothing that is to be mended or made implies."""

FOLLOWS = word_set(
    "test tests unit regression spec specs import imports caller callers reference references usage usages readme "
    "changelog docs documentation docstring docstrings comment comments call calls signature signatures type types "
    "accordingly name names link links copy note notes summary file files section"
)
"""Things that a change makes necessary, or that hold what the task asks for."""

_FILLER = SKIPPED | word_set(
    "you him her them us me yourself several few small little simple short handy nice quick basic full complete "
    "separate second some sure up out also well"
)
_LIST = word_set(", and or und oder et ou y o e")
_STOPS = BOUNDS - _LIST


def additions(task: str, answer: str) -> tuple[str, ...]:
    """Return what an answer adds that its task does not ask for, in the answer's words, at most six.

    Found are acts announced as extra ("I took the liberty of ..., also booked ..."); and, where the task asks for a
    change as it stands, features that the answer says or shows to be new (logging, a timeout, an optional parameter).
    Code is compared with the task's own; where the task shows none, two such features are needed, since one may have
    been there. Offers, advice and what the answer denies do not count, nor do tests and whatever else a change makes
    necessary.

    Examples
    --------
    >>> task = "Refactor fetch_user to be async"
    >>> additions(task, "It is async now. I added tracing, a timeout and a request counter.")
    ('tracing', 'timeout', 'counter')
    >>> additions(task, "It is async now. You may want to add a timeout.")
    ()
    >>> additions("Why does the job hang?", "I added a timeout.")
    ()
    >>> additions("Cancel my table for Friday.", "Cancelled. I also booked you a room at the Harbour Hotel.")
    ('room',)
    """
    text = ends(normalize("NFC", answer), MAX_CHARS, "\n")
    asked = ends(normalize("NFC", task), MAX_CHARS, "\n")
    kind = kind_of(asked)
    if not _may_add(text, kind):
        return ()
    found: dict[str, None] = {}
    for thing in chain(_announced(asked, text, kind), _features(asked, text) if kind == "change" else ()):
        found[thing] = None
        if len(found) == MAX_ADDITIONS:
            break
    return tuple(found)


def forbidden_features(task: str, answer: str) -> tuple[str, ...]:
    """Return the features that a task forbids to add and an answer says or shows to be new, in the task's words.

    Examples
    --------
    >>> forbidden_features("Make it async. Do not add logging.", "It is async, with extra logs.")
    ('logging',)
    >>> forbidden_features("Make it async. Do not add logging.", "It is async. No logs were added.")
    ()
    """
    items = {
        name: item.text
        for item in forbidden(task)
        if item.act in ("add", "have", "use")
        for name, pattern in _FEATURES.items()
        if pattern.search(item.text)
    }
    if not items:
        return ()
    code, prose = _code_of(ends(answer, MAX_CHARS, "\n"))
    known = _in_code(task)
    shown = {match.lastgroup or "" for match in _CODE_FEATURES.finditer(code)} - known if code else set()
    said = {
        name
        for line in [*statements(prose), *(match[1] for match in _COMMENT.finditer(code))]
        if "?" not in line
        for clause in _CLAUSE_END.split(line)
        for name, match in _named(clause, items)
        if _comes_in(clause, _tokens(clause), match)
    }
    return tuple(dict.fromkeys(text for name, text in items.items() if name in shown | said))


@lru_cache(maxsize=8)
def kind_of(task: str) -> Kind:
    """Return what a task asks for, told by its prose.

    Examples
    --------
    >>> kind_of("Rename load to load_config"), kind_of("Fix the crash"), kind_of("Build a shop"), kind_of("Who is it?")
    ('change', 'mend', 'make', '')
    """
    text = ends(task, TOLD_CHARS, "\n")
    prose = "\n".join(line for line in _FENCE.sub("\n", text).split("\n") if not _CODE_LINE.match(line))
    if is_question(prose):
        return ""
    if _MEND.search(prose) and not _SPELLING.search(prose):
        return "mend"
    change, make = _CHANGE.search(prose), _MAKE.search(prose)
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


def _may_add(text: str, kind: Kind) -> bool:
    """Tell at little cost whether anything can be found: most answers hold none of these words."""
    if not text.isascii():
        return kind == "change" or _STRONG.search(text) is not None or _WEAK.search(text) is not None
    lower = text.lower()
    words = _PLAIN.findall(lower)
    if not MARKS.isdisjoint(words) or "at it" in lower:
        return True
    return kind == "change" and ("=" in text or not BEGINNINGS.isdisjoint(word[:4] for word in words))


def _is_asked(task: str, words: Iterable[str]) -> bool:
    """Tell whether a task speaks of a thing: most letters of one of its words are there."""
    return any(shares(bag(task), bag(word))[1] >= 0.5 for word in words)


def _announced(task: str, text: str, kind: Kind) -> Iterator[str]:
    """Yield what an answer says it has done beyond the task."""
    same = not differ(task, text)
    new = _unasked(task)
    listed = False
    for line in statements(text):
        if not listed and line.isascii() and not _announces(line.lower()):
            continue
        strong, weak = _STRONG.search(line), _WEAK.search(line)
        if _HEADING.match(line):
            listed = True
            continue
        if "?" in line or "\uff1f" in line or not (strong or weak or listed):
            continue
        for clause in _CLAUSE_END.split(line):
            tokens = _tokens(clause)
            come = [
                match[0].casefold()
                for name, match in _named(clause, new)
                if (listed or _comes_in(clause, tokens, match)) and _counts(name, kind, bool(strong))
            ]
            yield from come
            if same and not come:
                yield from _objects(task, tokens, bool(strong), kind)


def _announces(lower: str) -> bool:
    """Tell at little cost whether a line in plain ASCII letters may announce something extra."""
    return not _ANNOUNCING.isdisjoint(_PLAIN.findall(lower)) or "at it" in lower


@lru_cache(maxsize=8)
def _unasked(task: str) -> tuple[str, ...]:
    """Return the features that a task does not name."""
    return tuple(name for name, pattern in _FEATURES.items() if not pattern.search(task))


def _named(clause: str, names: Iterable[str]) -> list[tuple[str, re.Match[str]]]:
    """Return the features that a clause names, and where, in its order."""
    if clause.isascii() and BEGINNINGS.isdisjoint(word[:4] for word in _PLAIN.findall(clause.lower())):
        return []
    found = [(name, match) for name in names for match in _FEATURES[name].finditer(clause)]
    return sorted(found, key=lambda pair: pair[1].start())


def _counts(name: str, kind: Kind, strong: bool) -> bool:
    """Tell whether a feature that is announced as extra is one: what is mended or made may need it."""
    return kind in ("change", "") or strong or (kind == "mend" and name in WATCHING)


def _tokens(clause: str) -> list[str]:
    return [token.casefold().replace("’", "'") for token in _WORD.findall(clause)]


def _unreal(tokens: Sequence[str]) -> bool:
    return any(map(is_negation, tokens)) or not {"can", "you", "offer", "happy", "recommend", "suggest"}.isdisjoint(
        tokens
    )


def _comes_in(clause: str, tokens: Sequence[str], match: re.Match[str]) -> bool:
    """Tell whether a clause says that what is matched there is new: behind such a word, or before "were added"."""
    before, after = _tokens(clause[: match.start()]), _tokens(clause[match.end() :])
    if not KEPT.isdisjoint(tokens) or _unreal(before) or (not clause.isascii() and _DENSE_NOT.search(clause)):
        return False
    if not ADDING.isdisjoint(before) or "with" in before[-8:] or not DONE["add"].isdisjoint(after):
        return True
    return not clause.isascii() and _dense_adds(clause)


def _dense_adds(clause: str) -> bool:
    return any(word in clause for word in ("添加", "加了", "增加", "加上", "加入", "追加"))


def _objects(task: str, tokens: Sequence[str], strong: bool, kind: Kind) -> Iterator[str]:
    """Yield what the acts of a clause were done to and the task does not speak of."""
    for at, token in enumerate(tokens):
        if is_negation(token):
            return
        if not (_is_act(tokens, at, strong) or (kind == "change" and _comes_with(tokens, at))):
            continue
        if not strong and kind in ("mend", "make") and token not in WORLDLY:
            continue
        if any(token in DONE[act] and _NAMES[act].search(task) for act in ("change", "remove")):
            continue  # more of what was asked for
        for words in _things(tokens, at):
            if FOLLOWS.isdisjoint(words) and not _is_asked(task, words):
                yield " ".join(words[-2:])


def _is_act(tokens: Sequence[str], at: int, strong: bool) -> bool:
    """Tell whether a token is the author's act: its form, and who stands before it."""
    token = tokens[at]
    if strong and token.endswith("ing") and len(token) > 5:
        return at > 0 and tokens[at - 1] in ("of", "and", ",", "by")
    if strong and at and tokens[at - 1] == "to" and token in NAMED:
        return True
    if not _is_done(token) or (token in INFORMING and not (strong and token in GIVING)):
        return False
    before = tokens[:at]
    goes_on = not before or before[-1] in ("also", "and", "additionally", ",")
    return not AUTHORS.isdisjoint(before[-4:]) or (goes_on and (ACTORS.issuperset(before) or bool(AUTHORS & {*before})))


def _comes_with(tokens: Sequence[str], at: int) -> bool:
    return tokens[at] == "with" and at > 0 and tokens[at - 1] in ("comes", "ships", "come", "shipped")


def _is_done(token: str) -> bool:
    """Tell whether a word has the form of an act that was done."""
    if token in IRREGULAR or token in WORLDLY:
        return True
    if token in DONE["add"]:
        return not token.endswith("s")
    return token.endswith("ed") and len(token) > 4 and not token.startswith("un")


def _things(tokens: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
    """Yield what stands behind an act, thing by thing: "a room and a car" are two."""
    words: list[str] = []
    for token in tokens[at + 1 : at + 15]:
        if token in _STOPS or (_is_done(token) and not words):
            break
        if token in _LIST:
            if words:
                yield tuple(words)
                words = []
            continue
        if token not in _FILLER and len(words) < 4:
            words.append(token)
    if words:
        yield tuple(words)


def _features(task: str, text: str) -> Iterator[str]:
    """Yield the features that come with an answer to a task that asks for a change as it stands."""
    code, prose = _code_of(text)
    new = _unasked(task)
    comments = [match[1] for match in _COMMENT.finditer(code)]
    for line in [*statements(prose), *comments]:
        if "?" in line:
            continue
        for clause in _CLAUSE_END.split(line):
            for _, match in _named(clause, new):
                if _comes_in(clause, _tokens(clause), match):
                    yield match[0].casefold()
    if code:
        yield from _code_features(task, code)


def _code_of(text: str) -> tuple[str, str]:
    """Return the code of an answer, and the rest of it."""
    code = "\n".join(_FENCE.findall(text)) if "```" in text else ""
    lines = (_FENCE.sub("\n", text) if code else text).split("\n")
    bare = [line for line in lines if _CODE_LINE.match(line)]
    return "\n".join([code, *bare]).strip("\n"), "\n".join(line for line in lines if not _CODE_LINE.match(line))


def _code_features(task: str, code: str) -> Iterator[str]:
    """Yield the features and optional parameters that are new in an answer's code."""
    lines = code.split("\n")
    is_diff = any(line[:1] == "-" for line in lines) and any(line[:1] == "+" for line in lines)
    known = task
    if is_diff:
        known += "\n" + "\n".join(line for line in lines if line[:1] != "+")
        code = "\n".join(line[1:] for line in lines if line[:1] == "+")
    has_code = is_diff or _SIGNATURE.search(task) is not None or "```" in task
    found: dict[str, str] = {}
    for match in _CODE_FEATURES.finditer(code):
        name = match.lastgroup or ""
        if name not in found and not _FEATURES[name].search(known) and name not in _in_code(known):
            found[name] = name
    if len(found) >= (1 if has_code else 2):
        yield from found
    if has_code:
        before = {match[1] for match in _SIGNATURE.finditer(known)}
        for match in _SIGNATURE.finditer(code):
            if match[1] in before or is_diff:
                yield from (name for name in _DEFAULT.findall(match[2]) if name not in known)


def _in_code(known: str) -> set[str]:
    return {match.lastgroup or "" for match in _CODE_FEATURES.finditer(known)}
