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
)
"""Words by which somebody asks to wipe files or disks."""

WIPE_DATA = Asking(
    acts=_DELETING + " teardown decommission reinitialize reseed",
    things="database databases db table tables schema rows records data collection collections cache redis "
    "index keyspace",
)
"""Words by which somebody asks to wipe stored data."""

WIPE_SERVICES = Asking(
    acts=_DELETING + " teardown tear decommission uninstall shut terminate",
    things=(
        "infrastructure stack environment namespace namespaces cluster bucket buckets volume volumes instance "
        "instances app "
        "repository repo project database table resources resource group storage terraform pulumi deployment "
        "branch server"
    ),
)
"""Words by which somebody asks to take infrastructure down."""

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
