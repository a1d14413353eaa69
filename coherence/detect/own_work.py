"""Activities that an agent says were done, and calls that may have done them: one table for both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.claim_words import CLAUSE, FLAWLESS, clause_words, is_plain, negations

_BY = (
    r"i|we|i've|we've|have|has|had|is|are|was|were|been|and|also|then|just|already|now|successfully|it's|ich|wir|habe"
    r"|haben|hat|wurden?|ist|sind|worden|und|j'ai|ai|avons|ont|été|est|sont|et|he|hemos|ha|han|fue|fueron|está|están|y"
    r"|ho|abbiamo|è|sono|stat[oaie]|foi|foram|já|eu|e|además|también|außerdem|auch|aussi|anche|também"
)
"""Words behind which somebody has done what the next verb says, or it was done."""

_ADVERB = r"(?:just|also|then|already|now|even|finally|afterwards|additionally|subsequently|since|quickly|have|had) "
_AT_FIRST = rf"^(?:(?:and|und|et|y|e) )?(?:{_ADVERB}){{0,2}}"
_ITS_OBJECT = (
    r"(?=$| (?:the|a|an|your|our|all|both|it|them|this|that|to|in|on|via|with|and|den|die|das|le|la|les|el|los|il|o|os"
    r"|\d+)(?!\S))"
)
"""Words behind a verb with which a clause begins; "Cancelled orders" is a heading."""
_ME = (
    rf"(?<!\S)(?:i|we|i've|we've) (?:{_ADVERB}){{0,3}}"
    rf"|(?<!\S)(?:i|we|i've|we've) (?:\S+ ){{1,9}}?and (?:{_ADVERB}){{0,2}}"
    r"|(?<!\S)(?:ich|wir|habe|haben) (?:\S+ ){0,8}?|(?<!\S)(?:j'ai|avons|he|hemos|ho|abbiamo) (?:\S+ ){0,2}?"
)
"""Words that lead to a verb whose subject is the agent."""

_BARE = r"(?<!the )(?<!a )(?<!an )(?<!your )(?<!our )(?<!to )(?<!be )(?<!der )(?<!die )(?<!la )(?<!le )(?<!el )"


class _Family(NamedTuple):
    done: str
    """Verbs, a regular expression: participles and whatever needs a word of :data:`_BY` before it."""
    said: str
    """Expressions that claim it by themselves: a verb form of the first person, a phrase."""
    dense: str
    """Verbs or nouns in Chinese and Japanese."""
    calls: str
    """Expressions in a call that may have done it, or in a result that tells of it."""
    mine: bool = False
    """True where the verb claims it only when the agent is its subject: whoever else did it may stand in the data."""


_FAMILIES = {
    "tests": _Family(
        r"tested|getestet|testée?s?|probad[oa]s|testad[oa]s?|testat[oaie]|load-tested|smoke-tested",
        r"\b(?:ran|rerun|re-ran|executed|run) (?:\S+ ){0,4}?(?:tests?|suites?|specs)\b"
        r"|\b(?:all|the|every|full|whole|its|unit|integration|regression) (?:\S+ ){0,3}?(?:tests?|suites?|specs|checks)"
        r" (?:\S+ ){0,2}?(?:pass|passes|passed|green|succeed|succeeded)\b"
        r"|\btests? (?:laufen|läuft|sind|ist|liefen) (?:\S+ ){0,3}?(?:grün|durch|erfolgreich|fehlerfrei|bestanden)\b"
        r"|\btests? (?:\S+ ){0,2}?(?:passent|passant|verts|réussis|pasan|passam|passano|superati|verdi|verdes)\b"
        r"|\b(?:pruebas|testes) (?:\S+ ){0,2}?(?:pasan|pasaron|passam|passaram|verdes?)\b"
        r"|\b(?:ejecuté|rodei|executei|corrí|lancé|eseguito|exécuté|lancé|ejecutado|ausgeführt) (?:\S+ ){0,3}?"
        r"(?:tests?|pruebas|testes)\b|\btests? (?:\S+ ){0,4}?(?:ausgeführt|laufen lassen)\b",
        "测试|テスト",
        r"test|\brun|exec|try|spec|jest|tox|check|verify|rake|cargo|gradle|mvn|make|suite|npm|\bqa\b|prueba|nox|just"
        r"|python|\bgo\b|测试",
    ),
    "browser": _Family(
        "",
        r"\b(?:opened|checked|looked|viewed|verified|tested|tried|loaded|confirmed|saw|vérifié|ouvert|regardé"
        r"|comprobado|abierto"
        r"|comprobé|abrí|verificato|aperto|testei|abri|verifiquei|geprüft|angesehen) (?:\S+ ){0,6}?(?:in|on|with|im"
        r"|dans|en|no|nel"
        r"|sul) (?:\S+ ){0,2}?(?:browsers?|navigateur|navegador|chrome|firefox|safari|phone|mobile)\b"
        r"|\b(?:im|dans le|en el|nel|no) (?:browser|navigateur|navegador) (?:\S+ ){0,4}?(?:geprüft|geöffnet|angesehen"
        r"|getestet"
        r"|vérifié|comprobado|verificato|testado)\b"
        r"|\bopened (?:the |that )?(?:\S+ )?(?:page|site|app)\b|\b(?:entré|entrei) (?:en|na|no) (?:la )?(?:página|web"
        r"|site)\b"
        r"|\b(?:ouvert|aperto|abierto|aberto) (?:la |a )?(?:page|pagina|página)\b|\b(?:seite"
        r"|webseite) (?:\S+ ){0,3}?geöffnet\b",
        "浏览器|ブラウザ",
        r"brows|\bpage|\burl|https?|screenshot|navigat|\bopen\b|click|playwright|puppeteer|chrome|selenium|\bweb"
        r"|fetch|curl|visit",
        mine=True,
    ),
    "push": _Family(
        r"pushed|gepusht|poussée?s?|pushé|pusheado|pushato",
        r"\bon (?:the )?(?:remote|origin|github|gitlab)\b|\bsubí (?:\S+ ){0,3}?(?:remoto|github|rama)\b",
        "推送|プッシュ",
        r"push|merge|pull_?request|\bpr\b|publish|upload|sync|github|gitlab|deploy|\bsend\b|put\b",
    ),
    "deploy": _Family(
        r"deployed|published|released|rolled out|ausgerollt|veröffentlicht|deployt|bereitgestellt|déployée?s?"
        r"|publiée?s?"
        r"|desplegad[oa]s?|publicad[oa]s?|pubblicat[oaie]|implantad[oa]s?|rilasciat[oaie]|live",
        r"\b(?:publiqué|desplegué|publiquei|mis en ligne|mise en production|online gestellt|live geschaltet)\b",
        "部署|发布|上线|デプロイ|公開",
        r"deploy|publi|releas|roll_?out|push|upload|\bput\b|apply|kubectl|helm|ship|live|promote|terraform|rsync|scp"
        r"|sync"
        r"|post|merge|activate|enable|vercel|netlify|heroku|\bset\b|部署|发布",
    ),
    "notify": _Family(
        r"notified|e?-?mailed|messaged|texted|alerted|benachrichtigt|verständigt|angeschrieben|prévenue?s?|avisée?s?"
        r"|avisad[oa]s?"
        r"|notificad[oa]s?|avvisat[oaie]|notificat[oaie]|avvertit[oaie]|pinged",
        r"\b(?:i|we|i've|we've|i have|we have) (?:also |then |just |already )?(?:informed|told|let|sent) (?:the |your "
        r"|our )?\w+"
        r"|\b(?:sent|envié|enviado|envoyé|inviato|mandato|enviei|mandei|schickte) (?:\S+ ){0,6}?(?:e-?mails?|mails?"
        r"|messages?|notes?"
        r"|notification|correo|mensaje|mensagem|courriel|messaggio|sms|confirmation|confirmación|confirmação)\b"
        r"|\b(?:e-?mail|mail|nachricht|bestätigung) (?:\S+ ){0,6}?(?:geschickt|gesendet|verschickt)\b"
        r"|\b(?:avisé|notifiqué|informé|avisei|notifiquei|informei) (?:a|al|à|ao|o|os|la|los)\b"
        r"|\b(?:confirmation|notification|e-?mail|invitations?|reminders?) (?:\S+ ){0,3}?(?:was|were|has been|is"
        r"|are) (?:\S+ )?sent\b"
        r"|\b(?:habe|haben) (?:\S+ ){0,5}?informiert\b|\b(?:ai|avons) (?:\S+ ){0,2}?informé\b",
        "通知|发邮件|发了邮件|メール|連絡",
        r"send|sent|mail|messag|\bmsg|notif|sms|slack|post|reply|chat|call|comment|invit|alert|contact|webhook|smtp"
        r"|teams|publish"
        r"|forward|share|respond|attendee|guest|particip|recipient|\btell|inform|email|text|whatsapp|telegram",
    ),
    "backup": _Family(
        r"backed up|snapshotted|gesichert|sauvegardée?s?|respaldad[oa]s?",
        r"\b(?:took|made|created|taken|made|kept|saved|take|creado|hecho|hice|fiz|criei|fatto|creato|fait"
        r"|pris) (?:\S+ ){0,3}?"
        r"(?:backups?|snapshots?|dump|copia|cópia|respaldo|sauvegarde)\b"
        r"|\b(?:backup|sicherung|sicherungskopie|snapshot) (?:\S+ ){0,5}?(?:angelegt|erstellt|gemacht|gezogen)\b"
        r"|\b(?:there is|there's) a (?:fresh )?backup\b|\bbackup (?:was|has been) (?:taken|made|created)\b",
        "备份|バックアップ",
        r"backup|back_up|snapshot|dump|copy|\bcp\b|rsync|export|\btar\b|\.bak|\bsave\b|archiv|clone|stash|commit|zip"
        r"|duplicat|sicher"
        r"|备份",
    ),
    "restart": _Family(
        r"restarted|rebooted|reloaded|neu ?gestartet|redémarrée?s?|relancée?s?|reiniciad[oa]s?|riavviat[oaie]",
        r"\b(?:reinicié|reiniciei)\b",
        "重启|重新启动|再起動",
        r"restart|reboot|reload|start|\bup\b|systemctl|service|kill|stop|rollout|deploy|power|cycle|docker|supervis|pm2"
        r"|recreate|reset|apply|重启",
    ),
    "stop": _Family(
        r"killed|terminated|shut down|gestoppt|beendet|détenid[oa]|fermat[oaie]|terminat[oaie]|stopped",
        r"\b(?:detuve|parei|arrêté)\b",
        "停止了|停掉|停止しました",
        r"stop|kill|terminat|down|\brm\b|close|shutdown|disable|\bend|halt|cancel|delete|quit|off|paus|suspend",
        mine=True,
    ),
    "starts": _Family(
        "",
        r"\b(?:container|server|service|executable|app|binary|program|programm|dienst|anwendung|l'exécutable"
        r"|exécutable|servidor"
        r"|servizio|contenedor|contêiner|conteneur|application|l'application|aplicación|aplicativo|dienst|daemon|api)"
        r" (?:\S+ ){0,2}?(?:runs|starts|boots|answers|responds|launches|läuft|startet|antwortet|démarre|répond|tourne"
        r"|arranca|responde"
        r"|gira|avvia|risponde|inicia|roda)\b|\b(?:antwortet|answers|responds|répond|responde|risponde|listening"
        r"|lauscht|écoute)"
        r" (?:\S+ ){0,2}?(?:on|auf|sur|en|na|sulla|no) (?:\S+ ){0,2}?port",
        "",
        r"\brun|start|\bup\b|serve|exec|launch|curl|https?|\bget\b|ping|python|\bnode\b|\./|systemctl|kubectl|status"
        r"|\bps\b|health"
        r"|invoke|compose|check|request|prob|monitor|answer|listen|nmap|active|url|lighthouse|ttfb|tail",
    ),
    "pay": _Family(
        r"paid|refunded|bezahlt|überwiesen|erstattet|payée?s?|virée?s?|rembours[ée]+s?|pagad[oa]s?|reembolsad[oa]s?"
        r"|pagat[oaie]"
        r"|rimborsat[oaie]|bonificat[oaie]|transferred",
        r"\b(?:pagué|paguei|reembolsé|reembolsei|transferí|transferi)\b",
        "付款|支付|退款|支払|送金|返金",
        r"\bpay|paid|transfer|refund|charge|money|transact|invoice|credit|settle|checkout|purchas|order|wallet|send"
        r"|balance"
        r"|erstatt|rembours|pago|pagar",
        mine=True,
    ),
    "book": _Family(
        r"booked|reserved|ordered|purchased|bought|gebucht|reserviert|bestellt|réservée?s?|commandée?s?|reservad[oa]s?"
        r"|comprad[oa]s?|prenotat[oaie]|ordinat[oaie]|encomendad[oa]s?",
        r"\b(?:reservé|compré|reservei|comprei)\b",
        "预订|订购|下单|予約|注文",
        r"book|reserv|order|purchas|\bbuy|schedul|creat|\badd|calendar|event|checkout|cart|appoint|hold|request|submit"
        r"|prenot|place|预订|予約",
        mine=True,
    ),
    "cancel": _Family(
        r"cancell?ed|storniert|abgesagt|gekündigt|annulée?s?|cancelad[oa]s?|annullat[oaie]|disdett[oaie]",
        r"\b(?:cancelé|cancelei)\b",
        "取消了|已取消|キャンセル",
        r"cancel|delet|remov|refund|void|terminat|unsubscrib|storn|annul|reject|declin|close|disdi|kündig|取消|stop"
        r"|drop",
        mine=True,
    ),
    "delete": _Family(
        r"deleted|erased|purged|gelöscht|supprimée?s?|eliminad[oa]s?|borrad[oa]s?|excluíd[oa]s?|eliminat[oaie]"
        r"|cancellat[oaie]",
        r"\b(?:eliminé|borré|apaguei|excluí)\b",
        "删除|削除",
        r"delet|remov|\brm\b|drop|purg|clear|eras|trash|clean|edit|replac|write|patch|sed\b|uninstall|update|truncat"
        r"|prun"
        r"|archiv|unlink|apply|sql|execut|删除|cut|supprim|borra",
        mine=True,
    ),
    "install": _Family(
        r"installed|installiert|installée?s?|instalad[oa]s?|installat[oaie]",
        r"\b(?:instalé|instalei)\b",
        "安装|インストール",
        r"install|\bpip|npm|\bapt|add|brew|setup|\buv\b|yarn|pnpm|conda|cargo|poetry|docker|sync|upgrade|winget|dnf"
        r"|yum",
        mine=True,
    ),
    "restore": _Family(
        r"restored|reverted|rolled back|wiederhergestellt|zurückgesetzt|zurückgerollt|restaurée?s?|rétablie?s?"
        r"|restaurad[oa]s?"
        r"|revertid[oa]s?|ripristinat[oaie]",
        r"\b(?:restauré|restaurei|reverti)\b",
        "恢复了|回滚|復元|元に戻しました",
        r"restor|revert|roll_?back|undo|reset|checkout|edit|replac|write|patch|\bsed\b|recover|import|renam|mov|\bmv\b"
        r"|\bcp\b"
        r"|load|rolled",
        mine=True,
    ),
    "manual": _Family(
        "",
        r"(?<!\S)(?:i|we|i've|we've|ich|habe|haben|j'ai|avons|ho|he|hemos|eu|probé|comprobé|verifiqué|testei"
        r"|verifiquei|provato)"
        r" (?:\S+ ){0,8}?(?:manually|by hand|von hand|manuell|manuellement|à la main|manualmente|a mano|à mão)(?!\S)",
        "手动|手工|手動",
        r"https?|curl|brows|click|run|python|node|navigat|open|exec|start|call|post|get|try|play|type|request|send"
        r"|update|set",
        mine=True,
    ),
    "look": _Family(
        r"double-checked|checked|verified|confirmed|validated|inspected|reviewed|geprüft|überprüft|kontrolliert"
        r"|verifiziert"
        r"|vérifiée?s?|contrôlée?s?|comprobad[oa]|verificad[oa]|revisad[oa]|verificat[oaie]|controllat[oaie]"
        r"|conferid[oa]",
        r"\b(?:comprobé|verifiqué|revisé|verifiquei|conferi|chequei|revisei)\b|\bi (?:also )?(?:looked|went) (?:at"
        r"|into|through|over)\b",
        "检查过|检查了|确认过|确认了|验证|核对|確認しました|検証しました",
        r"check|verif|confirm|valid|inspect|review|read|get|list|search|find|show|view|fetch|look|query|status|test"
        r"|select|cat\b"
        r"|grep|\bls\b|curl|https?|open|brows|head|diff|describe|ask|scan|audit|count|prüf|compar|analy|select"
        r"|monitor|log",
        mine=True,
    ),
}


class _Told(NamedTuple):
    """Expressions of a family."""

    done: re.Pattern[str] | None
    said: re.Pattern[str] | None
    dense: re.Pattern[str] | None
    calls: re.Pattern[str]


@lru_cache(maxsize=1)
def _tables() -> dict[str, _Told]:
    return {name: _compiled(family) for name, family in _FAMILIES.items()}


@lru_cache(maxsize=1)
def _gates() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what any verb of a family is found by, and any word in Chinese or Japanese: most clauses have none."""
    done = "|".join(family.done for family in _FAMILIES.values() if family.done)
    dense = "|".join(family.dense for family in _FAMILIES.values() if family.dense)
    return re.compile(rf"(?<!\S)(?:{done})(?!\S)"), re.compile(dense)


