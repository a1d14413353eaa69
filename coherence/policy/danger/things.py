"""Things that others rely on, and what protects them, by the words for them: in operations, addresses and code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.danger import Command, ToolUse
from coherence.policy.danger.paths import is_disposable


def singular(word: str) -> str:
    """Return a word without the ending of a plural.

    Examples
    --------
    >>> [singular(word) for word in ("buckets", "dns", "policies", "indices")]
    ['bucket', 'dns', 'policy', 'index']
    """
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("indices"):
        return word[:-4] + "ex"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _singulars(words: str) -> frozenset[str]:
    return frozenset(map(singular, words.split()))


STORES = _singulars(
    "database db schema disk drive cluster repository repo namespace bucket project keyspace zone dns domain backup "
    "snapshot instance volume droplet server vm stack organization tenant workspace channel queue vault datastore "
    "index collection"
)
"""Things that others rely on, whatever tool or address names them."""

SERVICES = STORES | _singulars(
    "table system filesystem vpc group function topic stream user role pool distribution environment app application "
    "site account key kms secret keyvault cosmosdb aks storage sql redis d1 r2 kv firestore share sink service "
    "recovery trail nodegroup fleet org gateway api webapp linode vhost hub registry plan flow dataset "
    "kubernetes k8s recordset set customer pg subvolume"
)
"""Things that the operations of a cloud's program name."""

DELETES = word_set(
    "delete deletion destroy terminate purge drop wipe erase remove rm rb del undefine unpublish forget truncate "
    "deletelocalsnapshots"
)
_WORD = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d?|\d+[a-z]*")
_TOKEN = lazy_regex(r"[A-Za-z0-9]+")


def parts(text: str) -> list[str]:
    """Return the words of a name, joined ones whole and cut.

    Examples
    --------
    >>> parts("delete-db-snapshot"), parts("sites:delete"), parts("WinDefend")
    (['delete', 'db', 'snapshot'], ['sites', 'delete'], ['windefend', 'win', 'defend'])
    """
    found: list[str] = []
    for token in _TOKEN.findall(text[:200]):
        found.append(token.lower())
        cut = _WORD.findall(token)
        found += [word.lower() for word in cut] if len(cut) > 1 else []
    return found


_WHOLE = word_set(
    "restic borg velero snapper barman wal-g kopia pgbackrest tmutil vercel railway npm qm virsh rabbitmqctl bq influx "
    "rclone"
)
"""Programs that delete nothing but what others rely on."""
_TRIFLES = word_set("tag item message object cache issue dependency package entry permission")
_AFTER = word_set("backup snapshot cluster database project")
"""Things that some programs name behind the verb."""
_KEEPS = ("--keep", "-k", "-d", "--max-age", "--older-than", "--retain")
_REHEARSE = word_set("restic borg rclone btrfs")
"""Programs that only say what they would do where they are given ``-n``."""
_OPERATION = 5  # operands among which an operation stands


def only_shows(program: str, args: tuple[str, ...]) -> bool:
    """Return whether a command prints its help, or what it would do."""
    return args[-1:] in (("help",), ("-h",)) or args[:1] == ("help",) or ("-n" in args and program in _REHEARSE)


