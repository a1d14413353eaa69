"""Prohibitions by somebody with a say, and calls that break them: by the act, and by what it is done to.

Read are the goal, requests, corrections and the system text. Precision before recall: what has a condition ("unless",
"before you ask") is passed over, and a later request that asks for the act lifts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from coherence.core.events import Message, ToolCall
from coherence.core.lazy import lazy_regex
from coherence.core.readings import excerpt
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.constraints import NAMED
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.fingerprints import PATHS, SHELLS, STEPS, command_of, name_words
from coherence.detect.text_analysis import TextAnalysis, tokens

MAX_PROHIBITIONS = 24
MAX_CHARS = 20_000
"""Characters of a request that are read, half from each end."""

MAX_COMMAND = 2_000
"""Characters of a command that are read."""

MAX_ARGUMENTS = 60
"""Arguments of a call that are looked at."""

MAX_OBJECTS = 4
"""Words of what is forbidden that a call must name; more are a description."""

LONG_STEM, SHORT_STEM = 6, 3
"""Letters that words of one stem share at least: of long ones, and of those that differ in one more letter."""

QUOTED = 160
MAX_DOMAINS = 16


_WORDS: dict[str, str] = {
    "cancel": "cancel cancelling canceling cancelled canceled cancels storniere stornieren annule annulez cancele",
    "install": "install installing installed installs installiere installieren installe installez instales",
    "handover": "transfer transferring transferred escalate escalating escalated forward hand handed handing",
    "pay": "pay paying paid spend spending spent charge charging refund refunding refunded wire bezahle überweise",
    "send": "write writing reply replying notify notifying contacted emailed messaged called contacts emails invite "
    "schreibe kontaktiere sende schicke écris envoie envoyez contacte escribas envíes contactes invited inviting",
    "commit": "commit committed committing commits",
    "publish": "deployed published released pushed merged upload uploading uploaded deployment deployments",
    "buy": "buying bought purchase purchasing purchased ordered booked reserve",
    "change": "adjust overwrite replace replacing reformat reschedule changed modified touched edited moved updated "
    "renamed overwritten altered replaced toques cambies modifiques touchez modifiez changez modifie ändern "
    "ändere anfassen",
    "remove": "deleted removed dropped erased purge purging wipe truncate destroy efface effacez supprimez "
    "borres elimines borrar",
    "add": "added created",
    "run": "run running execute executing start starting launch launching",
    "restart": "restart restarting restarted reboot rebooting stop stopping kill shut",
}
ACTS: dict[str, str] = {
    word: act for word, act in NAMED.items() if act in ("add", "change", "remove", "send", "publish", "buy")
}
ACTS |= dict.fromkeys(("use", "using", "import", "importing", "include", "including", "introduce"), "have")
ACTS |= dict.fromkeys(("mention", "mentioning", "say", "reveal", "disclose"), "have")
ACTS |= {word: act for act, words in _WORDS.items() for word in words.split()}
"""Word of a request -> the act it forbids; ``write`` means a letter only with ``to``."""

_DOING: dict[str, str] = {
    "change": "edit update modify change set write replace patch sed tee apply rename move mv alter reschedule "
    "configure put overwrite perl ersetze ändere bearbeite reemplazar editar guardar modifier remplacer",
    "remove": "delete remove drop rm rmdir erase purge truncate destroy unlink wipe dropdb lösche entferne "
    "borrar supprimer",
    "add": "create add insert make write touch mkdir new",
    "send": "send email mail message notify reply contact sms invite share forward event sende schreibe enviar "
    "envoyer call",
    "commit": "commit",
    "publish": "push deploy publish release merge upload twine promote",
    "install": "install",
    "buy": "buy purchase order book checkout reserve",
    "cancel": "cancel",
    "pay": "pay transfer refund charge spend withdraw wire purchase buy order checkout money",
    "handover": "escalate handoff handover",
    "restart": "restart reboot stop kill shutdown halt",
    "close": "close resolve",
}
DOING: dict[str, set[str]] = {}
for _act, _doing in _DOING.items():
    for _word in _doing.split():
        DOING.setdefault(_word, set()).add(_act)
"""Word of a tool's name or of a command -> the acts that it may be."""

READING = word_set("get list search find read check show view fetch lookup query describe calculate grep cat ls")
"""First words of tools that change nothing."""

PERSONS = tokens(
    "customer client user them anyone anybody someone somebody nobody people person persons recipient recipients "
    "buyer buyers guest guests patient patients tenant tenants parent parents student students subscriber subscribers "
    "outside external company him team colleague colleagues everybody everyone else agent agents human representative "
    "operator"
)
"""Tokens of whom nothing in a call tells."""

IMPLIED: Mapping[str, frozenset[str]] = {
    "install": tokens("package packages dependency dependencies library libraries module modules software tool tools"),
    "send": PERSONS | tokens("email emails mail mails message messages invitation invitations"),
    "commit": tokens("change changes code work file files branch version repository repo"),
    "publish": tokens("release releases version code branch package site deployment deployments"),
    "pay": PERSONS | tokens("money payment payments refund refunds fund funds amount euro euros dollar dollars single"),
    "buy": PERSONS | tokens("item items order orders product products"),
    "cancel": PERSONS | tokens("order orders booking bookings reservation reservations"),
    "handover": PERSONS | tokens("over call me case another"),
}
"""Act -> tokens of what it is done to anyway."""

NAMES_IT: Mapping[str, frozenset[str]] = {
    "install": tokens("package packages dependency dependencies library libraries"),
    "publish": tokens("release releases deployment deployments upload uploads"),
    "pay": tokens("payment payments refund refunds transfer transfers"),
    "send": tokens("email emails mail mails message messages"),
    "cancel": tokens("cancellation cancellations"),
    "buy": tokens("purchase purchases"),
    "handover": tokens("handover handovers escalation escalations"),
}
"""Act -> nouns that name it: "no refunds", "issue no refunds"."""

LIGHT = word_set(
    "issue issuing make making do doing give giving process processing perform grant granting initiate place"
)
"""Verbs that leave it to a noun what is done."""

ALONE = word_set("publish commit install handover cancel send pay buy")
"""Acts that may be forbidden without a word of what they are done to."""