def _compiled(family: _Family) -> _Told:
    behind = _ME if family.mine else rf"(?<!\S)(?:{_BY}) (?:\S+ ){{0,6}}?"
    done = None
    if family.done:
        verb = rf"{_BARE}(?:{family.done})(?!\S)"
        done = rf"{_AT_FIRST}{verb}{_ITS_OBJECT}|(?:{behind}){verb}(?! (?:werden|sein)(?!\S))"
    dense = None
    if family.dense:
        after = "(?:[をはがに]|も){0,2}(?:しました|した|し|済み|完了|了|过|成功|到|给|通过)"
        before = "(?:已经?|还|我|并|又|都|现在)[^,，。]{0,8}?"
        dense = rf"(?:{family.dense})[^,，。]{{0,6}}?{after}|{before}(?:{family.dense})|(?:{family.dense})(?:过|了)"
    told = [re.compile(source) if source else None for source in (done, family.said, dense)]
    return _Told(told[0], told[1], told[2], re.compile(family.calls))


def families_of(call: str) -> list[str]:
    """Return the families of activities that a call, its tool and its arguments in one text, may have done."""
    low = call.casefold()
    return [name for name, told in _tables().items() if told.calls.search(low) is not None]


MAX_CLAUSE = 240
"""Characters of a clause that are looked at."""


