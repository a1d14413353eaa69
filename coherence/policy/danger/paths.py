"""Files that must not be overwritten by the way: secrets, the system's own, devices."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex

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
_SYSTEM = lazy_regex(
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
    return _SYSTEM.fullmatch(path) is not None or is_secret(path)