WHOLLY = word_set(
    "lösche löschen ändere ändern entferne entfernen modifie "
    "efface effacez supprime supprimez borres elimines "
    "change changing modify modifying touch touching edit editing alter delete deleting remove removing add create"
)
"""Verbs of other acts that forbid them for anything at all; to "move" something is one way to change it."""

SYNONYMS = [
    tokens("appointment appointments event events meeting meetings calendar agenda"),
    tokens("test tests spec specs"),
    tokens("mail mails email emails message messages"),
    tokens(
        "database databases db dropdb psql postgres postgresql mysql mariadb sqlite mongodb mongo redis Datenbank "
        "Datenbanken"
    ),
    tokens("salary salaries wage wages pay paid earn earns income"),
    tokens("migration migrations Migrationen migrationen"),
    tokens("payment payments transaction transactions transfer transfers"),
]
"""Tokens that name the same kind of thing."""

_EMPTY = tokens(
    "file files thing things anything something everything nothing anyone anybody below inside within under above "
    "exist existing yet now still myself yourself directly whatever happens additional new more extra other others "
    "every each both pas jamais rien les des la le los las el una un Datei Dateien fichier fichiers archivo archivos "
    "original originals aucun aucune ningún ninguno ninguna "
    "folder directory exactly all any own public part anywhere way anymore please bitte current one here"
)
"""Tokens that say nothing of what is forbidden."""

_HOLDS = word_set(
    "anything any anybody anyone nothing no none everything aucun aucune nada ningún ninguno ninguna nichts"
)

_CONDITION = lazy_regex(
    r"\b(?:unless|except|until|if|when|whenever|before|after|without (?:my|asking|confirm\w*|permission|approval)"
    r"|only|other than|instead of|außer|sauf|salvo|where possible|rather than|need to|have to|forget|hesitate|worry)\b",
    re.IGNORECASE,
)
"""Words that make a sentence no plain prohibition."""