def taken_away(command: Command) -> list[str]:
    """Return what a program of a cloud, a service or of backups deletes; ``?`` where the command does not name it.

    If another command prints the names, trifles count too.

    Examples
    --------
    >>> words = ("dns", "managed-zones", "delete", "main")
    >>> taken_away(Command(program="gcloud", operands=words, args=words))
    ['main']
    >>> words = ("ec2", "delete-tags")
    >>> taken_away(Command(program="aws", operands=words, args=words))
    []
    """
    program, operands, args = command.program, command.operands, command.args
    each = "$(" in command.stdin and not any("://" in arg for arg in args)
    if only_shows(program, args) or is_disposable(" ".join(args)):
        return []
    said: list[str] = []
    for at, operand in enumerate(operands[:_OPERATION]):
        words = parts(operand)
        said += words
        if DELETES.isdisjoint(words) and not operand.endswith(":reset"):
            continue
        things = {singular(word) for word in said} | ({"bucket"} if "rb" in words else set())
        if program != "aws":
            things |= {singular(word) for word in parts("".join(operands[at + 1 : at + 2]))} & _AFTER
        keeps = any(arg.startswith(_KEEPS) for arg in args) and "0" not in args  # "--keep-last 0" keeps nothing
        if keeps or (program == "npm" and "unpublish" not in words):
            return []
        if not each and ((program not in _WHOLE and SERVICES.isdisjoint(things)) or not things.isdisjoint(_TRIFLES)):
            return []
        named = operands[at + 1 :]
        if program == "aws" or not named:
            flags = {"--name", "--id", "-n"}
            named = tuple(
                value
                for flag, value in pairwise(args)
                if value[:1] != "-" and (flag in flags or (program == "aws" and flag.startswith("--")))
            )
        return [named[0] if named and not named[0].startswith(("$", "{")) else "?"]
    return []


_CLIENT = ("boto3", "aws-sdk", "googleapiclient", "google.cloud", "azure", "kubernetes", "digitalocean", "openstack")
_CALLED = lazy_regex(r"(?:\.|\bnew )((?:delete|terminate|destroy|purge|Delete|Terminate)_?\w{0,40}) ?\(")


def taken_by_code(code: str) -> Iterator[str]:
    """Yield ``?`` for each thing that code deletes by the client of a cloud.

    Examples
    --------
    >>> call = "delete_db_instance(DBInstanceIdentifier='p')"
    >>> list(taken_by_code(f"boto3.client('rds').{call}")), list(taken_by_code(f"xs.{call}"))
    (['?'], [])
    """
    low = code.casefold()
    clients = any(name in low for name in _CLIENT)
    if clients or "command(" in low:
        for called in islice(_CALLED.finditer(code), 100):
            words = {singular(word) for word in parts(called[1])}
            every = len(words) == 1 and code[: called.start()].endswith(".all()")
            if (clients or "command" in words) and (every or words & (STORES | {"table", "function", "stack"})):
                yield "?"


_STORE_HOST = lazy_regex(
    r":(?:9200|5984|6333|8983|8500)\b|elastic|opensearch|couch|qdrant|weaviate|solr|chroma|milvus", re.IGNORECASE
)
_MAIN = lazy_regex(r"(?:refs/heads|branches)/(?:main|master|trunk|develop|production|prod|stable)/?$")
_OWN_HOST = lazy_regex(r"(?:https?://)?(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?=[:/])")
_HELD = STORES | _singulars(
    "apps orgs organizations customers teams sites environments functions services accounts stores lists"
)
COLLECTIONS = STORES | _singulars(
    "users customers orders accounts contacts invoices records documents products articles posts pages members "
    "employees patients payments transactions leads deals tickets files backups events apps environments sites teams"
)
_ALL = lazy_regex(r"(?:^|[&?])(?:all|force|confirm|tag_name|prefix|recurse)\b|=(?:gte?|neq|not|like|ilike)\.")
_ONE = lazy_regex(r"[^=&]*(?:id|name|key|rev|eq\.)")


def wiped_over_http(url: str, *, each: bool = False) -> str:
    """Return the store or collection that a ``DELETE`` of an address takes whole; empty for a single thing in it.

    With ``each`` the address stands in a loop, and a variable at its end for each thing.

    Examples
    --------
    >>> [wiped_over_http(f"https://a.example/{path}") for path in ("v1/customers", "v1/articles/4", "zones/4", "x*")]
    ['customers', '', '4', 'x*']
    """
    if len(url) > 2_000:
        return ""
    plain, _, query = url.strip("\"'").partition("?")
    host, _, path = plain.partition("://")[2].partition("/") if "://" in plain else plain.partition("/")
    names = [part for part in path.split("/") if part]
    if not names:
        return "/" if _STORE_HOST.search(host) is not None else ""
    if names[-1].startswith(("$", "{")) and each and len(names) > 1:
        names.pop()
    last = names[-1]
    if _MAIN.search(path) is not None or last == "_all" or last.endswith("*"):
        return last
    if len(names) == 1 and _STORE_HOST.search(host) is not None:
        return "" if is_disposable(last) else last
    if (len(names) > 2 and names[-3] == "repos") or last == "protection":
        return last
    if _OWN_HOST.match(plain) is not None or is_disposable(host, last):
        return ""
    if len(names) > 1 and not _HELD.isdisjoint(map(singular, parts(names[-2]))):
        return "?" if "record" in map(singular, parts(names[-2])) else last
    deleted, beside = set(parts(last)), parts("".join(names[-2:-1]))
    if not DELETES.isdisjoint(deleted) and not {"all", "everything", *STORES}.isdisjoint({*deleted, *beside}):
        return last
    whole = singular(last.casefold()) in COLLECTIONS and singular(last) != last
    return last if whole and (not query or _ALL.search(query) or not _ONE.match(query)) else ""


