"""Protection of a system: commands and tools that switch it off."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from coherence.core.words import word_set
from coherence.policy.danger.danger import Command, ToolUse
from coherence.policy.danger.paths import is_disposable
from coherence.policy.danger.things import DELETES, only_shows, parts

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


_STATES = word_set("enabled enable active state status enforced protected on value setting action")
_NO = word_set("false off disabled 0 no inactive disable")
_FLAGS = _GUARDS | {"retention", "enforce", "required"}
_CHANGES = DELETES | word_set(
    "add create authorize open allow reset sql query put patch disable stop turn deactivate suspend set update "
    "configure change toggle http request fetch"
)


def call_unguards(call: ToolUse) -> bool:
    """Return whether a tool switches off what protects or watches something."""
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
