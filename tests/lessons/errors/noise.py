"""Paths, lines, ids, times and names that change at every occurrence of an error; one value a name within one text."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from lessons.errors.frames import Place, stack

WORDS = (
    "account address admin alert archive asset audit auth backup balance banner basket batch billing board booking "
    "branch bridge bucket budget cache calendar campaign card cart catalog channel charge checkout client cluster "
    "column comment config contact coupon course crawler customer dashboard dataset delivery device digest discount "
    "document driver editor email event export feature feed filter form forecast gateway graph group header history "
    "image import index ingest inventory invoice item job journal label ledger letter library license listing "
    "location logger mailer market media member menu message metric model module network note notice offer order "
    "package page panel parser partner password patch payment permission photo pipeline player policy portal post "
    "price product profile project prompt proxy query queue quota rating reader receipt record refund region "
    "registry release report request reservation result review role route rule sample schedule schema score search "
    "season section seller sensor service session setting shipment signal signup sketch snapshot source stage "
    "statement stock storage store stream student subscription summary survey tag target task tax team template "
    "tenant theme thread ticket timeline token topic tracker transfer trip upload user vendor video view voucher "
    "wallet warehouse webhook widget worker zone"
).split()
VERBS = (
    "add apply assign build calculate check clean close collect compare compute convert copy create decode delete "
    "dispatch encode ensure expand extract fetch fill find flush format handle index init insert load merge move "
    "normalize notify open parse prepare process publish pull push read rebuild refresh register remove render "
    "replace resolve restore run save send serialize show sort split start store submit sync track transform update "
    "validate verify write"
).split()
USERS = (
    "alice bob carol dave deploy dev devuser eve jenkins jdoe kim lena marco node nina ops pavel runner sam web".split()
)
ROOTS = (
    "/app",
    "/code",
    "/srv/app",
    "/workspace",
    "/usr/src/app",
    "/home/{user}/{project}",
    "/home/{user}/code/{project}",
    "/home/{user}/src/{project}",
    "/Users/{user}/dev/{project}",
    "/Users/{user}/Projects/{project}",
    "/var/www/{project}",
    "/opt/{project}",
    "/builds/{user}/{project}",
    "/home/runner/jobs/{project}/{project}",
    "/mnt/c/Users/{user}/{project}",
    "/tmp/{project}",
)
HOSTS = ("{w}.example.com", "{w}-{v}.internal", "api.{w}.io", "{w}.{v}.svc.cluster.local", "{w}{d}.corp.example.net")
EXTENSIONS = {
    "python": "py",
    "pytest": "py",
    "node": "js",
    "javascript": "js",
    "typescript": "ts",
    "java": "java",
    "go": "go",
    "rust": "rs",
    "csharp": "cs",
    "ruby": "rb",
    "php": "php",
    "c": "c",
    "cpp": "cpp",
    "shell": "sh",
    "sql": "sql",
    "yaml": "yaml",
    "json": "json",
}
_CAMEL = ("node", "javascript", "typescript", "java", "php", "csharp", "go")
_NAME = re.compile(r"([a-z_]*[a-z])[2-9]?")


class Noise:
    """The noise of one text: every name has one value, drawn when it is first asked for.

    Parameters
    ----------
    rng : random.Random
        Where the values come from.
    language : str
        Decides the extension of files and the spelling of functions; an unknown one writes as a shell script does.
    """

    def __init__(self, rng: Random, language: str) -> None:
        self._rng = rng
        self._language = language
        self._values: dict[str, str] = {}
        self._user = rng.choice(USERS)
        self._root = rng.choice(ROOTS).format(user=self._user, project=self._joined("-"))

    def value(self, name: str) -> str:
        """The value of one slot; ``path`` and ``path2`` are two values of one kind, ``path`` twice is one."""
        if name not in self._values:
            made = _NAME.fullmatch(name)
            if made is None or made[1] not in KINDS:
                raise KeyError(name)
            self._values[name] = KINDS[made[1]](self)
        return self._values[name]

    def frames(self, language: str, count: int | None) -> str:
        """The text of a stack; 2 to 12 frames without a count."""
        return stack(language, count or self._rng.randint(2, 12), self.place, self._rng)

    def place(self, language: str) -> Place:
        """A place in the user's own code, written as that language writes names."""
        file = self._relative(EXTENSIONS[language])
        return Place(
            root=self._root,
            file=file,
            line=self._rng.randint(3, 880),
            func=self._function(language),
            owner=self._class(),
            words=(self._word(), self._word(), self._word()),
        )

    def _word(self) -> str:
        return self._rng.choice(WORDS)

    def _joined(self, by: str) -> str:
        return by.join(self._rng.sample(WORDS, self._rng.choice((1, 2, 2))))

    def _relative(self, extension: str) -> str:
        folders = self._rng.choice(
            ("src/", "app/", "lib/", "", "src/{w}/", "services/{w}/", "{w}/", "packages/{w}/src/")
        )
        stem = self._joined("" if extension == "java" else "_" if extension in ("py", "rb", "go", "rs") else "-")
        return f"{folders.format(w=self._word())}{stem}.{extension}"

    def _function(self, language: str) -> str:
        parts = [self._rng.choice(VERBS), *self._joined(" ").split()]
        if language in _CAMEL:
            return parts[0] + "".join(part.capitalize() for part in parts[1:])
        return "_".join(parts)

    def _class(self) -> str:
        return "".join(part.capitalize() for part in self._joined(" ").split()) + self._rng.choice(
            ("", "Service", "Handler", "Manager", "Client", "Store", "View", "Worker")
        )

    def _digits(self, alphabet: str, count: int) -> str:
        return "".join(self._rng.choice(alphabet) for _ in range(count))

    def _file(self) -> str:
        return self._relative(EXTENSIONS.get(self._language, "sh"))

    def _dir(self) -> str:
        return f"{self._root}/{self._joined('_')}"

    def _host(self) -> str:
        made = self._rng.choice(HOSTS)
        return made.format(w=self._word(), v=self._rng.choice(VERBS), d=self._rng.randint(1, 9))

    def _ip(self) -> str:
        low = (10, self._rng.randint(0, 255)) if self._rng.random() < 0.6 else (192, 168)
        return f"{low[0]}.{low[1]}.{self._rng.randint(0, 255)}.{self._rng.randint(1, 254)}"

    def _uuid(self) -> str:
        return "-".join(self._digits("0123456789abcdef", size) for size in (8, 4, 4, 4, 12))

    def _version(self) -> str:
        return f"{self._rng.randint(0, 24)}.{self._rng.randint(0, 30)}.{self._rng.randint(0, 19)}"

    def _date(self) -> str:
        return f"202{self._rng.randint(0, 6)}-{self._rng.randint(1, 12):02}-{self._rng.randint(1, 28):02}"

    def _time(self) -> str:
        return f"{self._rng.randint(0, 23):02}:{self._rng.randint(0, 59):02}:{self._rng.randint(0, 59):02}"

    def _branch(self) -> str:
        return self._rng.choice(("feature/", "fix/", "", "chore/", f"{self._user}/")) + self._joined("-")

    def _url(self) -> str:
        return f"{self._rng.choice(('https', 'https', 'http'))}://{self._host()}/{self._joined('/')}"

    def _number(self) -> str:
        return str(self._rng.randint(2, self._rng.choice((9, 99, 999, 99_999))))