_BY_QUERY = lazy_regex(r"_delete_by_query\b|<delete>")
_EVERYTHING = lazy_regex(r"match_all|<query>\*:\*</query>|\"q(?:uery)?\":\s?\"\*(?::\*)?\"")


def wipes_by_query(texts: list[str]) -> bool:
    """Return whether a request deletes all documents of a search store by a query."""
    text = "\n".join(each[:2_000] for each in texts[:60])
    return _BY_QUERY.search(text) is not None and _EVERYTHING.search(text) is not None


def over_http(command: Command) -> list[str]:
    """Return the store or collection that an HTTP client deletes."""
    args = command.args
    url = next((arg for arg in args if "://" in arg or (":" in arg and "/" in arg)), "")
    if any(arg.casefold().removeprefix("-x").rpartition("=")[2] == "delete" for arg in args[:60]):
        found = wiped_over_http(url, each="$(" in command.stdin or "$(" in command.reads)
        return [found] if found else []
    return ["?"] if wipes_by_query([*args, command.stdin[:2_000]]) else []


_GUARDS = word_set(
    "firewall firewalld advfirewall netfirewallprofile ufw nftables iptables ruleset antivirus defender windefend "
    "mppreference antispyware realtimemonitoring clamav clamd sophos crowdstrike falcon sentinelone "
    "auditd audit auditing auditpol eventlog wevtutil rsyslog syslog journald cloudtrail trail guardduty configservice "
    "securityhub fail2ban sshguard crowdsec ossec wazuh osquery osqueryd snort suricata apparmor selinux bitlocker "
    "computerrestore recoveryenabled enablelua mfa 2fa protection lock versioning encryption csrutil spctl "
    "fdesetup socketfilterfw tmutil networkpolicy networkpolicies validatingwebhookconfiguration "
    "validatingwebhookconfigurations podsecuritypolicy waf nsg ips ids edr siem shadowcopy shadows sinks backup "
    "backups restic borgmatic snapper twofactor authenticator computerrestorepoint mpssvc "
    "pointintimerecoveryenabled netfirewallrule wuauserv falco factor recorder timemachine alf livepatch pgaudit"
)
"""Names, in programs, services and operations, of what watches over something or can bring it back."""
_OFF = DELETES | word_set(
    "disable disabled stop off no false 0 suspend suspended deactivate mask unload flush reset clear cl uninstall "
    "teardown shutdown exclusion kill pkill killall taskkill"
)
_PRODUCTS = word_set(
    "falco wazuh falcon crowdstrike sophos sentinelone osquery auditd fail2ban clamav clamd crowdsec ossec "
    "suricata snort livepatch tmutil"
)
"""Names of programs that watch a system."""
_SAID = {"kubectl": 2, "oc": 2, "aws": 2, "gcloud": 4, "az": 4, "helm": 1, "docker": 1}
"""Programs, and how many operands say what is done; names follow them."""


def _is_off(words: Iterable[str]) -> bool:
    """Return whether words name something that protects, and that it is switched off."""
    found = set(words)
    return not _GUARDS.isdisjoint(found) and (
        not _OFF.isdisjoint(found) or any(word.startswith(("disable", "exclusion")) for word in found)
    )