_DO_NOT = lazy_regex(
    r"(?:^|[,;:(–—-]\s{0,3}|\b(?:please|and|but|so|also|you|we|just|bitte|happens,?|por favor)\s{1,3}"
    r"|(?-i:\s(?=Do not |Don't |Never |Please )))"
    r"(?:(?:under no circumstances|in no case|by no means|at no point),?(?: (?:do|should|may|can|must|shall"
    r"|are))?(?: you| we)?(?: to| ever)?"
    r"|(?:it is|it's) (?:strictly )?(?:forbidden|prohibited|not allowed|not permitted) to|(?:should|must|may"
    r"|shall|can) never"
    r"|are (?:not allowed|forbidden|not permitted) to|do not|don't|never|(?:must|should|may|shall|can) ?not"
    r"|mustn't|shouldn't|can't|refrain from|avoid|no|nunca|ne|n'(?=[aeiouéêh]))"
    r"(?:\s{1,3}|(?<=n'))(?:ever |please |just |also |even |try to )?(?P<rest>[^\n]{2,160})"
    r"|(?:^|[-:,] )(?:please )?(?P<verb>\w{3,14}) (?:no|keine?n?) (?P<none>[^\n]{2,120})"
    r"|\bwithout (?P<doing>\w{4,14}ing [^\n]{2,100})"
    r"|\b(?P<after>ändere|lösche|entferne|sende|storniere|installiere)\b (?P<was>[^\n]{2,80}) nicht\b",
    re.IGNORECASE,
)
_WANT_NOT = lazy_regex(
    r"\bi (?:really |absolutely )?(?:do not|don't|never) want (?:you |to be |to |any\w* |an? \w+ |my )?"
    r"(?P<rest>[^\n]{3,120})",
    re.IGNORECASE,
)
_STAYS = lazy_regex(
    r"\b(?:keep|leave) (?P<kept>[^\n,;]{2,60}?),? (?:exactly |completely |entirely )?"
    r"(?:unchanged|untouched|alone|intact|unmodified|as (?:it|they|is|are)\b|the same\b|where (?:it|they) )"
    r"|(?:^|[,;:]\s)(?:and |but )?(?P<stays>[^\n,;]{2,60}?) (?:must|should|has to|have to|needs? to|shall|is to|are to)"
    r" (?:stay|remain|be (?:kept|left))\b"
    r"|(?:^|[,;:]\s|\bbut )(?:please )?keep (?P<all>(?:all|every|each|both) [^\n,;]{2,40})$",
    re.IGNORECASE,
)
_HANDS_OFF = lazy_regex(
    r"\b(?:hands off|stay away from|stay out of|keep out of|keep away from|steer clear of) (?P<what>[^\n,;.]{2,50})"
    r"|(?:^|[,;:]\s)(?P<closed>[^\n,;]{2,50}) (?:is|are) (?:off[- ]limits|read[- ]only|taboo|frozen)\b",
    re.IGNORECASE,
)
_ONLY_IN = lazy_regex(
    r"\bonly (?:change|edit|touch|modify|work|write)\b[^\n.]{0,20}? (?:in|under|below|inside|within|to) "
    r"[\"'`]?(?P<where>[\w./-]{2,60})",
    re.IGNORECASE,
)
_BUDGET = lazy_regex(
    r"\b(?:budget (?:is|of)|spend (?:at most|no more than|up to|less than)|costs? (?:at most|no more than|under|below"
    r"|less than)|(?:stay|keep \w{1,20}(?: \w{1,20})?|remain) (?:under|below|within)) [$€£]?\s?"
    r"(?P<limit>\d{1,9}(?:,\d{3}){0,3}(?:\.\d{1,2})?)\b",
    re.IGNORECASE,
)
_NOT_BE = lazy_regex(
    r"(?:^|[,;:]\s)(?P<what>[^\n,;]{2,50}) (?:must|may|should|shall) not be (?P<done>\w{4,14})\b"
    r"|\bno (?P<none>[^\n,;]{2,40}) (?:must|may|should|shall|are to|is to) be (?P<undone>\w{4,14})\b"
    r"|\b(?P<nothing>nothing|no ?one|nobody) (?:gets|is to be|(?:may|must|should|shall|can|will) (?:be"
    r"|get)) (?P<any>\w{4,14})\b",
    re.IGNORECASE,
)
_ONLY_MAY = lazy_regex(
    r"\bonly (?:the )?(?:files?|code|things?|paths?|anything|what is)? ?(?:in|under|below|inside"
    r"|within) [\"'`]?(?P<where>[\w./-]{2,60})"
    r" (?:may|can|should|must|is to|are to) (?:only )?be \w{4,14}",
    re.IGNORECASE,
)
_STANDARD = lazy_regex(
    r"\b(?:standard library|stdlib|built-?ins?) only\b|\bonly (?:use )?(?:the )?(?:standard library|stdlib)\b",
    re.IGNORECASE,
)
_EXCEPT = lazy_regex(
    r"\b(?:nobody|no ?one|not? \w{3,12}) (?:may|must|should|shall|is to|can|will) be (?P<done>invited"
    r"|contacted|emailed|notified|messaged|informed|told|added)"
    r"\b[^\n]{0,20}? (?:except|but|other than) (?:for )?(?P<but>[A-Z][\w.-]{1,30}(?:(?:, | and "
    r"|, and )[A-Z][\w.-]{1,30}){0,5})"
    r"|\b[Oo]nly (?P<only>[A-Z][\w.-]{1,30}(?:(?:, | and |, and )[A-Z][\w.-]{1,30}){0,5}) (?:may|must|should"
    r"|shall|is to|can) be (?P<did>invited|contacted|emailed|notified|messaged)\b"
)
_KEEP_OUT = lazy_regex(
    r"\b(?:keep|leave) (?P<out>[^\n,;]{2,40}?) out\b|(?:^|[,;:.]\s)(?:los |las |el |la |die |der |das |les "
    r"|the )?(?P<unseen>[^\n,;:.]{2,40}?)"
    r" (?:(?:must|may|should|can) ?not (?:appear|show up|occur|be (?:mentioned|named|shown|listed))"
    r"|no (?:pueden?|deben?) (?:aparecer|figurar|salir)"
    r"|(?:dürfen|darf|sollen|soll)(?: \w{2,12}){0,4} nicht (?:vorkommen|erscheinen|auftauchen|stehen)"
    r"|ne (?:doit|doivent|peut|peuvent) pas (?:apparaître|figurer))\b",
    re.IGNORECASE,
)
_STAYS_ELSEWHERE = lazy_regex(
    r"(?:^|[,;:.]\s|\b(?:die|den|das|der) )(?P<stays>[\wäöüß-]{3,40}) (?:lässt du|lass|bleiben|bleibt"
    r"|bitte)(?: \w{2,10}){0,3} "
    r"(?:unangetastet|unverändert|in Ruhe|wie (?:sie|er|es) (?:ist|sind))",
    re.IGNORECASE,
)
_CHINESE = lazy_regex(
    r"(?:不要|不得|禁止|不能|不可以?|请勿|切勿|别)(?P<act>重启|停止|关闭|删除|修改|更改|改动|发送|联系|安装|提交|推送|部署|购买|支付"
    r"|取消)(?P<what>[^。，,;；!！?？\s]{0,12})"
)
_CHINESE_ACTS = {
    **dict.fromkeys(("重启", "停止", "关闭"), "restart"),
    "删除": "remove",
    **dict.fromkeys(("修改", "更改", "改动"), "change"),
    **dict.fromkeys(("发送", "联系"), "send"),
    "安装": "install",
    **dict.fromkeys(("提交", "推送", "部署"), "publish"),
    "购买": "buy",
    "支付": "pay",
    "取消": "cancel",
}
_CHINESE_THINGS = {
    "数据库": "database",
    "测试": "test",
    "客户": "customer",
    "配置": "config",
    "订单": "order",
    "迁移": "migration",
    "日志": "log",
}
_WORD_LIMIT = lazy_regex(
    r"\b(?:at most|no more than|up to|under|below|fewer than|less than|max(?:imum)?(?: of)?|within|höchstens"
    r"|maximal|como máximo|au plus)\s(?P<words>\d{1,5}) (?:words|Wörter\w?|palabras|mots)\b",
    re.IGNORECASE,
)
_NO_NOUN = lazy_regex(
    r"(?:^|[,;:]\s|\b(?:with|and|but|please) )no (?P<noun>[\w-]{3,20}(?: [\w-]{3,20}){0,2})"
    r"(?: in (?:your|the|my) (?:answer|reply|response|code|text|summary|output|report|function|message))?"
    r"(?:,? (?:please|thanks|thank you|bitte))?\s{0,2}[.!]?$",
    re.IGNORECASE,
)
_IS_FORBIDDEN = lazy_regex(
    r"(?:^|[,;:]\s)(?P<what>[^\n,;]{2,50}) (?:is|are) (?:strictly )?(?:forbidden|prohibited|not allowed"
    r"|not permitted|banned)\b"
    r"|\bkeine? (?P<kept>[\w ]{2,40}) (?P<do>ändern|anfassen|löschen|entfernen)\b"
    r"|(?:^|[,;:]\s)(?P<same>[^\n,;]{2,50}) (?:must|may|should|shall) not change\b",
    re.IGNORECASE,
)
_NO_FORM = lazy_regex(
    r"(?:(?:^|[,;:(]\s|\b(?:and|but|with|please|use|include|add|contain) )no"
    r"|\b(?:without(?: any)?|avoid|ohne|sans|sin))"
    r" (?P<form>formulas|emojis?|links|urls|prices|bullet points|bullets|tables)\b",
    re.IGNORECASE,
)
_LIMIT = lazy_regex(
    r"\b(?:more than|over|above|exceed\w{0,3}|at most|no more than|up to|maximum of)\s{1,3}[$€£]?\s?"
    r"(?P<limit>\d{1,9}(?:,\d{3}){0,3}(?:\.\d{1,2})?)\b",
    re.IGNORECASE,
)
FORMS: Mapping[str, re.Pattern[str]] = {
    "formula": lazy_regex(
        r"(?<![\w=<>!])[A-Za-z]\w{0,3}(?:\([a-z]\))? = [\w(][^\n]{0,40}?[-+*/^\d]|\\frac|\$[^$\n]{1,80}=[^$\n]{1,80}\$"
    ),
    "emoji": lazy_regex(r"[\U0001F300-\U0001FAFF\u2600-\u27BF]"),
    "link": lazy_regex(r"https?://\S|\bwww\.\w"),
    "url": lazy_regex(r"https?://\S|\bwww\.\w"),
    "dose": lazy_regex(r"\b\d{1,5}(?:[.,]\d{1,3})?\s?(?:mg|µg|mcg|ml|milligrams?|tablets?)\b", re.IGNORECASE),
    "price": lazy_regex(r"[$€£]\s?\d|\b\d{1,7}(?:[.,]\d{1,2})?\s?(?:€|EUR\b|USD\b|dollars?\b|euros?\b)"),
    "bullet": lazy_regex(r"(?:^|\n)\s{0,8}[-*•] \S"),
    "table": lazy_regex(r"(?:^|\n)\|[^\n]{1,200}\|"),
}
"""Noun of a prohibition -> how an answer shows such a thing. A stem of it counts too."""

