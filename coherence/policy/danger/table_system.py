"""Rows about processes, services and the system, and about text that cannot be read before it runs."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.code import INTERPRETERS, code_of, destroys
from coherence.policy.danger.danger import DRY, UNJUDGED, Command, DangerousCommand
from coherence.policy.danger.disclosure import recipients
from coherence.policy.danger.requests import RUN_DOWNLOAD
from coherence.policy.danger.shell import FEEDERS
from coherence.policy.danger.unwrap import POWERSHELLS, SHELLS

_WORDS = lazy_regex(
    r"(?<![\w.-])(?:rm|rmdir|unlink|shred|truncate|dd|mkfs(?:\.\w+)?|fdisk|wipefs|chmod|chown|kill|pkill|killall|shutdown"
    r"|reboot|dropdb|userdel|Remove-Item|(?:push\s+(?:-f|--force)|reset\s+--hard|clean\s+-\w*f))(?![\w-]|\.\w)"
)
_DELETING_FLAGS = frozenset({"-rf", "-fr", "-Rf", "-rfv"})
_READERS = frozenset(
    {
        "head",
        "tail",
        "tr",
        "sed",
        "wc",
        "cat",
        "tee",
        "pv",
        "grep",
        "dd",
        "nl",
        "paste",
        "awk",
        "sort",
        "uniq",
        "cut",
        "less",
        "more",
    }
)


def _signals(command: Command) -> bool:
    return not re.search(r"(?:^| )-s (?:0|EXIT)(?: |$)", " ".join(command.args[:4]))


def _hidden(command: Command) -> bool:
    return bool(command.unread) and _WORDS.search(command.unread) is not None


def _unknown_program(command: Command) -> bool:
    return not command.program and not command.flags.isdisjoint(_DELETING_FLAGS)


def _runs_download(command: Command) -> bool:
    if not command.program:
        return command.text.lstrip('"').startswith(("$(", "`")) and FEEDERS.search(command.text) is not None
    runs_input = command.program in INTERPRETERS and bool(INTERPRETERS[command.program])
    if runs_input or command.program in SHELLS | POWERSHELLS:
        first = command.operands[0] if command.operands else "-"
        if first.startswith("<("):
            return FEEDERS.search(first) is not None
        reads = "-s" in command.flags or (first == "-" and (not runs_input or command.flags <= {"-u"}))
        return reads and command.fed_by not in ("", "yes")
    if command.program in ("iex", "invoke-expression"):
        return bool(command.fed_by) or FEEDERS.search(" ".join(command.args[:20])[:2_000]) is not None
    return False


SYSTEM: tuple[DangerousCommand, ...] = (
    DangerousCommand(
        name="kill",
        kind="kill",
        says="ends processes",
        programs=("kill", "pkill", "killall", "skill", "xkill", "taskkill", "stop-process", "tskill"),
        unless=(*DRY, "-0", "-l", "-L", "--list", "--table"),
        test=_signals,
    ),
    DangerousCommand(
        name="fuser-kill", kind="kill", says="ends processes", programs=("fuser",), flags=("-k", "--kill")
    ),
    DangerousCommand(
        name="tmux-kill",
        kind="kill",
        says="ends sessions",
        programs=("tmux",),
        verbs=("kill-server", "kill-session", "kill-window", "kill-pane"),
    ),
    DangerousCommand(
        name="shutdown",
        kind="system",
        says="stops the machine",
        programs=("shutdown", "reboot", "halt", "poweroff", "stop-computer", "restart-computer"),
        unless=(*DRY, "-c"),
    ),
    DangerousCommand(
        name="init", kind="system", says="stops the machine", programs=("init", "telinit"), verbs=("0", "1", "6")
    ),
    DangerousCommand(
        name="systemctl",
        kind="system",
        says="stops a service or the machine",
        programs=("systemctl", "loginctl"),
        verbs=(
            "stop",
            "disable",
            "kill",
            "mask",
            "poweroff",
            "reboot",
            "halt",
            "isolate",
            "terminate-session",
            "terminate-user",
            "kill-session",
            "kill-user",
        ),
    ),
    DangerousCommand(
        name="service-stop",
        kind="system",
        says="stops a service",
        programs=("service", "rc-service"),
        test=lambda command: "stop" in command.operands[1:2],
    ),
    DangerousCommand(
        name="service-managers",
        kind="system",
        says="stops or removes a service",
        programs=("launchctl", "sc", "pm2", "supervisorctl", "net"),
        verbs=("unload", "remove", "bootout", "stop", "delete", "kill", "shutdown", "user"),
    ),
    DangerousCommand(
        name="crontab", kind="delete", says="deletes all scheduled jobs", programs=("crontab",), flags=("-r",)
    ),
    DangerousCommand(
        name="history",
        kind="delete",
        says="deletes the shell's history",
        programs=("history", "clear-history"),
        flags=("-c", "-d"),
    ),
    DangerousCommand(
        name="firewall",
        kind="system",
        says="takes firewall rules away",
        programs=("iptables", "ip6tables"),
        flags=("-F", "-X", "-D", "--flush", "--delete", "--delete-chain"),
    ),
    DangerousCommand(
        name="network",
        kind="system",
        says="takes network settings away",
        programs=("nft", "ufw", "ip"),
        verbs=(
            "flush",
            "delete",
            "disable",
            "reset",
            "link delete",
            "link del",
            "addr flush",
            "route flush",
            "route del",
            "addr del",
        ),
    ),
    DangerousCommand(
        name="users",
        kind="delete",
        says="deletes an account",
        programs=("userdel", "deluser", "groupdel", "delgroup", "remove-localuser"),
    ),
    DangerousCommand(
        name="passwd",
        kind="permissions",
        says="locks an account or takes its password away",
        programs=("passwd",),
        flags=("-d", "-l", "--delete", "--lock"),
    ),
    DangerousCommand(
        name="modules", kind="system", says="takes a part of the kernel away", programs=("rmmod", "swapoff")
    ),
    DangerousCommand(
        name="registry", kind="delete", says="deletes settings", programs=("reg", "defaults"), verbs=("delete",)
    ),
    DangerousCommand(
        name="packages",
        kind="uninstall",
        says="uninstalls software",
        programs=(
            "apt",
            "apt-get",
            "aptitude",
            "yum",
            "dnf",
            "zypper",
            "brew",
            "snap",
            "flatpak",
            "apk",
            "choco",
            "winget",
            "conda",
            "pip",
            "pip3",
            "uv",
            "gem",
        ),
        verbs=("remove", "purge", "autoremove", "erase", "uninstall", "del", "rm", "env remove", "pip uninstall"),
        unless=(*DRY, "-s", "--simulate"),
    ),
    DangerousCommand(
        name="pacman", kind="uninstall", says="uninstalls software", programs=("pacman", "yay"), flags=("-R",)
    ),
    DangerousCommand(
        name="dpkg",
        kind="uninstall",
        says="uninstalls software",
        programs=("dpkg", "rpm"),
        flags=("-r", "-P", "-e", "--remove", "--purge", "--erase"),
    ),
    DangerousCommand(
        name="python-m-pip",
        kind="uninstall",
        says="uninstalls software",
        programs=("python", "python3", "py"),
        test=lambda command: command.args[:3] == ("-m", "pip", "uninstall"),
    ),
    DangerousCommand(
        name="code",
        kind="delete",
        says="runs code that deletes",
        programs=tuple(INTERPRETERS),
        unless=(),
        test=lambda command: destroys(code_of(command)),
    ),
    DangerousCommand(
        name="run-download",
        kind="remote code",
        says="runs text that nobody has read",
        unless=(),
        test=_runs_download,
        enforced=True,
        asking=RUN_DOWNLOAD,
        targets=lambda command: list(recipients([command.text, command.stdin]))[:4],
    ),
    DangerousCommand(
        name="encoded",
        kind="remote code",
        says="runs text that nobody has read",
        programs=tuple(sorted(POWERSHELLS)),
        unless=(),
        test=lambda command: any(flag.lower() in ("-encodedcommand", "-enc", "-ec") for flag in command.flags),
    ),
    DangerousCommand(
        name="yes",
        kind="unattended",
        says="answers every question with yes",
        unless=DRY,
        test=lambda command: command.fed_by == "yes" and bool(command.program) and command.program not in _READERS,
    ),
    DangerousCommand(
        name="unknown-program",
        kind="unreadable",
        says="names its program only when it runs",
        unless=(),
        test=_unknown_program,
    ),
    DangerousCommand(
        name="unreadable",
        kind="unreadable",
        says="cannot be read, and names a dangerous program",
        unless=(),
        test=_hidden,
    ),
    DangerousCommand(
        name="unjudged",
        kind=UNJUDGED,
        says="is longer than what is judged of a call",
        unless=(),
        test=lambda command: command.cut,
        enforced=True,
        weighs=False,
    ),
)
"""Rows about processes, services, packages and unreadable text."""
