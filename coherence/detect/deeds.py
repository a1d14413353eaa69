"""Deeds of a call, as prohibitions see them: families of acts, the things among its arguments, whom it reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from coherence.core.events import ToolCall
from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.acts import HTTP, NOUNS, READING, SQL, acts_of
from coherence.detect.detector import Observed
from coherence.detect.fingerprints import PATHS, SHELLS, STEPS, command_of, name_words
from coherence.detect.text_analysis import tokens

MAX_CHARS = 20_000
MAX_COMMAND = 2_000
"""Characters of a command that are read."""

MAX_ARGUMENTS = 60
"""Arguments of a call that are looked at."""

CLIS = word_set(
    "git npm yarn pnpm pip pip3 uv cargo go apt apt-get brew conda poetry gem docker kubectl helm terraform aws gcloud "
    "az gh systemctl service supervisorctl pm2 make python python3 twine heroku fly vercel netlify dnf yum apk bundle "
    "composer rails alembic flyway pacman snap oc argocd ansible fly.io launchctl glab svn hg podman npx bun deno mvn"
)
"""Programs whose next words say what they do."""

_ISSUES = word_set("apply issue make create process give grant do hacer faire place submit perform")
"""Words of a tool's name that leave it to a noun what is done."""
_INSTALLERS = word_set(
    "npm yarn pnpm pip pip3 uv cargo go apt apt-get brew conda poetry gem dnf yum apk bundle composer snap bun pacman"
)
_ONLINE = word_set(
    "curl wget ssh scp rsync ftp nc ping dig nslookup telnet aria2c http fetch browse web url internet google"
)
_LOCKS = {
    "npm": "package-lock.json",
    "yarn": "yarn.lock",
    "cargo": "Cargo.lock",
    "poetry": "poetry.lock",
    "bundle": "Gemfile.lock",
    "composer": "composer.lock",
}
"""Program -> the file that an installation changes."""
_INSTALLS = word_set("i install add get upgrade")
_GIT = {
    verb: act
    for act, verbs in {
        "publish": "push merge tag",
        "commit": "commit",
        "change": "rebase mv restore revert stash",
        "remove": "reset clean rm",
        "online": "pull clone fetch",
    }.items()
    for verb in verbs.split()
}
_LOOKS = word_set(
    "diff log show status get describe logs list ls info blame view whoami config freeze help --help --version"
)
_CONTENT = word_set(
    "content file_text new_string new_str new_text contents code text body message texto inhalt contenido "
    "contenu texte "
    "new nach replace replacement description corps cuerpo html markdown summary subject title note comment reply"
)
_TITLES = ("title", "subject", "description", "summary")
NEW_TEXT = ("new_string", "new_str", "new_text", "new", "replace", "replacement", "nach")
OLD_TEXT = ("old_string", "old_str", "old_text", "old", "find", "search", "von")
_TO = word_set(
    "to cc bcc recipient recipients attendees attendee invitees participants guests members emails email address "
    "addresses "
    "an a para destinataire destinataires destinatario destinatarios empfänger channel user users with share_with phone"
)
_MONEY_KEY = lazy_regex(
    r"(?:amount|price|total|sum|cost|value|budget|betrag|montant|importe|monto|fare|usd|eur)\Z", re.IGNORECASE
)
_COUNT_KEY = lazy_regex(
    r"(?:count|number|quantity|qty|replicas|desired\w*|size|max\w*|limit|nodes|instances|guests|people|seats"
    r"|degrees|celsius|fahrenheit|temp\w*|level|percent|volume|brightness|anzahl|cantidad|nombre|temperatur|value|capacity|workers)\Z",
    re.IGNORECASE,
)
_PATH = lazy_regex(r"[\w.~-]{0,80}(?:/[\w.*~-]{1,80}){1,9}/?|[\w-]{0,60}\.[a-z]{1,5}\b|[\w.-]{1,60}/")
_INTO = lazy_regex(r"(?<![0-9&<>-])>{1,2}\s{0,3}[\w./~-]")  # not "2>log", "&>log", "->"
_SQL = lazy_regex(
    r"\b(?P<verb>DELETE|INSERT|UPDATE|DROP|ALTER|CREATE|TRUNCATE|GRANT)\s(?:FROM|INTO|TABLE|DATABASE|INDEX|COLUMN"
    r"|VIEW|SCHEMA|[\w.\"`]+ SET)\b",
    re.IGNORECASE,
)
_MAIL = lazy_regex(r"[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}")
_PIECES = lazy_regex(r"[^\W_]+")
_HOUR = lazy_regex(r"(?<![\d:])(\d{1,2}):(\d\d)(?![\d.])")