_SORTS = tokens(
    "function functions method methods statement statements keyword keywords module modules class classes call calls"
)
"""Tokens that only say of what sort something in code is."""

_PHRASES = {"base de datos": "database", "bases de datos": "databases", "base de données": "database"}

OFFICES = word_set(
    "shipping support warehouse ops operations it hr office billing team legal security admin helpdesk desk "
    "logistics accounting "
    "finance sales dispatch service backoffice staff internal"
)
"""Mailboxes of one's own house: not those of a customer, a guest or a patient."""

OUTSIDERS = tokens(
    "customer customers client clients buyer buyers guest guests patient patients tenant tenants parent "
    "parents student students subscriber subscribers"
)
"""Tokens of whom a house works for."""

_LABELLED = lazy_regex(
    r"\b(?:with|that have|having|of) (?:the |a )?(?:label|tag|status|flag|state|type|category)\b", re.IGNORECASE
)
MAX_MARKED = 64
LENIENT = 1.1
"""Share of the words allowed up to which nobody counts."""

_ID = lazy_regex(r"(?<![\w.])#?([A-Za-z]{0,8}[-_]?\d{2,12})(?![\w.])")

_QUANTITY = lazy_regex(r"\b(?:number|amount|count|quantity|order) of\b", re.IGNORECASE)
_ABLE = lazy_regex(r"\b(?:can|could|may|possible|able)\b", re.IGNORECASE)
_OUTSIDE = lazy_regex(r"\b(?:outside|external)\b", re.IGNORECASE)
_WORD = lazy_regex(r"[\w'-]+")
_STOPS = lazy_regex(r"[.;:!?](?=\s|$)|,\s| (?:but|because|since|so that|aber|weil|mais|pero) ", re.IGNORECASE)
_PATH = lazy_regex(r"[\w.~-]{0,80}(?:/[\w.*~-]{1,80}){1,9}/?|[\w-]{1,60}\.[a-z]{1,5}\b|[\w.-]{1,60}/")
_INTO = lazy_regex(r"(?<![0-9&<>-])>{1,2}\s{0,3}[\w./~-]")
_IN_SQL = lazy_regex(
    r"\b(DELETE|INSERT|UPDATE|DROP|ALTER|CREATE|TRUNCATE) (?:FROM|INTO|TABLE|DATABASE|INDEX|\w+ SET)\b"
)
_MAIL = lazy_regex(r"[\w.+-]{1,64}@([\w-]{1,60}(?:\.[\w-]{1,60}){1,4})")
_SIGNATURE = lazy_regex(r"\b(?:def|function|func|fn|sub)\b[^\n()/]{0,80}\(")
_MONEY_KEY = lazy_regex(r"(?:amount|price|total|sum|cost|value|budget|betrag|montant)\Z", re.IGNORECASE)


class Prohibition(msgspec.Struct, frozen=True):
    """One thing that must not be done.

    Examples
    --------
    >>> found = list(prohibitions("Make it faster. Do not touch any file below tests/, and deploy nothing."))
    >>> found[0].acts, found[0].objects, found[0].sentence
    (('change', 'remove'), ('test',), 'Do not touch any file below tests/, and deploy nothing.')
    """

    acts: tuple[str, ...]
    objects: tuple[str, ...]
    """Tokens that name what it must not be done to; empty = anything."""
    sentence: str
    limit: float | None = None
    """Amount that must not be passed."""
    outside: bool = False
    """True if it must not be done to others than one's own company."""
    within: str = ""
    """Folder or file outside of which it must not be done."""
    seq: int = 0
    but: tuple[str, ...] = ()
    """Names of those for whom it does not hold."""
    outsiders: bool = False
    """True if it is about whom a house works for: then its own offices are none of them."""
    words: int = 0
    """Words that an answer may have at most; 0 = any number."""
    forms: tuple[str, ...] = ()
    """Forms that an answer must not show: keys of :data:`FORMS`."""
    lasting: bool = False
    """True if it comes from the system text, and holds for every goal."""


class BrokenProhibition(msgspec.Struct, frozen=True):
    """A call and the sentence that forbids it."""

    seq: int
    tool: str
    arguments: str
    sentence: str
    other: int
    """Number of the event that forbids it; 0 = of an earlier session."""


class ProhibitionFacts(msgspec.Struct):
    """Prohibitions that stand; plain data, bounded."""

    standing: list[Prohibition] = []
    domains: dict[str, int] = {}
    """Domain of e-mail addresses -> how often it was seen."""
    newest: BrokenProhibition | None = None
    called: int = 0
    """The newest call."""
    marked: list[str] = []
    """Ids of records in results that hold what is forbidden, each with its tokens: ``415 legal``; the newest."""


