"""Paths that hold a whole system, a home, stored data or a project, and files that must not be overwritten."""

from __future__ import annotations

import posixpath
import re

from coherence.core.lazy import lazy_regex

_HOME = lazy_regex(
    r"(?:\$\{?HOME\b:?[^}/]*\}?|%(?:userprofile|homepath)%|\$env:(?:userprofile|home)|~\w*)(?=/|$)", re.IGNORECASE
)
_ENDS = ("/", "/*", "/**", "/.", "/.*", "/{}", "/{*,.*}", "/.[!.]*", "/.[^.]*", "/.??*")
"""Ends of a path that stand for all that is in a folder."""

_ROOT = lazy_regex(
    r"/?|/(?:root|home|users|etc|usr|var|boot|s?bin|lib(?:32|64)?|opt|srv|dev|sys|proc|mnt|media|volumes|data|backups?"
    r"|system|library|applications|run|workspace|repo|app)"
    r"|/(?:home|users)/[^/*]+|/usr/(?:bin|sbin|lib|lib64|local|share)|/var/(?:lib|log|backups?|www|mail|spool)"
    r"|/var/lib/(?:mysql|mariadb|postgres\w*|pgsql|mongo\w*|redis|docker|etcd|kubelet|elasticsearch|clickhouse"
    r"|cassandra|influxdb)(?:/data|/\d+/\w+)?"
    r"|/(?:mnt|media|volumes)/[^/*]+"
    r"|/(?:srv|mnt|opt|data|nas|media|var|backup|volumes?\d?)(?:/[\w .-]{1,60}){0,2}/(?:backups?|time machine)"
    r"|/data/(?:postgres\w*|mysql|mongo\w*|redis)"
    r"|(?:~|/(?:home|users)/[^/*]{1,60})(?:/(?:backups?|\.ssh|\.aws|\.gnupg|\.kube|\.config|documents|desktop|pictures|photos|music|videos|library|projects?"
    r"|code|repos?|src|work))?"
    r"|\$\{?home\}?|%(?:systemroot|systemdrive|windir)%|\$env:systemdrive"
    r"|[a-z]:[/\\]?(?:windows[/\\]?(?:system32)?|users(?:[/\\][^/\\*]+)?|program ?files(?: \(x86\))?)?\**(?:\.\*)?",
    re.IGNORECASE,
)
_DEFAULT = lazy_regex(r"\$\{\w{1,60}:?-([^}]{0,200})\}")
_BELOW_ROOT = lazy_regex(r"/\$\{?\w{1,60}\}?/?")
_SYSTEM = lazy_regex(r"/?|/(?:etc|usr|var|boot|s?bin|lib(?:32|64)?|root|home|sys|proc)|/usr/(?:bin|sbin|lib|lib64)")
_HERE = frozenset(
    {
        "*",
        "**",
        "**/*",
        ".",
        "./*",
        ".*",
        "./",
        "..",
        "../*",
        "../..",
        "../../*",
        "$PWD",
        "${PWD}",
        "$PWD/*",
        "$(pwd)",
        "$(git rev-parse --show-toplevel)",
    }
)


def normal(path: str) -> str:
    r"""Return a path as it is compared: one way to write the home, no ``/*`` at its end.

    Examples
    --------
    >>> [normal(path) for path in ("/*", "${HOME}/", "/var//lib/mysql/*", "C:\\\\")]
    ['', '~', '/var/lib/mysql', 'C:']
    """
    path = path.strip().strip("\"'")[:1_000].replace("\\", "/")
    while "//" in path:
        path = path.replace("//", "/")
    path = _HOME.sub("~", path) if path[:1] in ("$", "%", "~") else path
    while path.endswith(_ENDS):
        path = path[: -max(len(end) for end in _ENDS if path.endswith(end))]
    return posixpath.normpath(path) if "/.." in path else path


def holds_everything(path: str, folder: str = "") -> bool:
    """Return whether wiping a path takes a system, a home, stored data or the project.

    Parameters
    ----------
    path
        As a command names it.
    folder
        Folder that the script has changed to before; empty = none is known.

    Examples
    --------
    >>> [holds_everything(path) for path in ("/", "~/*", "/etc", "build/*", "/tmp/x", ".git", "/home/ann/x/build")]
    [True, True, True, False, False, True, False]
    >>> holds_everything("*"), holds_everything("*", "build"), holds_everything("*", "/")
    (True, False, True)
    """
    plain = path.strip().strip("\"'")
    if not plain or len(plain) > 1_000:
        return False
    if (default := _DEFAULT.match(plain)) is not None:  # "${DIR:-/}" is "/" where DIR is not set
        plain = default[1] + plain[default.end() :]
    if _BELOW_ROOT.fullmatch(plain) is not None:  # a name that may be empty, or each one in turn
        return True
    if plain in _HERE or plain.rstrip("/") in _HERE:
        if not folder:
            return True
        if not plain.startswith(".."):
            return holds_everything(folder)
        return holds_everything(posixpath.normpath(posixpath.join(folder, plain.removesuffix("/*"))))
    found = normal(plain)
    if _ROOT.fullmatch(found) is not None:
        return True
    if folder and found[:1] not in ("/", "~", "$"):
        return folder.startswith(("/", "~")) and _ROOT.fullmatch(normal(posixpath.join(folder, found))) is not None
    return found == ".git" or found.endswith("/.git")


