"""The words by which a task forbids something and an answer says that it was done: English, German, French, Spanish."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


ACTS: dict[str, tuple[str, str]] = {
    "add": (
        "add adding include including introduce introducing insert inserting implement implementing create creating "
        "write writing füge fügt füg ergänze ergänzt baue bau ajoute ajoutez ajouter inclus añadas añada añadir "
        "agregues agregue agregar incluyas incluir",
        "added included introduced inserted implemented created wrote written adds includes hinzugefügt eingefügt "
        "ergänzt eingebaut ajouté ajoutée inclus añadido añadí agregado agregué incluido",
    ),
    "change": (
        "change changing modify modifying touch touching edit editing alter altering update updating rewrite rewriting "
        "refactor refactoring rename renaming move moving break breaking ändere ändert ändern verändere bearbeite "
        "modifie modifiez modifier change changez changer touche touchez modifiques modifique modificar cambies cambie "
        "cambiar toques toque tocar",
        "changed modified touched edited altered updated rewrote rewritten refactored renamed moved replaced removed "
        "deleted geändert verändert bearbeitet angepasst umbenannt modifié modifiée changé modificado modifiqué "
        "cambiado cambié",
    ),
    "remove": (
        "remove removing delete deleting drop dropping erase erasing lösche löscht löschen entferne entfernt entfernen "
        "supprime supprimez supprimer enlève enlevez borres borre borrar elimines elimine eliminar",
        "removed deleted dropped erased gelöscht entfernt supprimé supprimée enlevé borrado borré eliminado eliminé",
    ),
    "use": (
        "use using import importing employ employing verwende verwendet verwenden benutze benutzen nutze utilise "
        "utilisez utiliser uses usar utilices utilizar",
        "used using uses imported employed verwendet benutzt genutzt utilisé utilisée usado usé utilizado",
    ),
    "mention": ("mention mentioning say saying erwähne erwähnt mentionne mentionnez menciones mencione", ""),
    "run": ("run running execute executing start starting launch launching", "ran executed started launched"),
    "send": (
        "send sending email emailing contact contacting message messaging call calling share sharing",
        "sent emailed contacted messaged called shared",
    ),
    "publish": (
        "push pushing commit committing deploy deploying publish publishing merge merging release releasing install "
        "installing",
        "pushed committed deployed published merged released installed",
    ),
    "buy": (
        "buy buying pay paying book booking order ordering cancel cancelling canceling",
        "bought paid booked ordered cancelled canceled",
    ),
}
"""Act: how a task names it, how an answer says that it was done. An act without done words is one of wording."""

NAMED = {word: act for act, (named, _) in ACTS.items() for word in named.split()}
DONE = {act: _set(done) for act, (_, done) in ACTS.items()} | {"have": _set(f"{ACTS['add'][1]} {ACTS['use'][1]}")}
"""``have`` is the act of "without X", "no X" and "avoid X"."""

SKIPPED = _set(
    "the a an any its his her their this that these those my our your new extra more other additional further some "
    "all no of der die das den dem ein eine einen keine kein keinen le la les des de d l un une du aucun aucune el los "
    "las una ningún ninguna"
)
"""Words before or inside what is forbidden that say nothing about it."""

BOUNDS = _set(
    "to in into from for with on at by as so because while but just only when if since than then where which who that "
    "please instead anywhere yet again either it them was were is are has have had been also too now everywhere though "
    "zu in im aus für mit auf bei weil damit aber hinzu ein nicht dans pour avec sur mais en para con pero al "
    "del bitte por , and or oder und et y"
)
"""Words that end what is forbidden or what was done."""

TAILS = _set("statement call code support line message function file block")
"""Nouns that may follow what is forbidden without making it something else: "logging statements"."""

NEGATIONS = _set(
    "no not never none nothing without neither nor cannot avoid avoided avoiding refrained kept unchanged untouched "
    "instead rather reverted undid kein keine keinen keinerlei nicht nie ohne ne n pas aucun aucune jamais sans sin "
    "ningún ninguna nunca"
)

UNREAL = _set(
    "would could should might may can will if whether unless want wanted shall must let asked told requested würde "
    "könnte falls soll voudrais pourrais si podría quieres"
)
"""Words that say that a thing was not done, only wished, asked for or possible."""

ACTORS = _set("i we i've we've ive j'ai he have done and also then now just already additionally finally ,")
"""Words that may stand right before what the answer says it did."""

PASSIVES = _set("was were is has have wurde wurden")
"""Words between what was done to and the act: "logging was added"."""
