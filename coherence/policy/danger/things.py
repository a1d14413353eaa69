"""Words for what others rely on, and for what protects it: they stand in names of programs, tools and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice, pairwise

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.roots import is_disposable


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
"""Things of which nobody wants one deleted unasked, whatever tool or address names them."""

SERVICES = STORES | _singulars(
    "table system filesystem vpc group function topic stream user role pool distribution environment app application "
    "site account key kms secret keyvault cosmosdb aks storage sql redis d1 r2 kv firestore share sink service "
    "recovery trail nodegroup fleet org gateway api webapp linode vhost hub registry plan flow dataset "
    "kubernetes k8s recordset set customer pg subvolume"
)
"""Things that the operations of a cloud's program name."""

GUARDS = word_set(
    "firewall firewalld advfirewall netfirewallprofile ufw nftables iptables ruleset antivirus defender windefend "
    "mppreference antispyware realtimemonitoring clamav clamd sophos crowdstrike falcon sentinelone "
    "auditd audit auditing auditpol eventlog wevtutil rsyslog syslog journald cloudtrail trail guardduty configservice "
    "securityhub fail2ban sshguard crowdsec ossec wazuh osquery osqueryd snort suricata apparmor selinux bitlocker "
    "computerrestore recoveryenabled enablelua mfa 2fa protection lock versioning encryption csrutil spctl "
    "fdesetup socketfilterfw tmutil networkpolicy networkpolicies validatingwebhookconfiguration "
    "validatingwebhookconfigurations podsecuritypolicy waf nsg ips ids edr siem shadowcopy shadows sinks backup "
    "backups restic borgmatic snapper twofactor authenticator computerrestorepoint mpssvc "
    "pointintimerecoveryenabled netfirewallrule wuauserv falco factor recorder timemachine alf livepatch "
    "pgaudit"
)
"""Names, in programs, services and operations, of what watches over something or can bring it back."""

