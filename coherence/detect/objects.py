"""Objects of prohibitions: the tokens that name a thing, and whether those of a call name the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.languages import FUNCTION_WORDS
from coherence.detect.text_analysis import tokens

MAX_OBJECTS = 6
LONG_STEM, SHORT_STEM = 6, 3
"""Letters that words of one stem share at least: of long ones, and of those that differ in one more letter."""

PERSONS = tokens(
    "customer client user them anyone anybody someone somebody nobody people person persons recipient recipients "
    "buyer buyers guest guests patient patients tenant tenants parent parents student students subscriber subscribers "
    "outside external company him team colleague colleagues everybody everyone else agent agents human representative "
    "operator traveller passenger caller shopper Kunde Kunden clients clientes cliente clienti Käufer Patienten Gäste"
)
"""Tokens of whom nothing in a call tells."""

IMPLIED: Mapping[str, frozenset[str]] = {
    "install": tokens(
        "package packages dependency dependencies library libraries module modules software tool tools Pakete npm pip "
        "Abhängigkeiten dépendances dépendance dependencias dependencia paquetes dipendenze Bibliotheken librairies"
    ),
    "send": PERSONS
    | tokens(
        "email emails mail mails mail message messages invitation invitations reply replies correo "
        "E-Mail E-Mails courriel mensaje mensajes Nachricht Nachrichten sms text"
    ),
    "commit": tokens("change changes code work file files branch version repository repo"),
    "publish": tokens(
        "release releases version code branch package site deployment deployments commit commits change changes"
    ),
    "pay": PERSONS
    | tokens(
        "money payment payments refund refunds fund funds amount euro euros dollar dollars single Geld "
        "argent dinero transfer transfers transaction discount discounts"
    ),
    "buy": PERSONS | tokens("item items order orders product products"),
    "book": tokens("booking reservation table flight flights hotel trip ticket tickets"),
    "cancel": PERSONS | tokens("order orders booking bookings reservation reservations"),
    "handover": PERSONS | tokens("over call me case another"),
    "online": tokens(
        "internet web network online external outside world anything call calls request requests access Netz réseau red"
    ),
    "restart": tokens("server servers machine machines system"),
}
"""Act -> tokens of what it is done to anyway."""

SYNONYMS = [
    tokens(
        "appointment appointments event events meeting meetings calendar agenda Termin Termine réunion reunión cita"
    ),
    tokens("test tests spec specs Tests prueba pruebas"),
    tokens("mail mails email emails message messages inbox correo courriel mensaje Nachricht newsletter"),
    tokens(
        "database databases db dropdb psql postgres postgresql mysql mariadb sqlite mongodb mongo redis Datenbank "
        "Datenbanken datos données"
    ),
    tokens("salary salaries wage wages pay paid earn earns income Gehalt Gehälter salaire sueldo"),
    tokens("migration migrations Migrationen migrationen migraciones migrazioni"),
    tokens("payment payments transaction transactions transfer transfers"),
    tokens("doc docs documentation Dokumentation"),
    tokens("config configs configuration configurations settings conf cfg Konfiguration"),
    tokens("delivery shipping shipment shipping_method delivery_method Versand livraison envío"),
    tokens("production prod live prd Produktion producción"),
    tokens("picture pictures photo photos image images Foto Fotos Bild Bilder fotos"),
    tokens("folder directory dir Ordner dossier carpeta cartella"),
    tokens("light lights lamp lamps Licht Lampe lumière luz luces"),
    tokens("heating thermostat heater radiator Heizung chauffage calefacción"),
    tokens("room rooms Zimmer Raum chambre pièce habitación"),
    tokens("user users account accounts Benutzer Konto compte usuario cuenta"),
    tokens("table tables Tabelle Tabellen tabla tabelle"),
    tokens("nut nuts walnut walnuts hazelnut hazelnuts peanut peanuts almond almonds cashew cashews pistachio pecan"),
    tokens("meat beef pork chicken lamb bacon ham turkey sausage salami Fleisch viande carne"),
    tokens("alcohol wine beer rum vodka whisky champagne Alkohol alcool vino"),
    tokens("dairy milk cheese butter cream yoghurt yogurt Milch"),
    tokens("phone telephone mobile Telefon teléfono téléphone"),
    tokens("firewall ufw iptables nftables"),
    tokens("alarm alarms security Alarmanlage alarme alarma"),
    tokens("price prices cost costs Preis Preise prix precio precios"),
    tokens("branch branches Zweig branche rama"),
    tokens("contact contacts addressbook phonebook Kontakt Kontakte contacto contactos"),
]
"""Tokens that name the same kind of thing."""
_GROUPS = {token: group for group in SYNONYMS for token in group}

KINDS: Mapping[str, re.Pattern[str]] = {
    token: pattern
    for names, pattern in {
        "test tests spec specs suite": lazy_regex(
            r"(?:^|[/_.-])(?:tests?|specs?|__tests__)(?:[/_.-]|$)|(?:^|/)test_|Tests?\.\w+$"
        ),
        "migration migrations": lazy_regex(r"(?:^|/)(?:db/)?(?:migrat\w+|alembic)(?:/|$)"),
        "ci pipeline workflow workflows": lazy_regex(
            r"\.github/|\.gitlab-ci|(?:^|/)Jenkinsfile|\.circleci|azure-pipelines|\.travis"
        ),
        "lock lockfile lockfiles": lazy_regex(r"\.lock\b|-lock\.|go\.sum|\.lockb"),
        "doc docs documentation": lazy_regex(r"(?:^|/)docs?/|\.(?:md|rst|adoc)$|README"),
        "config configuration settings": lazy_regex(
            r"(?:^|/)(?:config|conf|settings)(?:[/._-]|$)|\.(?:conf|ini|cfg|toml|ya?ml|env)$|(?:^|/)\.env"
            r"|[._/-](?:config|settings)\.\w+$"
        ),
        "fixture fixtures snapshot snapshots": lazy_regex(r"fixtures?|__snapshots__|\.snap$|testdata"),
        "vendor vendored third-party": lazy_regex(r"(?:^|/)(?:vendor|third_party|node_modules)(?:/|$)"),
        "stylesheet stylesheets css styles": lazy_regex(r"\.(?:css|scss|less|sass)$"),
        "translation translations locale locales": lazy_regex(
            r"(?:^|/)(?:locales?|i18n|lang|translations?)(?:/|\.)|\.po$"
        ),
        "dockerfile docker": lazy_regex(r"Dockerfile|docker-compose|compose\.ya?ml"),
        "frontend ui": lazy_regex(r"(?:^|/)(?:frontend|ui|web|client)/|\.(?:tsx|jsx|vue|css|html)$"),
        "backend server": lazy_regex(r"(?:^|/)(?:backend|server|api)/"),
        "changelog": lazy_regex(r"CHANGE(?:LOG|S)", re.IGNORECASE),
        "readme": lazy_regex(r"README", re.IGNORECASE),
        "license licence": lazy_regex(r"LICEN[SC]E", re.IGNORECASE),
        "schema": lazy_regex(r"schema", re.IGNORECASE),
    }.items()
    for token in tokens(names)
}
"""Token -> paths of that kind of file."""

EMPTY = tokens(
    "file files thing things anything something everything nothing anyone anybody below inside within under above "
    "exist existing yet now still myself yourself directly whatever happens additional new more extra other others "
    "every each both pas jamais rien les des la le los las el una un Datei Dateien fichier fichiers archivo archivos "
    "original originals aucun aucune ningún ninguno ninguna itself themselves old current today tonight "
    "folder directory exactly all any own public part anywhere way anymore please bitte current one here "
    "supplementary there either "
    "ever again anyway thanks moment first alone just only existing present week ones kind sort of to it them "
    "this that these "
    "those he she him her his they their we us our my your you i me its himself herself in on at from with for by "
    "und oder nicht mehr keine kein der die das den dem ein eine einen Fall Umständen autres autre otro otra otros "
    "favor nadie personne nobody place single particular mich mir uns ihm ihr ihn sich te se me lui leur ella ello "
    "nada niente nothing hinzu zusätzliche resource resources rows row already instead even too also about another "
    "weitere person alike case circumstances encore todavía aún noch ancora ainda"
)
"""Tokens that say nothing of what is forbidden."""

_SORTS = tokens(
    "function functions method methods statement statements keyword keywords module modules class classes call calls "
    "section chapter paragraph page file folder directory branch table column field server service machine host room "
    "device environment cluster account record entry row item product option ticket label tag list document version "
    "restaurant hotel shop store address number tabla tablas tabella carpeta dossier Raum chambre pièce "
    "habitación Konto compte cuenta Tabelle Spalte Datei Ordner Zimmer section chapitre delivery shipping socket "
    "whole entire rows row wifi network namespace region zone word phrase term name code app project repo repository "
    "line data value group team entries records items rows lines values fields columns cells"
)
"""Tokens that only say of what sort something is."""

_RELATIVE = word_set(
    "that which who whom whose so because while since as wenn weil dass que qui quien donde dont porque until "
    "till even "
    "please bitte without yet though although when if but than then where instead just only"
)
_FOREIGN = frozenset().union(*(words for name, words in FUNCTION_WORDS.items() if name != "en"))
_REST = word_set("other others rest else andere anderen übrigen autres otros otras altri altre")
_LABELLED = word_set("label tag status flag state type category labelled labeled tagged marked called named")
_WHATEVER = word_set("anything everything whatever all any every allem alles alle tout tous todo todos tutto tutti")
_PLACE = lazy_regex(r"\w/|^\*?\.\w{1,5}\Z")
_EXTENSION = lazy_regex(r"\*?\.\w{1,5}")


def objects_of(words: Sequence[str], acts: Iterable[str]) -> tuple[str, ...]:
    """Return the tokens that name what is forbidden; none where any thing of that act is meant.

    Examples
    --------
    >>> objects_of("the test itself".split(), ("change",)), objects_of("any new packages".split(), ("install",))
    (('test',), ())
    """
    part: list[str] = []
    if _REST & {word.casefold() for word in words[:3]}:
        return ()  # the others: which, nobody can tell
    if words and words[0].casefold() in _WHATEVER and (where := [word for word in words if _PLACE.search(word)]):
        words = where  # "whatever lies under gen/"
    for word in words:
        low = word.casefold()
        if low in _RELATIVE and (part or low == "without"):
            break
        if low not in _LABELLED and low not in _FOREIGN and not (low.endswith("ly") and len(low) > 5):
            part.append(word.removesuffix("'s"))
    implied = frozenset[str]().union(*(IMPLIED.get(act, frozenset()) for act in acts))
    found: dict[str, None] = {}
    for word in part:
        for token in sorted(tokens(word.strip("/"))):
            if word[0] in ".*" and _EXTENSION.fullmatch(word):
                token = word.lstrip("*").casefold()
            if token.strip("/*.") not in EMPTY | implied and len(token) > 1 - token.isdigit():
                found[token.strip("/*")] = None
    return tuple(found)[:MAX_OBJECTS]


def alike(one: str, other: str) -> bool:
    """Tell whether two tokens are of one word: note, not(es); migrat(e), migration."""
    short, long = sorted((one, other), key=len)
    if len(short) >= LONG_STEM and long.startswith(short[:LONG_STEM]):
        return len(long) - len(short) <= LONG_STEM
    return short == long or (len(short) >= SHORT_STEM and len(long) - len(short) <= 1 and long.startswith(short))


def same(token: str) -> frozenset[str]:
    """Return a token and those of the same kind of thing."""
    return _GROUPS.get(token) or frozenset((token,))


def telling_of(objects: Sequence[str]) -> list[str]:
    """Return the tokens that say more than of what sort a thing is."""
    return [token for token in objects if token not in _SORTS and not token.isdigit()]


def names(objects: Sequence[str], found: Set[str], paths: Iterable[str], values: Iterable[frozenset[str]]) -> bool:
    """Tell whether tokens, paths or short values of a call name what is forbidden.

    All tokens have to be there, those that only say of what sort it is aside; or one value is made of them alone.
    """
    paths = tuple(paths)
    telling = telling_of(objects)
    if all(_is_there(token, found, paths) for token in objects):
        return True
    if not telling:
        return False
    numbers = [token for token in objects if token.isdigit()]
    if all(_is_there(token, found, paths) for token in (*telling, *numbers)):
        return True
    return not numbers and any(
        value and all(any(alike(one, token) for token in telling) for one in value) for value in values
    )


def _is_there(token: str, found: Set[str], paths: Sequence[str]) -> bool:
    if "/" in token or ("." in token and not token[0].isdigit()):
        return any(token in path.casefold() for path in paths)
    kind = KINDS.get(token)
    if kind is not None and any(kind.search(path) for path in paths):
        return True
    if "-" in token and all(_is_there(piece, found, paths) for piece in token.split("-") if piece):
        return True
    return any(_there(one, frozenset(found)) for one in same(token))


@lru_cache(maxsize=256)
def _there(token: str, found: frozenset[str]) -> bool:
    return token in found or any(alike(token, one) for one in found)