KINDS: dict[str, Callable[[Noise], str]] = {
    "path": lambda noise: f"{noise._root}/{noise._file()}",
    "dir": Noise._dir,
    "file": Noise._file,
    "line": lambda noise: str(noise._rng.randint(2, 960)),
    "col": lambda noise: str(noise._rng.randint(1, 96)),
    "n": Noise._number,
    "port": lambda noise: str(
        noise._rng.choice((3000, 5000, 5432, 8000, 8080, 9000, noise._rng.randint(1025, 65_000)))
    ),
    "host": Noise._host,
    "ip": Noise._ip,
    "hex": lambda noise: noise._digits("0123456789abcdef", 12),
    "addr": lambda noise: "0x" + noise._rng.choice(("7f", "55", "10", "0000")) + noise._digits("0123456789abcdef", 10),
    "uuid": Noise._uuid,
    "sha": lambda noise: noise._digits("0123456789abcdef", noise._rng.choice((7, 40))),
    "version": Noise._version,
    "ms": lambda noise: str(noise._rng.randint(1, 9_999)),
    "s": lambda noise: f"{noise._rng.randint(0, 180)}.{noise._rng.randint(0, 99):02}",
    "date": Noise._date,
    "time": Noise._time,
    "pid": lambda noise: str(noise._rng.randint(12, 98_000)),
    "user": lambda noise: noise._user,
    "url": Noise._url,
    "func": lambda noise: noise._function(noise._language),
    "class": Noise._class,
    "var": lambda noise: noise._joined("_"),
    "branch": Noise._branch,
}
"""Kind of noise -> the way it is drawn; a digit after the name (``path2``) asks for another value of the kind."""

__all__ = ["EXTENSIONS", "KINDS", "VERBS", "WORDS", "Noise"]