DELETES = word_set(
    "delete deletion destroy terminate purge drop wipe erase remove rm rb del undefine unpublish forget truncate "
    "deletelocalsnapshots"
)
OFF = DELETES | word_set(
    "disable disabled stop off no false 0 suspend suspended deactivate mask unload flush reset clear cl uninstall "
    "teardown shutdown exclusion kill pkill killall taskkill purge"
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


_PROGRAMS = (
    "aws gcloud az doctl heroku fly flyctl supabase railway firebase linode-cli hcloud vercel netlify neonctl turso "
    "atlas wrangler pscale openstack oci ibmcloud scw exo npm pnpm yarn glab gh vault consul nomad rabbitmqctl "
    "rabbitmqadmin virsh qm sfdx sf stripe auth0 okta restic borg velero snapper btrfs barman wal-g kopia pgbackrest "
    "rclone ldapdelete tmutil bq govc kops influx mc prlctl vboxmanage cloudflared flarectl render upsun "
    "platform cf kn argocd"
)
_WHOLE = word_set(
    "restic borg velero snapper barman wal-g kopia pgbackrest ldapdelete tmutil vercel railway npm qm virsh "
    "rabbitmqctl bq influx "
    "rclone"
)
"""Programs all of whose deletions are of what somebody relies on."""

_TAKEN: dict[str, tuple[str, ...]] = {
    "timeshift": ("--delete-all",),
    "duplicity": ("remove-all-but-n-full 0",),
    "etcdctl": ("del --prefix", "del --from-key"),
    "consul": ("kv delete -recurse",),
    "vault": ("secrets disable",),
    "zfs": ("destroy -r",),
    **dict.fromkeys(("kafka-topics", "kafka-topics.sh"), ("--delete",)),
    "nomad": ("stop -purge",),
    "cloud-nuke": ("",),
    "aws-nuke": ("--no-dry-run",),
    "kubeadm": ("reset",),
    "k3s-uninstall.sh": ("",),
    "podman": ("system reset",),
    "docker": ("swarm leave --force",),
    "rndc": ("delzone",),
    "pdnsutil": ("delete-zone",),
    "samba-tool": ("dns zonedelete",),
    "kubectl": ("scale --all --replicas=0",),
}
"""Further ways to take something away: words that must all stand among a program's arguments."""
_OWN = frozenset(_PROGRAMS.split())
SERVICE_PROGRAMS = (*_PROGRAMS.split(), *_TAKEN, "remove-*")
"""Programs of clouds, services and backups."""


def _says(phrases: tuple[str, ...], args: Iterable[str]) -> bool:
    low = {arg.casefold() for arg in args}
    return any(low.issuperset(phrase.split()) for phrase in phrases)


_KEEPS = ("--keep", "-k", "-d", "--max-age", "--older-than", "--retain")
_DRY_N = frozenset({"restic", "borg", "rclone", "btrfs", "ldapdelete"})
_TRIFLES = word_set("tag item message object cache issue dependency package entry permission")
_AFTER = frozenset({"backup", "snapshot", "cluster", "database", "project"})
"""Things that some programs name behind the verb."""
_AT = 5  # operands among which an operation stands


def _only_tells(program: str, args: tuple[str, ...]) -> bool:
    """Return whether a command prints its help, or what it would do."""
    return args[-1:] in (("help",), ("-h",)) or args[:1] == ("help",) or ("-n" in args and program in _DRY_N)


def taken_away(program: str, operands: tuple[str, ...], args: tuple[str, ...], *, each: bool = False) -> list[str]:
    """Return what a program of a cloud, a service or of backups deletes; ``?`` where the command does not name it.

    Where it does so with ``each`` of a list, trifles count too.

    Examples
    --------
    >>> taken_away("gcloud", ("dns", "managed-zones", "delete", "main"), ("dns", "managed-zones", "delete", "main"))
    ['main']
    >>> taken_away("aws", ("ec2", "delete-tags"), ("ec2", "delete-tags")), taken_away("gh", ("pr", "close", "3"), ())
    ([], [])
    """
    if program.startswith("remove-"):
        nouns = program[7:].removeprefix("az").removeprefix("ec2").removeprefix("ad")
        return ["?"] if any(nouns.endswith(thing) for thing in SERVICES) and nouns != "item" else []
    if program == "ldapdelete":
        return [*operands[:1], "?"][:1]
    if _says(_TAKEN.get(program, ()), args):
        return [*operands[2:3], "?"][:1]
    if (program in _TAKEN and program not in _OWN) or _only_tells(program, args):
        return []
    said: list[str] = []
    for at, operand in enumerate(operands[:_AT]):
        words = parts(operand)
        said += words
        if DELETES.isdisjoint(words) and not operand.endswith(":reset"):
            continue
        things = {singular(word) for word in said}
        if program != "aws":
            things |= {singular(word) for word in parts("".join(operands[at + 1 : at + 2]))} & _AFTER
        keeps = any(arg.startswith(_KEEPS) for arg in args) and "0" not in args
        if keeps or (program == "npm" and "unpublish" not in words):
            return []
        if "rb" in words:
            things.add("bucket")
        if not each and ((program not in _WHOLE and SERVICES.isdisjoint(things)) or not things.isdisjoint(_TRIFLES)):
            return []
        if is_disposable(" ".join(args)):
            return []
        named = operands[at + 1 :]
        if program == "aws":
            named = tuple(value for flag, value in pairwise(args) if flag[:2] == "--" and value[:1] != "-")
        elif not named:
            flags = pairwise(args)
            named = tuple(value for flag, value in flags if flag in ("-n", "--name", "--id") and value[:1] != "-")
        return [named[0] if named and not named[0].startswith(("$", "{")) else "?"]
    return []


_PRODUCTS = word_set(
    "falco wazuh falcon crowdstrike sophos sentinelone osquery auditd fail2ban clamav clamd crowdsec ossec "
    "suricata snort "
    "livepatch tmutil"
)
"""Names of programs that watch a system."""
_SAID = {
    "kubectl": 2,
    "oc": 2,
    "aws": 2,
    "gcloud": 4,
    "az": 4,
    "helm": 1,
    "docker": 1,
}  # the operands after them are names
_SWITCHES = (
    "systemctl service sc net netsh reg bcdedit ufw firewall-cmd nft wevtutil auditpol wmic csrutil spctl "
    "fdesetup tmutil "
    "launchctl vault helm snap docker defaults mdutil chkconfig rc-service rc-update update-rc.d "
    "socketfilterfw manage-bde set-mppreference set-service "
    "set-netfirewallprofile set-itemproperty new-itemproperty add-mppreference stop-service clear-eventlog "
    "remove-eventlog delete-computerrestorepoint kill pkill killall taskkill stop-process apt apt-get yum "
    "dnf apk zypper brew "
    "choco"
)
_PHRASES: dict[str, tuple[str, ...]] = {
    "setenforce": ("0", "permissive"),
    **dict.fromkeys(("iptables", "ip6tables"), ("-f", "--flush", "-p accept")),
    "pfctl": ("-d",),
    "auditctl": ("-e 0", "-d"),
    "passwd": ("-d root", "-d"),
    **dict.fromkeys(("aa-teardown", "aa-disable", "aa-complain"), ("",)),
    "journalctl": ("--vacuum-time=1s", "--vacuum-size=1", "--vacuum-files=1", "--vacuum-time=1m"),
    "git": ("config --global http.sslverify false",),
    "fsutil": ("usn deletejournal",),
    "mokutil": ("--disable-validation",),
    "useradd": ("-o -u 0",),
    "usermod": ("-ag sudo", "-ag wheel", "-ag root"),
    "ufw": ("default allow incoming",),
    "sysctl": ("-w kernel.randomize_va_space=0",),
    **dict.fromkeys(("mysqld", "mysqld_safe"), ("--skip-grant-tables",)),
    "net": ("localgroup administrators /add",),
    "history": ("-c",),
    "crontab": ("-r",),
}
"""Further ways to take protection away: words that must all stand among a program's arguments."""

_SWITCHING = frozenset([*_SAID, *_SWITCHES.split(), "gh", "glab", "gsutil"])
GUARD_PROGRAMS = (*sorted(_SWITCHING.union(_PHRASES)), "disable-*", "uninstall-*")
"""Programs that switch protection."""

_EVERYBODY = lazy_regex(
    r"allusers|allauthenticatedusers|public-read|system:anonymous|system:unauthenticated|administratoraccess"
    r"|cluster-admin\b|roles/owner|(?<![\w.])0\.0\.0\.0/0|(?<![\w:])::/0|visibility[= ]public|principal\W{1,4}\*"
    r"|source-address-prefixes \*|no-deletion-protection"
    r"|no-disable-api-termination|--no-backup\b|retention-(?:in-)?days[= ][01]\b|backup-retention-period[= ]0\b",
    re.IGNORECASE,
)
_GIVES = word_set("add create put attach authorize set ch edit update modify allow grant patch bind")
_WEB_PORT = lazy_regex(r"(?<![\d.])(?:80|443|8080|8443)(?![\d.])")


def unguarded(program: str, args: tuple[str, ...]) -> bool:
    """Return whether a command switches off what protects or watches something, or opens it to everybody.

    Examples
    --------
    >>> unguarded("systemctl", ("stop", "auditd")), unguarded("systemctl", ("stop", "nginx"))
    (True, False)
    >>> unguarded("aws", ("s3api", "put-bucket-acl", "--bucket", "b", "--acl", "public-read"))
    True
    """
    args = tuple(arg for arg in args[:40] if len(arg) < 200)
    if is_disposable(" ".join(args)) or _only_tells(program, args):
        return False
    if _says(_PHRASES.get(program, ()), args):
        return True
    operands = [arg for arg in args if arg[:1] != "-"]
    said = (
        [*operands[: _SAID[program]], *(arg for arg in args if "=" in arg or arg.startswith("--disable"))]
        if program in _SAID
        else args
    )
    products = _PRODUCTS.intersection(word for text in operands for word in parts(text))
    words = products | {word for text in said if not text.startswith("--no") for word in parts(text)}
    if program in ("gh", "glab") and operands[:1] not in (["api"], ["repo"]):
        return False
    if (program in _SAID or program in ("gh", "glab", "gsutil")) and not _GIVES.isdisjoint(words):
        open_to = _EVERYBODY.search(" ".join(args))
        if open_to is not None and (open_to[0][-2:] != "/0" or _WEB_PORT.search(" ".join(args)) is None):
            return True
    if program not in _SWITCHING and not program.startswith(("disable-", "uninstall-")):
        return False
    return is_off(words.union(parts(program)))


_CLIENT = ("boto3", "aws-sdk", "googleapiclient", "google.cloud", "azure", "kubernetes", "digitalocean", "openstack")
_CALLED = lazy_regex(r"(?:\.|\bnew )((?:delete|terminate|destroy|purge|Delete|Terminate)_?\w{0,40}) ?\(")
_DELETES_URL = lazy_regex(
    r"\.\s?delete\(\s?f?[\"'`](?P<asked>https?://[^\"'`\s]{1,300})|[\"'`](?P<given>https?://[^\"'`\s]{1,300})[\"'`]"
    r"[^\n]{0,60}\bmethod[\"']?: ?[\"'](?:DELETE|delete)[\"']"
)


def taken_by_code(code: str, low: str) -> list[str]:
    """Return what code deletes by the client of a cloud, or by addresses; ``low`` is the code in lower case.

    Examples
    --------
    >>> code = "boto3.client('rds').delete_db_instance(DBInstanceIdentifier='p')"
    >>> taken_by_code(code, code.lower()), taken_by_code("xs.delete_db_instance()", "xs.delete_db_instance()")
    (['?'], [])
    """
    found: list[str] = []
    if any(name in low for name in _CLIENT) or "command(" in low:
        for called in islice(_CALLED.finditer(code), 100):
            words = {singular(word) for word in parts(called[1])}
            client = "command" in words or any(name in low for name in _CLIENT)
            every = len(words) == 1 and code[: called.start()].endswith(".all()")
            if client and (every or not (STORES | {"table", "function", "stack"}).isdisjoint(words)):
                found.append("?")
    if "http" in low and "delete" in low:
        for asked in islice(_DELETES_URL.finditer(code), 100):
            url = asked["asked"] or asked["given"]
            found += filter(None, [wiped_over_http(url, each="for " in low[: asked.start()])])
    return found[:8]


def is_off(words: Iterable[str]) -> bool:
    """Return whether words name something that protects, and that it is switched off."""
    found = set(words)
    return not GUARDS.isdisjoint(found) and (
        not OFF.isdisjoint(found) or any(word.startswith(("disable", "exclusion")) for word in found)
    )


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
    last = names[-1]
    if last.startswith(("$", "{")) and each and len(names) > 1:
        names.pop()
        last = names[-1]
    if _MAIN.search(path) is not None:
        return last
    if last == "_all" or last.endswith("*"):
        return last
    if len(names) == 1 and _STORE_HOST.search(host) is not None:
        return "" if is_disposable(last) else last
    if (len(names) > 2 and names[-3] == "repos") or last == "protection":
        return last
    if _OWN_HOST.match(plain) is not None or is_disposable(host, last):
        return ""
    if len(names) > 1 and not _HELD.isdisjoint(map(singular, parts(names[-2]))):
        return "?" if "record" in map(singular, parts(names[-2])) else last
    deleted = set(parts(last))
    if not DELETES.isdisjoint(deleted) and not {"all", "everything", *STORES}.isdisjoint(
        {*deleted, *parts("".join(names[-2:-1]))}
    ):
        return last
    whole = singular(last.casefold()) in COLLECTIONS and singular(last) != last
    return last if whole and (not query or _ALL.search(query) or not _ONE.match(query)) else ""
