"""Paths that hold a whole system, a home, stored data or a project."""

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
    if (default := _DEFAULT.match(plain)) is not None:
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
