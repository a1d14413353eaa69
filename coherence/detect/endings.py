"""Endings of calls, by the words of a short result: refused, left pending, only tried out, done in part."""

from __future__ import annotations

from typing import Literal, TypeAlias

from coherence.core.lazy import lazy_regex

Ending: TypeAlias = Literal["", "failed", "pending", "tried out", "partly"]

SHORT = 500
"""Characters of a result up to which its words are about the call, not about what it found."""

_FAILED = lazy_regex(
    r"\A\W{0,3}(?:http[ /\d.]{0,5} ?)?[45]\d\d\b(?! ?(?:[kmg]b|rows|files|items|ms|°|€|\$|records|[,.]\d))"
    r"|\b(?:error|failed|failure|fatal|denied|declined|rejected|refused|forbidden|unauthorized|bounced?|undeliver(?:ed"
    r"|able)"
    r"|returned to sender|timed? ?out|timeout|did not respond|not responding|no response|unreachable|session expired"
    r"|expired token"
    r"|please sign in|out of (?:stock|paper|memory)|sold out|insufficient|quota (?:exceeded|reached)|limit exceeded"
    r"|too many requests"
    r"|rate limit(?:ed)?|permission_denied|not permitted|not allowed|aborted|killed|unknown (?:encoder|command|option"
    r"|user|host)"
    r"|no such (?:file|user|host|table|column)|cannot|could not|couldn't|unable to|was not (?:created|sent|saved"
    r"|applied|updated)"
    r"|locked by|blocked by|conflicts? with|rolled back|invalid"
    r"|erreur|échec|échoué|refusée?|impossible|insuffisant\w*|introuvable|interdit|fehler|fehlgeschlagen|abgelehnt"
    r"|verweigert"
    r"|ungültig|nicht (?:gefunden|möglich|verfügbar|zugestellt|erreichbar)|falló|fallido|rechazad[oa]|denegad[oa]"
    r"|no se pudo"
    r"|agotad[oa]|insuficientes?|erro|falhou|recusad[oa]|negad[oa]|não foi possível|esgotad[oa]|errore|fallit[oa]"
    r"|rifiutat[oa]"
    r"|negat[oa]|impossibile|esaurit[oa]|scadut[oa])\b"
    r"|失败|错误|拒绝|无法|未能|超时|不足|已售罄|失敗|エラー|拒否|できません|されません|満席|在庫切れ",
)
_FINE = lazy_regex(
    r"\b(?:no|0|zero|without|keine?|ohne|sans|aucune?|sin|senza|sem) (?:\w+ )?(?:error|failure|fehler|erreur"
    r"|err[oi]re?)\w{0,3}\b"
    r"|\b(?:errors?|failed|failures?|rejected|skipped|denied|invalid|bounced)[\"']?\s?[:=]\s?[\"']?(?:0|none|null"
    r"|false|\[\]|\"\")"
    r"|\b(?:0|no|none) (?:failed|failures|errors|rejected|skipped|invalid|bounced|denied|declined)\b"
    r"|\berror[- ]?(?:handl|messag|page|log|rate|bound)\w{0,6}"
    r"|if (?:it|this) fails|[\w./-]{1,60}/[\w./-]{0,60}|\bon[- ](?:error|failure)\b"
)
"""Expressions with such words that tell of no failure."""

