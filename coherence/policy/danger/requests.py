"""Words by which somebody asks for what an enforced row finds."""

from __future__ import annotations

from coherence.policy.danger.danger import Asking

_DELETING = (
    "delete remove drop clean clear purge wipe erase destroy truncate empty reset recreate rebuild nuke rid prune flush"
)
WIPE_FILES = Asking(
    acts=_DELETING + " format reformat overwrite zero shred",
    things="everything home root disk drive filesystem system machine folder directory project repository git "
    "device files data",
    named="write flash burn make create partition add swap put use",
)
"""Words by which somebody asks to wipe files or disks."""

WIPE_DATA = Asking(
    acts=_DELETING + " teardown decommission reinitialize reseed",
    things="database databases db table tables schema rows records data collection collections cache redis "
    "index keyspace",
)
"""Words by which somebody asks to wipe stored data."""

CHANGE_ALL = Asking(
    acts=WIPE_DATA.acts + " set change update raise increase lower reduce mark fill convert rename replace assign "
    "backfill multiply round activate deactivate",
    things="all every each everybody everyone whole",
    enough=False,
)
"""Words by which somebody asks to change every row of a table."""

WIPE_SERVICES = Asking(
    acts=_DELETING + " teardown tear decommission uninstall shut terminate",
    things=(
        "infrastructure stack environment namespace namespaces cluster bucket buckets volume volumes instance "
        "instances app "
        "repository repo project database table resources resource group storage terraform pulumi deployment "
        "branch server channel backup backups snapshot snapshots zone dns domain record queue container "
        "containers function instance"
    ),
)
"""Words by which somebody asks to take infrastructure down."""

UNGUARD = Asking(
    acts=_DELETING
    + " disable stop pause turn switch deactivate suspend uninstall open allow expose publish make grant give "
    "add set change permit put",
    things="firewall antivirus defender protection guard security audit auditing log logging logs mfa 2fa encryption "
    "selinux linux apparmor ufw iptables auditd port ingress public everybody everyone anyone world admin "
    "administrator owner "
    "superuser sudo sudoers passwordless rule rules permission permissions versioning lock backup backups snapshot "
    "snapshots monitoring service policy networkpolicy visibility verification access root key keys ssh",
)
"""Words by which somebody asks to switch protection off, or to open something to everybody."""

FORCE_PUSH = Asking(acts="force overwrite rewrite rebase amend squash forced", things="push pushed pushing remote")
"""Words by which somebody asks for a forced push."""

RUN_DOWNLOAD = Asking(
    acts="run execute install pipe curl wget bootstrap",
    things="installer curl wget pipe oneliner url download downloaded online remote website official",
    addresses=True,
)
"""Words by which somebody asks to run what is downloaded."""

DISCLOSE = Asking(
    acts="send mail email post upload share forward copy transfer push sync deploy message tell give publish "
    "scp rsync put report reply include",
    things=(
        "password passwords key keys credential credentials token tokens secret secrets env dotenv login "
        "certificate passphrase "
        "passcode pem ssh id_rsa kubeconfig .env"
    ),
    addresses=True,
    enough=False,
)
"""Words by which somebody asks to send credentials."""