def prohibitions(text: str | TextAnalysis, seq: int = 0) -> Iterator[Prohibition]:
    """Yield what a request forbids."""
    analysis = text if isinstance(text, TextAnalysis) else TextAnalysis(text)
    if not _may_forbid(analysis.raw):
        return
    for statement in analysis.part(MAX_CHARS, "\n").statements:
        said = statement.replace("’", "'")
        for phrase, word in _PHRASES.items() if "base" in said else ():
            said = said.replace(phrase, word)
        if statement.endswith("?") or not _may_forbid(said):
            continue
        if (only := _ONLY_IN.search(said)) is not None and ("/" in only["where"] or "." in only["where"]):
            yield Prohibition(
                ("change", "remove"), (), excerpt(statement, QUOTED), within=only["where"].strip("./"), seq=seq
            )
        if (budget := _BUDGET.search(said)) is not None:
            amount = float(budget["limit"].replace(",", ""))
            yield Prohibition(("pay", "buy"), (), excerpt(statement, QUOTED), amount, seq=seq)
        if (may := _ONLY_MAY.search(said)) is not None and ("/" in may["where"] or "." in may["where"]):
            yield Prohibition(
                ("change", "remove"), (), excerpt(statement, QUOTED), within=may["where"].strip("./"), seq=seq
            )
        if _STANDARD.search(said) is not None:
            yield Prohibition(("install",), (), excerpt(statement, QUOTED), seq=seq)
        if (least := _WORD_LIMIT.search(said)) is not None:
            yield Prohibition(("have",), (), excerpt(statement, QUOTED), words=int(least["words"]), seq=seq)
        if (but := _EXCEPT.search(said)) is not None:
            names = tuple(name.casefold() for name in re.split(r", and |, | and ", but["but"] or but["only"]))
            yield Prohibition(("send",), (), excerpt(statement, QUOTED), but=names, seq=seq)
        for found in islice(_CHINESE.finditer(said), 2):
            thing = tuple(name for word, name in _CHINESE_THINGS.items() if word in found["what"])
            act = _CHINESE_ACTS[found["act"]]
            objects = tuple(sorted(tokens(" ".join(thing))))
            if objects or act in ALONE:
                yield Prohibition(_with(act), objects, excerpt(statement, QUOTED), seq=seq)
        if _CONDITION.search(said):  # which says nothing of another clause
            said = said.rpartition(", but ")[2] if ", but " in said else ""
            if not said or _CONDITION.search(said):
                continue
        yield from _of_sentence(said, excerpt(statement, QUOTED), seq)


_CUES = (
    *("forbid", "prohibit", "allowed", "permitted", "banned", "ohne ", "sans ", "sin "),
    *("not", "n’t", "never", "no ", "keep", "leave", "stay", "remain", "must be", "without", "refrain", "avoid"),
    *("be kept", "nicht", "kein", "nunca", "ne ", "only", "budget", "spend", "cost", "off", "away", "clear of", "read"),
    *(
        "taboo",
        "frozen",
        "nobody",
        "n'",
        "at most",
        "fewer",
        "less than",
        "maxim",
        "höchstens",
        "palabras",
        "mots",
    ),
    *("不", "禁止", "勿", "别", "standard library", "stdlib", "unangetastet", "unverändert", "lass"),
)
"""One of these is in any sentence that forbids something."""


def _may_forbid(text: str) -> bool:
    return any(map(text.casefold().__contains__, _CUES))


def _of_sentence(said: str, sentence: str, seq: int) -> Iterator[Prohibition]:
    for found in islice(_STAYS.finditer(said), 3):
        kept = found["kept"] or found["stays"] or found["all"]
        acts = ("remove",) if found["all"] else ("change", "remove", "add", "cancel")
        objects = _objects(kept, acts)
        if objects:
            yield Prohibition(acts, objects, sentence, seq=seq)
    for found in islice(_STAYS_ELSEWHERE.finditer(said), 2):
        if objects := _objects(found["stays"], ("change",)):
            yield Prohibition(("change", "remove", "add"), objects, sentence, seq=seq)
    for found in islice(_KEEP_OUT.finditer(said), 2):
        if objects := _objects(found["out"] or found["unseen"], ()):
            yield Prohibition(("have",), objects, sentence, forms=_forms(objects), seq=seq)
    for found in islice(_IS_FORBIDDEN.finditer(said), 2):
        kinds: tuple[str, ...]
        if found["what"]:
            noun = _named_by(tokens(found["what"]))
            objects = _objects(found["what"], (noun,)) if noun else ()
            kinds = (noun,) if noun else ()
        else:
            kinds = _with(ACTS.get((found["do"] or "change").casefold(), "change"))
            objects = _objects(found["kept"] or found["same"], ())
        if kinds and (objects or kinds[0] in ALONE):
            yield Prohibition(kinds, objects, sentence, seq=seq)
    for found in islice(_NO_FORM.finditer(said), 2):
        if forms := _forms(tokens(found["form"])):
            yield Prohibition((), (), sentence, forms=forms, seq=seq)
    for found in islice(_HANDS_OFF.finditer(said), 2):
        objects = _objects(_LABELLED.sub(" ", found["what"] or found["closed"]), ("change",))
        if objects:
            yield Prohibition(("change", "remove", "add", "close"), objects, sentence, forms=_forms(objects), seq=seq)
    for found in islice(_NOT_BE.finditer(said), 2):
        if found["nothing"]:
            act = ACTS.get(found["any"].casefold())
            if act in ALONE:
                yield Prohibition(_with(act), (), sentence, seq=seq)
            continue
        act = ACTS.get((found["done"] or found["undone"]).casefold())
        objects = _objects(found["what"] or found["none"], ()) if act else ()
        if act and objects:
            yield Prohibition(_with(act), objects, sentence, seq=seq)
    for pattern in (_DO_NOT, _WANT_NOT):
        for found in islice(pattern.finditer(said), 4):
            told = found.groupdict()
            if told.get("doing") and _ABLE.search(said):
                continue  # how something can be done
            rest = told.get("rest") or told.get("doing") or ""
            if told.get("none"):
                rest = f"{told['verb']} any {told['none']}"
            elif told.get("after"):
                rest = f"{told['after']} {told['was']}"
            made = list(_of_act(rest, sentence, seq, anywhere=pattern is _WANT_NOT))
            yield from made
            if not made and pattern is _WANT_NOT:
                yield from _unwanted(rest, sentence, seq)
    for found in islice(_NO_NOUN.finditer(said), 2):
        act = _named_by(tokens(found["noun"]))
        objects = () if act else _objects(found["noun"], ())
        if act or objects:
            yield Prohibition((act or "have",), objects, sentence, forms=_forms(objects), seq=seq)