def is_system(path: str) -> bool:
    """Return whether a path is the root or one of the system's own folders."""
    return bool(path.strip()) and _SYSTEM.fullmatch(normal(path)) is not None


DISPOSABLE = lazy_regex(
    r"(?<![a-z])(?:te?mp|temporary|test(?:ing|s|db|cases?)?|scratch|sandbox|dev(?:el|elopment|db)?|demo"
    r"|preview|ephemeral"
    r"|throwaway|playground|mock|fixtures?|minikube|kind|:memory:|pr-?\d+|ci)(?![a-z])|#\w",
    re.IGNORECASE,
)
"""Words of names of what is made to be thrown away."""

LIVE = lazy_regex(r"(?<![a-z])(?:prod(?:uction)?|live|main|master|primary|customers?)(?![a-z])", re.IGNORECASE)
"""Words of names of what others rely on."""


def is_disposable(*texts: str) -> bool:
    """Return whether names say that something is made to be thrown away, and none that others rely on it.

    Examples
    --------
    >>> is_disposable("app_test"), is_disposable("latest"), is_disposable("dev-prod")
    (True, False, False)
    """
    text = " ".join(texts)[:4_000].replace("_", " ")
    return DISPOSABLE.search(text) is not None and LIVE.search(text) is None


_SECRET = lazy_regex(
    r"""
    \.env(?:rc|\..+)? | .+\.env                                   # .env, .env.production, prod.env
    | \.?(?:.+[-_])?credentials?(?:[-_].*)?(?:\.(?:json|ya?ml|ini|csv|toml|xml|db|env|txt|enc))?
    | (?:.+[-_.])?secrets?(?:\.(?:json|ya?ml|ini|csv|toml|xml|env|txt|enc|properties|tfvars|auto\.tfvars))?
    | (?:client_secret|service[-_]account).*\.json | token\.json
    | .+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfstate)
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?
    | \.(?:npmrc|pypirc|netrc|pgpass|my\.cnf|git-credentials|htpasswd|dockercfg|vault-token) | _netrc
    | (?:.+[-_])?passwords?(?:[-_].*)?\.(?:txt|csv|xlsx?|docx?|json|md|kdbx) | .+\.tfvars
    | kubeconfig(?:\..*)? | authorized_keys | shadow | \.(?:bash|zsh|psql|mysql|python)_history
    | login\ data | key4\.db | logins\.json | wallet\.dat | ntds\.dit | login\.keychain(?:-db)? | wp-config\.php
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SECRET_IN_FOLDER = lazy_regex(
    r"(?:^|/)(?:\.kube/config|\.docker/config\.json|\.aws/config|\.gnupg/[^/]+"
    r"|\.config/gh/hosts\.yml|run/secrets/\S{1,200}|etc/ssl/private/[^/]+|proc/(?:self|\d+)/environ"
    r"|(?:Default|Profile \d+)/Cookies)$"
)
_HARMLESS = lazy_regex(r".+\.(?:example|sample|template|tmpl|dist|defaults?|bak|backup|orig|old|pub|md)", re.IGNORECASE)
_SYSTEM_FILE = lazy_regex(
    r"/(?:etc|boot|bin|sbin|lib|lib64|sys|proc|usr/(?:bin|sbin|lib))/.+"
    r"|/dev/(?!(?:null|zero|stdin|stdout|stderr|tty\w*|full|random|urandom)$|(?:fd|shm|pts|tcp|udp)/).+"
)
_DEVICE = lazy_regex(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|loop|dm-|mapper/|md|mem|kmem|[${]).*")


def is_secret(path: str) -> bool:
    """Return whether a path names a file that usually holds keys or passwords.

    Examples
    --------
    >>> [is_secret(path) for path in (".env", "~/.ssh/id_rsa", ".env.example", "secretary.py")]
    [True, True, False, False]
    """
    if len(path) > 4_096:  # longer than any path
        return False
    path = path.replace("\\", "/").strip()
    name = re.split(r"[/:]", path)[-1]
    if not name or _HARMLESS.fullmatch(name):
        return False
    return _SECRET.fullmatch(name) is not None or _SECRET_IN_FOLDER.search(path) is not None


def is_device(path: str) -> bool:
    """Return whether a path is a disk or the memory."""
    return _DEVICE.fullmatch(path) is not None


def is_guarded(path: str) -> bool:
    """Return whether overwriting a path is destructive: a secret, a system file or a device.

    Examples
    --------
    >>> [is_guarded(path) for path in ("/dev/sda", "/etc/passwd", "/dev/null", "out.txt")]
    [True, True, False, False]
    """
    return _SYSTEM_FILE.fullmatch(path) is not None or is_secret(path)