def unguards(command: Command) -> bool:
    """Return whether a command switches off what protects or watches something.

    Examples
    --------
    >>> unguards(Command(program="systemctl", args=("stop", "auditd")))
    True
    >>> unguards(Command(program="systemctl", args=("stop", "nginx")))
    False
    """
    program = command.program
    args = tuple(arg for arg in command.args[:40] if len(arg) < 200)
    if is_disposable(" ".join(args)) or only_shows(program, args):
        return False
    operands = [arg for arg in args if arg[:1] != "-"]
    said: Iterable[str] = args
    if program in _SAID:
        said = [*operands[: _SAID[program]], *(arg for arg in args if "=" in arg or arg.startswith("--disable"))]
    words = {word for each in said if not each.startswith("--no") for word in parts(each)}
    words |= _PRODUCTS.intersection(word for each in operands for word in parts(each))
    return _is_off(words.union(parts(program)))


_HOOK = "coherence/integrations/daemon/hook.py"
"""Script by which a client reports events; an agent would report what nobody did."""
_UNBLOCK = "/coherence:unblock"
"""Prompt with which a person ends a block in the client."""
_PLUGIN_OFF = word_set("uninstall remove rm disable")


def unwatches(command: Command) -> bool:
    """Return whether a command ends a block of this package, or stops it from watching.

    Examples
    --------
    >>> unwatches(Command(program="coherence", args=("unblock",)))
    True
    >>> unwatches(Command(program="claude", args=("--continue", "-p", "/coherence:unblock")))
    True
    >>> unwatches(Command(program="coherence", args=("status",)))
    False
    """
    args = command.args[:40]
    if command.program == "claude":
        plugin = args[:1] in (("plugin",), ("plugins",)) and any(arg.startswith("coherence") for arg in args)
        if plugin and not _PLUGIN_OFF.isdisjoint(args):
            return True
        return any(said.lstrip().startswith(_UNBLOCK) for said in (*args, command.stdin))
    if any(arg.endswith(_HOOK) for arg in args):
        return True
    if command.program != "coherence":
        if "-m" not in args or args[args.index("-m") + 1 :][:1] != ("coherence",):
            return False
        args = args[args.index("coherence") + 1 :]
    operands = [arg for arg in args if arg[:1] != "-"]
    removes = operands[:1] == ["init"] and ("--remove" in args or "--observe" in args)
    return removes or operands[:1] in (["unblock"], ["purge"]) or operands[:2] == ["daemon", "stop"]


_STATES = word_set("enabled enable active state status enforced protected on value setting action")
_NO = word_set("false off disabled 0 no inactive disable")
_FLAGS = _GUARDS | {"retention", "enforce", "required"}
_CHANGES = DELETES | word_set(
    "add create authorize open allow reset sql query put patch disable stop turn deactivate suspend set update "
    "configure change toggle http request fetch"
)


def call_unguards(call: ToolUse) -> bool:
    """Return whether a tool switches off what protects or watches something."""
    if any(value.lstrip().startswith(_UNBLOCK) for value in call.values(("prompt", "message"))):
        return True  # a prompt that the client enters later in the person's place
    actions = call.values(("action", "operation", "op", "command", "verb"))
    words = set(call.words).union(*(parts(value) for value in actions if len(value) <= 60))
    if _CHANGES.isdisjoint(words):
        return False
    named = {part for value in call.values(("name", "service", "feature", "setting", "key")) for part in parts(value)}
    if any(value.casefold() in ("put", "patch", "post") for value in call.values(("method", "http_method", "verb"))):
        for value in call.values(("url", "uri", "endpoint", "path")):
            named.update(parts(value.partition("://")[2].partition("/")[2]))
    off = any(value.casefold() in _NO for value in call.values(_STATES))
    for key, value in call.pairs[:200]:
        if value.casefold() in _NO and not _FLAGS.isdisjoint(parts(key)):
            named.update(parts(key))
            off = True
    joined = map("".join, pairwise(call.words))
    return _is_off({*words, *joined, *named, *(("off",) if off else ())})