def _unwanted(rest: str, sentence: str, seq: int) -> Iterator[Prohibition]:
    """Read "I don't want any logging in it": what must not be there."""
    noun = re.split(r" (?:in|on|inside|for|from|at|there|here)\b|[,.;!]", rest, maxsplit=1)[0]
    objects = _objects(noun, ()) if len(noun.split()) <= 3 else ()
    if objects:
        yield Prohibition(("have",), objects, sentence, forms=_forms(objects), seq=seq)


def _forms(objects: Iterable[str]) -> tuple[str, ...]:
    """Return what an answer must not show by its form."""
    return tuple(form for form in FORMS if any(_alike(form, token) for token in objects))


def _named_by(found: frozenset[str]) -> str | None:
    """Return the act that a noun names."""
    return next((act for act, nouns in NAMES_IT.items() if nouns & found), None)


def _with(act: str) -> tuple[str, ...]:
    """Return an act with those that come to it: who must not add something must not write it into a text, either."""
    return {"change": ("change", "remove"), "add": ("add", "have"), "buy": ("buy", "pay")}.get(act, (act,))


def _of_act(rest: str, sentence: str, seq: int, *, anywhere: bool) -> Iterator[Prohibition]:
    """Read "touch the tests or delete a file" as two prohibitions."""
    part = _STOPS.split(rest, maxsplit=1)[0]
    for piece in islice(re.split(r" (?:or|nor|and|oder|und|ou|o|y) ", part), 3):
        words = _WORD.findall(piece.casefold())
        reach = len(words) if anywhere else 1
        at = next((at for at in range(min(reach, len(words))) if words[at] in ACTS), None)
        if at is None:
            act = _named_by(tokens(piece)) if words[:1] and words[0] in LIGHT else None
            if act:
                yield Prohibition((act,), (), sentence, seq=seq)
            continue
        word, after = words[at], words[at + 1 :]
        act = ACTS[word]
        if word in ("write", "writing") and "to" not in after[:1]:
            act = "add"
        elif word in ("hand", "handed", "handing", "transfer", "transferring", "forward") and not (
            "over" in after
            or {"me", "us"} & set(after[:1])
            or not after
            or "human" in after
            or "agent" in after
            or anywhere
        ):
            act = "pay"
        if act in ("call", "share"):
            continue
        limit = _LIMIT.search(piece)
        if limit is not None:
            amount = float(limit["limit"].replace(",", ""))
            if act in ("pay", "buy", "send"):
                yield Prohibition(("pay", "buy", "send"), (), sentence, amount, seq=seq)
            continue
        if _QUANTITY.search(piece) is not None:
            continue  # how many there are is in no call
        tail = piece[piece.casefold().find(word) + len(word) :]
        objects = _objects(tail, (act,))
        anything = not _HOLDS.isdisjoint(after) and word in WHOLLY
        if objects or anything or act in ALONE:
            outside = act == "send" and _OUTSIDE.search(tail) is not None
            outsiders = act == "send" and not OUTSIDERS.isdisjoint(tokens(part))
            forms = _forms(objects) if act == "have" else ()
            yield Prohibition(
                _with(act),
                () if outside else objects,
                sentence,
                outside=outside,
                outsiders=outsiders,
                forms=forms,
                seq=seq,
            )


def _objects(phrase: str, acts: Iterable[str]) -> tuple[str, ...]:
    """Return the tokens that name what is forbidden; none where any thing of that act is meant."""
    implied = frozenset[str]().union(*(IMPLIED.get(act, frozenset()) for act in acts))
    found = [token for token in sorted(tokens(phrase.replace("/ ", " "))) if token.strip("/") not in _EMPTY | implied]
    return tuple(dict.fromkeys(token.strip("/") for token in found))[:MAX_OBJECTS]