class Part(NamedTuple):
    """One step of a command, or a whole call: what it may do, and to what."""

    acts: frozenset[str]
    tokens: frozenset[str]
    paths: tuple[str, ...]
    values: tuple[frozenset[str], ...]
    """Tokens of each short argument."""


class Deeds:
    """A call as prohibitions see it."""

    def __init__(self, event: ToolCall, observed: Observed) -> None:
        self.words = name_words(event.tool_name)
        self.arguments = observed.arguments
        self.text = ends(observed.text.raw, MAX_COMMAND, "\n")
        self.parts: list[Part] = []
        fields = self.arguments if isinstance(self.arguments, dict) else {}
        self.fields: dict[str, Any] = dict(islice(fields.items(), MAX_ARGUMENTS))
        command = self._command()
        self.steps: list[str] = []
        if command is not None:
            # A here-document is text; none of it is run.
            command = command[: command.find("<<")] if "<<" in command else command
            self.steps = list(islice(STEPS.split(command), 16))
            self.parts = [part for step in self.steps for part in _step(step)]
        else:
            self.parts = list(self._whole())
        writes = command is None and SHELLS.isdisjoint(self.words) and bool(self.parts)
        self.written = self._written() if writes else frozenset()
        self.content = self._content() if writes else ""

    def _command(self) -> str | None:
        found = command_of(self.words, self.arguments)
        if found is None:
            keyed: str | None = next(
                (self.fields[key] for key in ("command", "cmd") if isinstance(self.fields.get(key), str)), None
            )
            # One word is the action of an editor rather than a command line: "view".
            if keyed is not None and " " in keyed:
                return keyed[:MAX_COMMAND]
            tool = next((word for word in self.words if word in CLIS), None)
            rest = next((self.fields[key] for key in ("args", "arguments", "argv") if key in self.fields), None)
            if tool and rest is not None:
                rest = " ".join(map(str, rest[:40])) if isinstance(rest, list) else str(rest)
                return f"{tool} {rest}"[:MAX_COMMAND]
        return found

    def _whole(self) -> Iterator[Part]:
        words = self.words
        if not words:
            return
        acts = {act for word in words for act in acts_of(word)}
        if not _ISSUES.isdisjoint(words):  # "apply_discount": the noun says what is done
            acts |= {NOUNS[word] for word in words if word in NOUNS}
        # "transfer" is of money or to another person: "transfer_to_human".
        if "transfer" in words:
            acts -= {"pay"} if {"human", "agent", "agents", "representative", "call"} & set(words) else {"handover"}
        if "write" in acts:
            acts |= {"change", "add"}
            # "write_email" sends something, "write_file" does not.
            acts -= {"send"} - ({"send"} if {"mail", "email", "message", "letter"} & set(words) else set())
        if "create" in words or "new" in words:
            acts |= {"create"}
        method = next(
            (
                self.fields[key]
                for key in ("method", "http_method", "verb", "action", "operation")
                if isinstance(self.fields.get(key), str)
            ),
            "",
        )
        acts |= {HTTP[method.casefold()]} if method.casefold() in HTTP else acts_of(method)
        reading = (
            words[0] in READING
            or words[-1] in ("list", "search", "lookup", "get", "read", "find", "query")
            or (words[0] == "open" and (len(words) == 1 or "file" in words or any(self.files())))
            or method.casefold() in ("get", "head", "list")
        )
        if not _ONLINE.isdisjoint(words) or ("search" in words and "web" in words):
            acts = {"online"} if reading or acts <= {"online", "read"} else acts | {"online"}
            reading = False
        texts = {
            key: str(value)
            for key, value in self.fields.items()
            if key not in _CONTENT or (key in _TITLES and len(str(value)) <= 60)
        }
        statements = [text for text in texts.values() if _SQL.search(text[:MAX_COMMAND])]
        if statements:
            for statement in islice(re.split(r";", statements[0][:MAX_COMMAND]), 8):
                yield self._part(
                    {SQL[found["verb"].casefold()] for found in _SQL.finditer(statement)},
                    {key: text for key, text in texts.items() if len(text) <= 60} | {"sql": f"{statement} database"},
                )
            return
        if reading and not acts & {"online"}:
            return
        yield self._part(acts or {"other"}, texts)

    def _part(self, acts: set[str], texts: dict[str, str]) -> Part:
        files = list(self.files())
        near = " ".join(f"{key} {text}" for key, text in texts.items() if len(text) <= 200 or key == "sql")[
            :MAX_COMMAND
        ]
        values = [tokens(text) for text in texts.values() if len(text) <= 60 and "/" not in text]
        if files and not acts & {"send", "publish"}:
            near = (
                " ".join(files)[:MAX_COMMAND]
                + " "
                + " ".join(f"{key} {text}" for key, text in texts.items() if len(text) < 30 and key not in OLD_TEXT)
            )
        pieces = set(tokens(near)) | tokens(" ".join(_PIECES.findall(near))) | tokens(" ".join(self.words))
        return Part(frozenset(acts), frozenset(pieces), tuple(files) or tuple(_PATH.findall(near)), tuple(values))

    def files(self) -> Iterator[str]:
        """Yield the files that a call names, lists of them too."""
        for key, value in self.fields.items():
            if isinstance(value, str) and (
                key in PATHS or (key in ("archivo", "datei", "fichier", "dest", "target") and "." in value)
            ):
                yield value
            elif isinstance(value, list) and value and all(isinstance(item, str) for item in value[:MAX_ARGUMENTS]):
                files = value[:MAX_ARGUMENTS]
                yield from files if key.rstrip("s") in PATHS or all(map(_PATH.fullmatch, files)) else ()

    def _written(self) -> frozenset[str]:
        """Return the tokens that a call brings into a file or a message."""
        new = "\n".join(text for key, text in self.fields.items() if key in _CONTENT and isinstance(text, str))
        old = next((self.fields[key] for key in OLD_TEXT if isinstance(self.fields.get(key), str)), "")
        return tokens(ends(new, MAX_CHARS, "\n")) - tokens(ends(old, MAX_CHARS, "\n")) if new else frozenset()

    def _content(self) -> str:
        """Return what a call writes or says, as one text."""
        return "\n".join(text for key, text in self.fields.items() if key in _CONTENT and isinstance(text, str))[
            :MAX_CHARS
        ]

    def recipients(self) -> list[str]:
        """Return whom a call reaches: e-mail addresses, and short values of keys such as ``to``."""
        found = (
            []
            if self.steps
            else _MAIL.findall(
                " ".join(str(self.fields[key]) for key in self.fields if key not in _CONTENT)[:MAX_COMMAND]
            )
        )
        for key in self.fields:
            if key.casefold() in _TO and not found:
                value = self.fields[key]
                items = value[:40] if isinstance(value, list) else [value]
                found += [item for item in items if isinstance(item, str) and 0 < len(item) <= 60 and "@" not in item]
        return found[:MAX_ARGUMENTS]

    def amounts(self) -> list[float]:
        """Return the amounts of money among the arguments, and the sum of a list of things."""
        found = list(_numbers(self.arguments, _MONEY_KEY))
        return [*found, _sum_of(self.fields)]

    def counts(self) -> list[float]:
        """Return the numbers of things among the arguments."""
        flags = [
            float(number)
            for step in self.steps
            for number in re.findall(r"--?(?:replicas|count|n|limit|num\w*|scale)[= ](?:\w+=)?(\d{1,7})\b", step)
        ]
        return [*_numbers(self.arguments, _COUNT_KEY), *flags]

    def hours(self) -> list[float]:
        """Return the times of day among the arguments."""
        texts = " ".join(
            str(value) for key, value in self.fields.items() if key not in _CONTENT and "end" not in key.casefold()
        )[:MAX_COMMAND]
        return [int(hour) + int(minute) / 60 for hour, minute in _HOUR.findall(texts.replace("T", " "))]


