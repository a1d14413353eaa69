"""Causes that a message gives for a failure, held against those that the results tell of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from coherence.core.lazy import lazy_regex

_KINDS = {
    "space": r"no space|disk (?:is |was |were )?full|full disk|enospc|disk space|quota|storage (?:is |was )?full"
    r"|out of (?:disk|storage)"
    r"|festplatte|speicherplatz|espace disque|disque plein|espacio en disco|disco lleno|spazio su disco|disco pieno"
    r"|disco cheio"
    r"|espaço em disco|磁盘|ディスク|容量",
    "memory": r"out of memory|\boom\b|oomkilled|memory|\bheap\b|enomem|exit(?:ed)?(?: with)?(?: code)? 137"
    r"|arbeitsspeicher|mémoire|memoria"
    r"|memória|内存|显存|メモリ",
    "network": r"timed? ?out|timeout|time-out|deadline|took too long|zeitüberschreitung|délai dépassé|délai d'attente"
    r"|tiempo de espera"
    r"|tempo limite|tempo scaduto|超时|タイムアウト|connection (?:was |is |has been )?(?:refused|reset|lost|closed"
    r"|aborted|failed|dropped)|econn|unreachable|\bdns\b"
    r"|could not resolve|name resolution|resolve host|network|no route|offline|netzwerk|verbindung|réseau|connexion"
    r"|\bred\b|conexión"
    r"|\brede\b|conexão|connessione|网络|连接|ネットワーク|接続",
    "access": r"permission|denied|forbidden|\b40[13]\b|unauthori[sz]ed|credential|password|passphrase|\btoken|\blogin"
    r"|log in|access key|api key|certificate"
    r"|signature|expired|not allowed|\beacces\b|berechtigung|zugriff|passwort|zertifikat|abgelaufen|autorisation"
    r"|mot de passe|certificat"
    r"|expiré|permiso|contraseña|certificado|permissão|senha|permess|certificato|权限|密码|证书|凭证|権限|パスワード"
    r"|証明書",
    "missing": r"not found|no such|\b404\b|missing|enoent|does not exist|doesn't exist|cannot find|could not find"
    r"|no module|unknown|undefined"
    r"|not installed|not defined|no longer exists|nicht gefunden|fehlt|existiert nicht|introuvable|manquant|manque"
    r"|n'existe pas|no existe|falta"
    r"|no encontrad|não existe|não encontrad|non esiste|manca|找不到|不存在|缺少|見つから|存在しない",
    "format": r"syntax|pars(?:e|ing)|unexpected token|malformed|invalid json|decode|encoding|indent|type ?error|schema"
    r"|format"
    r"|syntaxfehler|kodierung|syntaxe|encodage|sintaxis|sintassi|sintaxe|codifica|语法|格式|编码|構文|形式|文字コード",
    "rate": r"rate limit|ratelimit|\b429\b|too many requests|throttl|限流|レート制限",
    "taken": r"already in use|eaddrinuse|already allocated|port \d+ (?:is|was)|occupied|lock(?:ed)?\b|deadlock"
    r"|conflict|duplicate|already exists|belegt|gesperrt"
    r"|konflikt|occupé|verrou|conflit|ocupad|bloque|conflicto|conflito|occupat|blocc|conflitto|占用|冲突|锁|使用中"
    r"|競合|ロック",
    "hardware": r"battery|overheat|temperature|fan\b|voltage|power (?:loss|outage|failure)|unplugged|akku|strom"
    r"|batterie|courant|batería|corriente"
    r"|bateria|energia|电池|断电|電池|停電",
    "stopped": r"segfault|segmentation fault|sigsegv|\bpanic|null pointer|nullpointer|core dump|stack overflow"
    r"|recursion|assert|空指针",
}
_PATTERNS = {name: lazy_regex(source) for name, source in _KINDS.items()}

_VAGUE = frozenset({"missing", "format", "taken"})
"""Kinds by which another one may be told in other words: that something is not there, not well-formed, not free."""

_BECAUSE = lazy_regex(
    r"\b(?:because(?: of)?|due to|caused by|the (?:cause|reason|culprit) (?:is|was|were|lies in)|came from|comes from"
    r"|weil|wegen|aufgrund"
    r"|ursache (?:ist|war)|liegt an|lag an|parce qu[e']|à cause d[eu]s?|en raison d[eu]s?|porque|debido a|por culpa de"
    r"|a causa d[eio]\w*|por causa d[aoe]s?"
    r"|devido a[os]?|perché|per via d\w+|dovuto a\w*)\s(?P<cause>[^.!?;]{4,160})|(?:因为|由于|原因是"
    r"|起因于)(?P<dense>[^。;；!！]{2,60})"
    r"|(?P<before>[^。、！!]{2,50})(?:が原因|のため|によ[りる])",
    re.IGNORECASE,
)
"""Expressions that give a cause."""


def kinds_in(text: str) -> set[str]:
    """Return the kinds of causes of failure of which a text, in lower case, speaks."""
    return {name for name, pattern in _PATTERNS.items() if pattern.search(text) is not None}


def other_cause(statements: Iterable[str], results: Sequence[str]) -> str | None:
    """Return the statement that gives a cause of a kind that no result tells of, where they tell of another.

    Examples
    --------
    >>> log = "oserror: [errno 28] no space left on device"
    >>> other_cause(["It died because the connection was lost."], [log])
    'It died because the connection was lost.'
    >>> other_cause(["It died because the disk was full."], [log]) is None
    True
    """
    told: set[str] | None = None
    for statement in statements:
        if statement.endswith(("?", "？")):
            continue
        found = _BECAUSE.search(statement)
        if found is None:
            continue
        claimed = kinds_in((found["cause"] or found["dense"] or found["before"]).casefold())
        if not claimed or not _VAGUE.isdisjoint(claimed):
            continue
        if told is None:
            told = {kind for result in results for kind in kinds_in(result)}
        if told and claimed.isdisjoint(told):
            return statement
    return None