class ProhibitionDetector(EventDetector[ProhibitionFacts]):
    """Holds each call against what was forbidden.

    Examples
    --------
    >>> from msgspec import Raw
    >>> from coherence.core.events import Goal
    >>> detector = ProhibitionDetector()
    >>> detector.observe(Observed.of(Goal("Prepare release 3.2. Do not deploy yet."), 1))
    >>> detector.observe(Observed.of(ToolCall("deploy", Raw(b'{"version": "3.2"}'), "1"), 2))
    >>> detector.data.newest.sentence, detector.data.newest.other
    ('Do not deploy yet.', 1)
    """

    name, data_type = "broken_constraint", ProhibitionFacts

    def on_goal(self, observed: Observed) -> None:
        """Take in what is asked; another goal forbids anew."""
        if observed.new_goal:
            self.data.standing = [each for each in self.data.standing if each.lasting]
            self.data.newest, self.data.marked = None, []
        self._hear(observed)

    def on_message(self, observed: Observed) -> None:
        """Take in what the user or the host says."""
        event: Message = observed.event
        if event.role == "assistant":
            self.data.newest = self._broken_by_answer(observed) if self.data.standing else None
        elif event.role in ("user", "system"):
            self._hear(observed)

    def on_correction(self, observed: Observed) -> None:
        """Take in what the user corrects."""
        if not observed.event.removed:
            self._hear(observed)

    def _broken_by_answer(self, observed: Observed) -> BrokenProhibition | None:
        """Return which prohibition a message breaks by its form: its length, or what it shows."""
        text = observed.text.part(MAX_CHARS, "\n").raw
        for each in reversed(self.data.standing):
            if (each.words and len(text.split()) > each.words * LENIENT) or any(
                FORMS[form].search(text) for form in each.forms
            ):
                return BrokenProhibition(observed.seq, "", excerpt(text.strip(), QUOTED // 2), each.sentence, each.seq)
        return None

    def _hear(self, observed: Observed) -> None:
        data = self.data
        new = list(islice(prohibitions(observed.text, observed.seq), MAX_PROHIBITIONS))
        if type(observed.event) is Message and observed.event.role == "system":
            new = [msgspec.structs.replace(each, lasting=True) for each in new]
        elif data.standing:
            asked = _asked(observed.text.part(MAX_CHARS, "\n"))
            data.standing = [each for each in data.standing if each.lasting or asked.isdisjoint(each.acts)]
        known = {each.sentence for each in data.standing}
        data.standing = [*data.standing, *(each for each in new if each.sentence not in known)][-MAX_PROHIBITIONS:]
        self._know(observed.text)

    def on_tool_result(self, observed: Observed) -> None:
        """Learn whose addresses are known, and which records hold what is forbidden."""
        standing = self.data.standing
        if not standing:
            return
        if any(each.outside for each in standing):
            self._know(observed.text)
        named = [token for each in standing if len(each.objects) > 1 for token in each.objects]
        if not named:
            return
        text = observed.text.part(MAX_CHARS, "\n").raw
        low = text.casefold()
        if any(token in low for token in named):
            for line in islice(re.split(r"\n|\}, ?\{", text), 400):
                own = tokens(line[:500])
                held = sorted({token for token in named if token in own})
                if held and (first := _ID.search(line)) is not None:
                    self.data.marked = [*self.data.marked, " ".join((first[1].casefold(), *held))][-MAX_MARKED:]

    def _know(self, text: TextAnalysis) -> None:
        raw = text.part(MAX_CHARS, "\n").raw
        if "@" not in raw:
            return
        domains = self.data.domains
        for domain in islice(_MAIL.findall(raw), 40):
            domains[domain.casefold()] = domains.get(domain.casefold(), 0) + 1
        while len(domains) > MAX_DOMAINS:
            del domains[min(domains, key=domains.__getitem__)]

    def on_tool_call(self, observed: Observed) -> None:
        """Judge a call."""
        self.data.called, self.data.newest = observed.seq, self.broken_by(observed)

    def broken_by(self, observed: Observed) -> BrokenProhibition | None:
        """Return which prohibition a call breaks, made or not; nothing is changed."""
        data, event = self.data, observed.event
        if not data.standing:
            return None
        call = _Call(event, observed)
        marked = call.marked(data.marked) if data.marked else frozenset()
        for each in reversed(data.standing):
            if call.breaks(each, data.domains, marked):
                shown = excerpt(observed.text.raw[len(event.tool_name) :].strip(), QUOTED // 2)
                return BrokenProhibition(observed.seq, event.tool_name[:100], shown, each.sentence, each.seq)
        return None

    def renumber(self) -> None:
        """Let the next event be number 1."""
        data = self.data
        data.standing = [msgspec.structs.replace(each, seq=0) for each in data.standing]
        data.newest, data.called = None, 0


def _asked(text: TextAnalysis) -> set[str]:
    """Return the acts that a request asks for."""
    found: set[str] = set()
    for statement in text.statements:
        if not _may_forbid(statement):
            found.update(ACTS[word] for word in _WORD.findall(statement.casefold()) if word in ACTS)
    return found


class _Part(NamedTuple):
    """One step of a command, or a whole call: what it may do, and to what."""

    acts: set[str]
    targets: set[str]
    paths: set[str]


class _Call:
    """A call as prohibitions see it."""

    def __init__(self, event: ToolCall, observed: Observed) -> None:
        words = name_words(event.tool_name)
        self.words = tuple(words)
        self.arguments = observed.arguments
        self.text = ends(observed.text.raw, MAX_COMMAND, "\n")
        self.steps: list[str] = []
        self.parts: list[_Part] = []
        shell = not SHELLS.isdisjoint(words)
        if shell:
            self._read_command()
        elif words[:1] and words[0] not in READING:
            acts = {act for word in words for act in DOING.get(word, ())}
            if "transfer" in words and {"human", "agent", "agents", "representative"} & set(words):
                acts = {"handover"}
            if (statement := _IN_SQL.search(self.text)) is not None:
                acts |= DOING.get(statement[1].lower(), set())
            targets = set(tokens(event.tool_name[:100])) | self._targets()
            self.parts.append(_Part(acts, targets, set(_PATH.findall(self.text)) if acts else set()))
        self.written = frozenset() if shell else _written(self.arguments)

    def _read_command(self) -> None:
        command = command_of(self.words, self.arguments) or ""
        command = command[: command.find("<<")] if "<<" in command else command
        self.steps = list(islice(STEPS.split(command), 16))
        for step in self.steps:
            words = step.split()
            while words and (words[0] in ("sudo", "cd", "env", "{") or "=" in words[0]):
                words = words[1:] if words[0] != "cd" else []
            if not words:
                continue
            first = words[0].strip("'\"`(").rpartition("/")[2].removesuffix(".sh")
            told = {first, *words[1:3]} if first in CLIS else {first}
            acts = {act for word in told for act in DOING.get(word, ())}
            if first in ("sed", "perl") and not any(word.startswith(("-i", "-pi", "--in-place")) for word in words):
                acts = set()
            if first in READING or (first == "git" and {"diff", "log", "show", "status"} & set(words[1:3])):
                acts = set()
            if _INTO.search(step):
                acts |= {"change", "add"}
            if (statement := _IN_SQL.search(step)) is not None:
                acts |= DOING.get(statement[1].lower(), set())
            self.parts.append(_Part({*acts, "run"}, set(tokens(step)), set(_PATH.findall(step))))

    def _targets(self) -> set[str]:
        """Return the tokens of what is done to: of the files that a call names, else of all its short arguments."""
        if not isinstance(self.arguments, dict):
            return set(tokens(self.text))
        named = list(self._files())
        if named:
            return set(tokens(" ".join(named)[:MAX_COMMAND]))
        texts = [
            f"{key} {value}" for key, value in islice(self.arguments.items(), MAX_ARGUMENTS) if len(str(value)) <= 200
        ]
        return set(tokens(" ".join(texts)))

    def _files(self) -> Iterator[str]:
        """Yield the files that a call names, lists of them too."""
        if not isinstance(self.arguments, dict):
            return
        for key, value in islice(self.arguments.items(), MAX_ARGUMENTS):
            if isinstance(value, str) and key in PATHS:
                yield value
            elif isinstance(value, list) and value and all(isinstance(item, str) for item in value[:MAX_ARGUMENTS]):
                files = value[:MAX_ARGUMENTS]
                yield from files if key.rstrip("s") in PATHS or all(map(_PATH.fullmatch, files)) else ()

    def marked(self, marked: Iterable[str]) -> frozenset[str]:
        """Return the tokens that results have told of the records that the call names."""
        own = {word.casefold().lstrip("#") for word in _WORD.findall(self.text)}
        return frozenset(token for each in marked for name, *held in (each.split(),) if name in own for token in held)

    def breaks(self, each: Prohibition, domains: Mapping[str, int], marked: frozenset[str] = frozenset()) -> bool:
        """Tell whether the call does what is forbidden."""
        if each.words:
            return False
        if "have" in each.acts and each.objects:
            named = [token for token in each.objects if token not in _SORTS] or each.objects
            if all(self._holds(token) for token in named):
                return True
        return any(
            not part.acts.isdisjoint(each.acts) and self._breaks(part, each, domains, marked) for part in self.parts
        )

    def _breaks(self, part: _Part, each: Prohibition, domains: Mapping[str, int], marked: frozenset[str]) -> bool:
        if each.limit is not None:
            amounts = list(_amounts(self.arguments))
            return any(amount > each.limit for amount in amounts) or _sum_of(self.arguments) > each.limit
        if each.outside:
            own = max(domains, key=lambda domain: domains[domain]) if domains else ""
            found = {domain.casefold() for domain in _MAIL.findall(self.text)}
            return bool(own) and bool(found - {own})
        if each.but:
            return any(not any(name in address.casefold() for name in each.but) for address in _addresses(self.text))
        if each.outsiders and (addresses := list(_addresses(self.text))):
            return not all(address.partition("@")[0].casefold() in OFFICES for address in addresses)
        if each.within:
            named = list(self._files())
            if len(named) > 1:
                return any(each.within not in path for path in named)
            return bool(part.paths) and not any(each.within in path for path in part.paths)
        if "signatur" in each.objects:
            return self._changes_signature()
        return all(token in marked or self._names(token, part) for token in each.objects)

    def _holds(self, token: str) -> bool:
        if token in self.written:
            return True
        return any(not self.written.isdisjoint(group) for group in SYNONYMS if token in group)

    def _names(self, token: str, part: _Part) -> bool:
        same = next((group for group in SYNONYMS if token in group), {token})
        parts = tokens(" ".join(piece for path in part.paths for piece in re.split(r"[/._-]", path)))
        return any(_alike(each, one) for each in part.targets | parts for one in same)

    def _changes_signature(self) -> bool:
        fields = self.arguments if isinstance(self.arguments, dict) else {}
        old, new = fields.get("old_string", fields.get("old_str")), fields.get("new_string", fields.get("new_str"))
        if isinstance(old, str) and isinstance(new, str):
            before = {line.strip() for line in old.splitlines() if _SIGNATURE.search(line)}
            return any(line not in {each.strip() for each in new.splitlines()} for line in before)
        return any(
            step.lstrip().startswith("sed") and _SIGNATURE.search(step.replace("\\", "")) is not None
            for step in self.steps
        )


def _written(arguments: Any) -> frozenset[str]:
    """Return the tokens that an edit brings into a file."""
    fields = arguments if isinstance(arguments, dict) else {}
    new = next((fields[key] for key in _NEW_TEXT if isinstance(fields.get(key), str)), "")
    old = next((fields[key] for key in _OLD_TEXT if isinstance(fields.get(key), str)), "")
    return tokens(ends(new, MAX_CHARS, "\n")) - tokens(ends(old, MAX_CHARS, "\n")) if new else frozenset()


def _addresses(text: str) -> Iterator[str]:
    return (found[0] for found in islice(_MAIL.finditer(text), MAX_ARGUMENTS))


def _sum_of(arguments: Any) -> float:
    """Return the sum of the amounts of a list of things, each times its number."""
    fields = arguments if isinstance(arguments, dict) else {}
    best = 0.0
    for value in islice(fields.values(), MAX_ARGUMENTS):
        if isinstance(value, list) and len(value) > 1 and all(isinstance(item, dict) for item in value[:MAX_ARGUMENTS]):
            total = 0.0
            for item in value[:MAX_ARGUMENTS]:
                number = next(
                    (item[key] for key in ("quantity", "qty", "count", "number") if isinstance(item.get(key), int)), 1
                )
                total += sum(islice(_amounts(item), 1)) * number
            best = max(best, total)
    return best


_NEW_TEXT = (
    "new_string",
    "new_str",
    "content",
    "file_text",
    "new_text",
    "contents",
    "code",
    "text",
    "body",
    "message",
    "texto",
    "inhalt",
    "contenido",
    "contenu",
    "texte",
    "new",
    "nach",
)
_OLD_TEXT = ("old_string", "old_str", "old_text", "old")


def _alike(one: str, other: str) -> bool:
    """Tell whether two tokens are of one word: note, not(es); migrat(e), migration."""
    short, long = sorted((one, other), key=len)
    if len(short) >= LONG_STEM and long.startswith(short[:LONG_STEM]):
        return True
    return short == long or (len(short) >= SHORT_STEM and len(long) - len(short) <= 1 and long.startswith(short))


CLIS = word_set(
    "git npm yarn pnpm pip pip3 uv cargo go apt apt-get brew conda poetry gem docker kubectl helm terraform aws gcloud "
    "az gh systemctl service supervisorctl pm2 make python python3 twine heroku fly vercel netlify dnf yum apk"
)
"""Programs whose next words say what they do."""


def _amounts(arguments: Any) -> Iterator[float]:
    """Yield the amounts of money among arguments."""
    waiting: list[Any] = [arguments]
    seen = 0
    while waiting and seen < MAX_ARGUMENTS:
        item = waiting.pop()
        if isinstance(item, dict):
            for key, value in islice(item.items(), MAX_ARGUMENTS):
                seen += 1
                if isinstance(value, dict | list):
                    waiting.append(value)
                elif isinstance(value, int | float) and not isinstance(value, bool) and _MONEY_KEY.search(str(key)):
                    yield float(value)
        elif isinstance(item, list):
            seen += 1
            waiting += item[:MAX_ARGUMENTS]
