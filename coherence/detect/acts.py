"""Families of acts: what a word of a request, of a tool's name or of a command does. One table for all of them."""

from __future__ import annotations

from functools import lru_cache

from coherence.core.words import word_set

_STEMS: dict[str, str] = {
    "change": "chang modif touch edit alter updat rewrit rewrot rewritt refactor renam mov mess tamper overwrit replac "
    "patch adjust tweak set config rais lower increas decreas reduc reformat format reset migrat convert switch turn "
    "reschedul rescale scal resiz put toggl amend revis correct tinker rework reorder chmod chown disabl "
    "deactivat mut suspend paus block revok lock unlock enabl dim warm cool heat deaktivier désactiv desactiv "
    "disattiv turn sed tee mv break "
    "änder veränder bearbeit anpass anfass anrühr rühr angefass angerühr geänder verschieb ersetz überschreib verschob "
    "schreib geschrieb touch chang toqu toc cambi modifiqu modific mueva mov reemplaz edit alterar mude toca mexa "
    "tocc tocch spost sostitu schalt stell altéra raise raises apply alters",
    "remove": "remov delet drop dropp eras purg truncat destroy wip unlink rm rmi rmdir dropdb discard trash clear "
    "uninstall prune lösch gelösch entfern suppri supprim effac enlèv enlev borr elimin elimín quit rimuov cancellar "
    "apag remov exclu throw",
    "add": "add includ introduc insert implement creat append mak mad attach mkdir touch füg ergänz bau anleg anzuleg "
    "hinzugefüg eingefüg eingebau ajout inclu inclus añad agreg agregu aggiung crea cré adicion leg",
    "write": "writ wrot written sav guard enregistr ersetz overwrit put speicher",
    "use": "use using used import employ requir verwend benutz nutz utilis utilic utiliz usar rely call invoke adopt "
    "duz tutoy tute",
    "mention": "mention say sai reveal disclos tell told nam stat expos leak print show list quot cit giv includ "
    "erwähn nenn verrat verrät zeig sag mentionn menion mencion révél dire dis dit dir revel diga "
    "digas digan promis zusag "
    "zugesag prometa prom refer divulg discuss talk speak hint recommend suggest output display contain "
    "shar partag compart teil",
    "run": "run execut start launch trigger spin boot esegu ejecut exécut lanc starten starte",
    "send": "send sent sends writ email e-mail mail contact messag notif notify call text sms attach invit shar "
    "forward repl reply answer ping reach cc bcc contact dm post tweet phone respond schreib schick "
    "send sende verschick kontaktier anschreib informier weiterleit einlad lade anruf écri envoi "
    "envoy transmet contact invit partag prévien écriv "
    "escrib envi enví mand invia inviar scriv invit contatt convid avis escrev compart mail event inform partir",
    "publish": "tag push deploy publish merg releas upload twin promot ship roll rollout veröffentlich deploi déploi "
    "pouss public publi subas sub desplieg pubblic post helm",
    "commit": "commit committ committe",
    "install": "install pull installier instal aggiung upgrade",
    "buy": "buy bought purchas order checkout bestell kauf achet achèt command compr pid acquist encomend subscrib",
    "book": "book reserv buch réserv prenot hold",
    "pay": "pay paid spend spent charg refund transfer wire wiring withdraw remit donat bezahl zahl überweis erstatt "
    "gutschreib pay vir rembours pag transfier transfir reembols gast bonific credit compensat invest sell trade money",
    "cancel": "cancel cancell stornier absag annul annull cancele",
    "handover": "escalat handoff handover transfer forward",
    "restart": "restart reboot stop kill shut shutdown halt terminat reload neustart redémarr arrêt reinici par deten "
    "riavvi bounce interrupt",
    "close": "clos resolv archiv schließ ferm cierr cerr chiud merge",
    "open": "open unlock öffn ouvr abr apr entsperr disarm",
    "read": "read open look view access download export lies les lis lir lees lea legg cop copy",
    "online": "browse curl wget fetch visit google",
    "invite": "invit einlad convid attend",
    "log": "log logg protokollier",
}
_ENDINGS = word_set(
    "e s es ed ing d n en t et te ten st est ez ir ar er a as an o is it é ée és ado ada ido ida ato ata are ire ere "
    "ando endo ung ert iert ieren iere ier amos ent end uen ue ues re y ies ied ying ting ped ping ged ging ned ning "
    "ted red ring led ling med ming bed bing im ie ies ier iez iert iere emos ons es-tu zen t'en u ue"
) | {""}
FAMILIES: dict[str, set[str]] = {}
for _family, _stems in _STEMS.items():
    for _stem in _stems.split():
        FAMILIES.setdefault(_stem, set()).add(_family)