def _step(step: str) -> Iterator[Part]:
    words = step.split()
    while words and (
        words[0] in ("sudo", "cd", "env", "{", "then", "do", "time", "nohup", "bundle", "exec")
        or re.match(r"\w+=", words[0])
    ):
        words = words[1:] if words[0] != "cd" else []
    if not words:
        return
    first = words[0].strip("'\"`(").rpartition("/")[2].removesuffix(".sh")
    plain = [word for word in words[1:8] if not word.startswith("-")]
    verb = plain[0] if plain else ""
    acts: set[str] = set()
    if first == "git":
        acts = {_GIT[verb]} if verb in _GIT else set()
        if verb in ("checkout", "restore") and "--" in words:
            acts = {"change"}
    elif first in _INSTALLERS and verb in _INSTALLS:
        # "npm install" and "pip install -e ." bring in what the project names already.
        acts = {"install", "online"} if len(plain) > 1 and not plain[1].startswith(".") else set()
    elif first in ("python", "python3") and "-m" in words and "install" in words:
        acts = {"install", "online"}
    elif first in CLIS:
        acts = set() if verb in _LOOKS else {act for word in (first, *plain[:2]) for act in acts_of(word)}
        if first in ("kubectl", "helm", "oc") and verb in ("apply", "upgrade", "install", "rollout"):
            acts |= {"publish"}
    elif first in ("sed", "perl"):
        acts = {"change"} if any(word.startswith(("-i", "-pi", "--in-place")) for word in words) else set()
    elif first in ("cp", "mv", "ln", "install", "rsync", "tee", "patch", "chmod", "chown", "truncate", "dd"):
        acts = {"change", "add"} | ({"remove"} if first in ("mv", "truncate") else set())
    elif first not in READING and first not in ("psql", "mysql", "sqlite3"):
        acts = set(acts_of(first) or (acts_of(verb) if verb.isalpha() else ()))
    if first in _ONLINE:
        acts |= {"online"}
        if first == "curl":
            found = re.search(r"-X\s?(\w+)|--request[ =](\w+)", step)
            acts |= {HTTP.get((found[1] or found[2]).casefold(), "read")} if found else set()
    if _INTO.search(step):
        acts |= {"change", "add", "write"}
    for found in islice(_SQL.finditer(step), 8):
        acts.add(SQL[found["verb"].casefold()])
    if "install" in acts and (lock := _LOCKS.get(first)):
        yield Part(frozenset(("change",)), tokens(lock), (lock,), ())
    if "-f" in words and first == "git":  # "no force push" forbids "git push -f"
        step += " force"
    pieces = frozenset(tokens(step) | tokens(" ".join(_PIECES.findall(step))))
    if first in ("kubectl", "oc", "helm"):
        pieces |= tokens("cluster kubernetes")
    plainly = tuple(tokens(word) for word in words[1:16] if word.isalnum())
    yield Part(frozenset(acts | {"run"}), pieces, tuple(_PATH.findall(step)), plainly if acts else ())


def _numbers(arguments: Any, key_pattern: re.Pattern[str]) -> Iterator[float]:
    """Yield the numbers under keys among arguments."""
    waiting: list[Any] = [arguments]
    seen = 0
    while waiting and seen < MAX_ARGUMENTS:
        item = waiting.pop()
        seen += 1
        if isinstance(item, dict):
            for key, value in islice(item.items(), MAX_ARGUMENTS):
                if isinstance(value, dict | list):
                    waiting.append(value)
                elif (
                    isinstance(value, int | float) and not isinstance(value, bool) and key_pattern.search(str(key)[:40])
                ):
                    yield float(value)
        elif isinstance(item, list):
            waiting += item[:MAX_ARGUMENTS]


def _sum_of(fields: dict[str, Any]) -> float:
    """Return the sum of the amounts of a list of things, each times its number."""
    best = 0.0
    for value in fields.values():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value[:MAX_ARGUMENTS]):
            total = 0.0
            for item in value[:MAX_ARGUMENTS]:
                number = next(
                    (item[key] for key in ("quantity", "qty", "count", "number") if isinstance(item.get(key), int)), 1
                )
                total += sum(islice(_numbers(item, _MONEY_KEY), 1)) * number
            best = max(best, total)
    return best