_PENDING = lazy_regex(
    r"\b(?:status|state|estado|statut|stato|zustand|result)[\"']?\s?[:=]\s?[\"']?(?:pending|queued|waiting|awaiting"
    r"|draft|scheduled"
    r"|in[_ -]?(?:review|progress|queue)|processing|submitted|requested|on[_ -]?hold|unpublished|unsent|held|borrador"
    r"|entwurf)"
    r"|\b(?:pending[_ ](?:approval|review|confirmation|payment|signature)|awaiting (?:approval|review|confirmation"
    r"|payment|signature)"
    r"|(?:requires?|needs?|subject to|waiting for|required?) (?:\w+ ){0,3}?(?:approval|review|confirmation|signature"
    r"|signatory)"
    r"|approval (?:required|needed|pending)|signatory required|in (?:the )?queue|queued|waitlist(?:ed)?|waiting list"
    r"|saved as draft|draft (?:\w+ )?(?:saved|created)|not (?:yet )?(?:sent|published|live|submitted|applied|confirmed"
    r"|paid)"
    r"|entwurf|noch nicht|genehmigung|warteschlange|brouillon|en attente|file d'attente|borrador|pendiente"
    r"|sin publicar|en cola"
    r"|en espera|rascunho|pendente|na fila|não publicad[oa]|aguardando|bozza|in attesa|in coda)\b"
    r"|待审|审批|排队|草稿|待确认|保留中|下書き|承認待ち|審査中"
)
_THROUGH = lazy_regex(r"\b(?:delivered|completed|succeeded|finished|done|zugestellt|entregad[oa]|livré)\b")
_TRIED_OUT = lazy_regex(
    r"\bdry[-_ ]?run\b|\(dry\)|\bwould (?:be |have )?(?:\w+ )?(?:creat|delet|updat|remov|send|copy|chang|mov|upload"
    r"|add|destroy|appl|reformat"
    r"|migrat|renam|publish|transfer)\w{0,4}\b|\bplan: \d|\bno changes (?:were )?(?:made|applied|written)\b"
    r"|\bpreview only\b"
    r"|\bsimulat(?:ed|ion)\b|\btrockenlauf\b|\bsimulacro\b|\bsimulação\b|\bà blanc\b|试运行|ドライラン"
)
_PARTLY = lazy_regex(
    r"\b(?:rejected|failed|skipped|errors?|invalid|bounced|withheld|missing|rechazad[oa]s|fallid[oa]s|omitid[oa]s"
    r"|rejetée?s"
    r"|ignorée?s|abgelehnt|übersprungen|fehlgeschlagen|rejeitad[oa]s|ignorad[oa]s|scartat[ie]|saltat[ie]|失败|跳过"
    r"|失敗)[\"']?\s?[:=]\s?[1-9]"
    r"|\b[1-9]\d{0,5} (?:\w+ )?(?:rejected|failed|skipped|failures|errors|invalid|bounced|could not|rechazad[oa]s"
    r"|fallid[oa]s"
    r"|rejetée?s|ignorée?s|abgelehnt|übersprungen|fehlgeschlagen|rejeitad[oa]s|scartat[ie])\b"
)


_TRIES = lazy_regex(r"--dry-?run\b|\bdry_?run\W{1,4}true|terraform plan|--noop\b|--simulate\b|--what-?if\b")


def only_tries(call: str) -> bool:
    """Tell whether a call, in lower case, asks to show what it would do."""
    return _TRIES.search(call) is not None


def ending_of(text: str) -> Ending:
    """Return how a call ended of which a short result tells; "" where it is not told, or all went well.

    Examples
    --------
    >>> ending_of("403 API rate limit exceeded."), ending_of('{"sent": 12, "failed": 0}')
    ('failed', '')
    >>> ending_of('{"id": "TR-1", "status": "pending_approval"}'), ending_of('{"imported": 231, "rejected": 19}')
    ('pending', 'partly')
    """
    if len(text) > SHORT:
        return ""
    low = text.casefold().replace("’", "'")
    plain = _FINE.sub(" ", low)
    if _PARTLY.search(plain) is not None:
        return "partly"
    if _FAILED.search(plain) is not None:
        return "failed"
    if _TRIED_OUT.search(low) is not None:
        return "tried out"
    return "pending" if _PENDING.search(low) is not None and _THROUGH.search(low) is None else ""


def fails_at_once(text: str) -> bool:
    """Tell whether what was to be read is a short notice that begins with a failure."""
    return (
        len(text) <= NOTICE
        and "\n" not in text.strip()
        and _FAILED.search(_FINE.sub(" ", text[:BEGIN].casefold())) is not None
    )


NOTICE, BEGIN = 200, 40