SQL = {
    "delete": "remove",
    "drop": "remove",
    "truncate": "remove",
    "update": "change",
    "alter": "change",
    "insert": "add",
    "create": "add",
    "grant": "change",
}
HTTP = {"delete": "remove", "put": "change", "patch": "change", "post": "send"}

READING = word_set(
    "get list search find read check show view fetch lookup query describe calculate grep cat ls head tail less du df "
    "which echo printf wc diff stat tree rg ag look browse count compare think suche lire leer consultar lister "
    "chercher buscar lies lesen zeige status summarize git-log retrieve inspect explain verify validate analyze "
    "monitor simulate ask watch cut sort uniq awk ps read_file load preview estimate quote kb hr know journalctl"
)
"""First words of tools and programs that change nothing."""

NOUNS: dict[str, str] = {
    word: act
    for act, words in {
        "install": "package packages dependency dependencies library libraries Abhängigkeit Abhängigkeiten dépendance "
        "dépendances dependencia dependencias Paket Pakete Bibliothek Bibliotheken librairie librairies paquete "
        "paquetes paquet paquets dipendenza dipendenze npm pypi gem gems plugin plugins sdk framework frameworks 依赖",
        "publish": "release releases deployment deployments upload uploads push pushes rollout rollouts deploys",
        "commit": "commit commits",
        "pay": "payment payments refund refunds transfer transfers transaction transactions Zahlung Zahlungen "
        "Erstattung Erstattungen devolución devolucion devoluciones deposit deposits paiement paiements pago "
        "pagos reembolso reembolsos pagamento pagamenti spending "
        "discount discounts voucher vouchers compensation credit credits Gutschrift Gutschriften Rabatt Rabatte",
        "send": "email emails mail mails message messages e-mail e-mails sms notification notifications courriel "
        "courriels correo correos mensaje mensajes Nachricht Nachrichten invitation invitations "
        "invite invites newsletter",
        "cancel": "cancellation cancellations Stornierung annulation",
        "buy": "purchase purchases order orders Bestellung Bestellungen Einkäufe achat achats compra compras acquisto",
        "book": "booking bookings reservation reservations Buchung Buchungen réservation reserva reservas",
        "handover": "handover handovers escalation escalations",
        "restart": "restart restarts reboot reboots downtime Neustart redémarrage",
        "change": "change changes edit edits modification modifications Änderung Änderungen changement changements "
        "cambio cambios modifica modifiche rename renames writes",
        "remove": "deletion deletions removal Löschung Löschungen suppression",
        "log": "log logs logging Logging Protokollierung",
        "online": "internet web network online Internet Netz réseau red rete",
        "create": "file files",
    }.items()
    for word in words.split()
}
"""Noun -> the act that it names: "no refunds", "issue no refunds", "no dependency"."""


@lru_cache(maxsize=8_000)
def acts_of(word: str) -> frozenset[str]:
    """Return the families of acts that a word may be of, whatever its form.

    Examples
    --------
    >>> sorted(acts_of("deleting")), sorted(acts_of("löscht")), sorted(acts_of("envíes")), sorted(acts_of("table"))
    (['remove'], ['remove'], ['send'], [])
    """
    word = word.casefold()
    found: set[str] = set()
    for length in range(min(len(word), 16), max(1, len(word) - 6), -1):
        if word[length:] in _ENDINGS:
            found |= FAMILIES.get(word[:length], set())
    return frozenset(found)