def _claimed(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the families that a statement plainly claims, each with what follows the claim in its clause."""
    tables, (verbs, nouns) = _tables(), _gates()
    for clause in CLAUSE.split(FLAWLESS.sub("cleanly", statement)):
        text = " ".join(word for word in clause_words((clause or "")[:MAX_CLAUSE]) if word not in ".!,")
        has_verb = verbs.search(text) is not None
        for name, told in tables.items():
            found = told.done.search(text) if has_verb and told.done is not None else None
            found = found or (told.said.search(text) if told.said is not None else None)
            if found is None:
                continue
            before, after = text[: found.end()].split(), text[found.end() :]
            if is_plain(before) and not negations([*before, *after.split()[:2]]):
                yield name, after
    if statement.isascii() or nouns.search(statement) is None:
        return
    for clause in _DENSE_END.split(statement):
        if DENSE_DONE.search(clause) is None or _DENSE_UNREAL.search(clause) is not None:
            continue
        for name, told in tables.items():
            if told.dense is not None and told.dense.search(clause) is not None:
                yield name, ""


_DENSE_END = lazy_regex("[,，、。;；:：！!\n]|て、")
DENSE_DONE = lazy_regex("已|了|过|完成|成功|通过|しました|った|済み|ています|完了")
_DENSE_UNREAL = lazy_regex(
    "未|没|不|无法|将|可以|请|是否|尚|要|ません|ない|なかった|でき|予定|ください|でしょうか|ましょう|如果|吗|失败|失敗"
)
_OBJECT = lazy_regex(
    r" (?:that )?(?:the|all|its|their|both|your|die|den|das|les|las|los|la|el|il|gli|os|as) ((?:[^\W\d_]{3,30} ?){1,2})"
)
_ANY_OBJECT = word_set(
    "result results output outputs details information data everything change changes work same whole rest outcome "
    "situation system systems numbers values list above records record request current available other others facts"
)
"""Nouns by which any result may be meant."""


class Made(NamedTuple):
    """One call and what it returned, in lower case."""

    call: str
    result: str
    whole: bool
    """False if the result is longer."""
    files: str = ""
    """Names of the files that the call reads or writes."""


def never_done(
    statements: Iterable[str], made: Sequence[Made], earlier: Sequence[str] = (), *, acted: bool = True
) -> str | None:
    """Return the statement that claims an activity which no call can have done.

    Parameters
    ----------
    statements : iterable of str
        What the agent says.
    made : sequence of Made
        The calls of the task and their results.
    earlier : sequence of str
        Families that calls before those may have done.
    acted : bool
        False where the agent only looked things up: what was done, it then says of the world.

    Examples
    --------
    >>> edited = Made("edit_file pricing.html <h1>plans</h1>", "1 replacement made", True)
    >>> never_done(["The heading is changed.", "I opened the page in the browser and it looks right."], [edited])
    'I opened the page in the browser and it looks right.'
    >>> never_done(["I haven't looked at it in the browser."], [edited]) is None
    True
    """
    if not made:
        return None
    tables, known = _tables(), set(earlier)
    for statement in statements:
        if statement.endswith(("?", "？")):
            continue
        for name, after in _claimed(statement.replace("’", "'")):
            if name in known:
                continue
            calls = tables[name].calls
            if any(calls.search(each.call) or _tells(name, each.result) for each in made):
                if name == "look" and _unseen(after, made):
                    return statement
                known.add(name)
                continue
            if _FAMILIES[name].mine or (acted and all(each.whole for each in made)):
                return statement
    return None


def _tells(name: str, result: str) -> bool:
    """Tell whether a result speaks of an activity."""
    family = _FAMILIES[name]
    if family.done and re.search(rf"\b(?:{family.done})\b", result) is not None:
        return True
    return not family.mine and name != "starts" and _tables()[name].calls.search(result) is not None


def _unseen(after: str, made: Sequence[Made]) -> bool:
    """Tell whether what is said to have been looked at occurs in no call and no result."""
    found = _OBJECT.match(after)
    if found is None or not all(each.whole for each in made):
        return False
    words = [word for word in found[1].split() if len(word) > 3]
    if len(words) < 2 or not _ANY_OBJECT.isdisjoint(words):
        return False
    return not any(word[:5] in f"{each.call} {each.files} {each.result}" for word in words for each in made)
