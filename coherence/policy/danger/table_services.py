"""Rows about containers, clouds, databases and package registries."""

from __future__ import annotations

import re
from itertools import pairwise

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.danger import Command, DangerousCommand
from coherence.policy.danger.sql import destroys_data

_CLOUD_VERB = lazy_regex(
    r"(?:delete|terminate|remove|deregister|purge|revoke|destroy|disable"
    r"|schedule-key-deletion|batch-delete|force-delete)(?:-.*)?"
)
_CLOUD_END = lazy_regex(r"(?:.*:)?(?:delete|destroy|purge|rm|remove|reset|terminate)|delete-.*")
SQL_PROGRAMS = (
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "duckdb",
    "sqlcmd",
    "bq",
    "cockroach",
    "clickhouse",
    "clickhouse-client",
    "snowsql",
    "usql",
    "pgcli",
    "mycli",
    "cqlsh",
    "trino",
    "presto",
    "hive",
    "beeline",
    "d1",
    "wrangler",
)
_METHOD = lazy_regex(r"-\w*X|--request|--method|-Method")
_MONGO = lazy_regex(r"\.\s*(?:drop\w*|deleteMany|remove)\s*\(")
_RAKE = lazy_regex(r"(?:.*:)?(?:drop|reset|purge|wipe|fresh|flush|sqlflush|reset_db|truncate_all|schema:load)(?::.*)?")


def _down(command: Command) -> bool:
    return "down" in command.operands[:4] and not command.flags.isdisjoint(("-v", "--volumes", "--rmi"))


def _compose_rm(command: Command) -> bool:
    operands = command.operands[1:] if command.operands[:1] == ("compose",) else command.operands
    return "rm" in operands[:2] and (command.program.endswith("-compose") or command.lead.startswith("compose "))


def _aws(command: Command) -> bool:
    return any(_CLOUD_VERB.fullmatch(word) is not None for word in command.operands[1:2])


def _names_deletion(command: Command) -> bool:
    return any(_CLOUD_END.fullmatch(word) is not None for word in command.operands[:5])


def _apply(command: Command) -> bool:
    return not command.flags.isdisjoint(
        ("-auto-approve", "--auto-approve", "-destroy", "--destroy", "--terragrunt-non-interactive")
    )


def _sql(command: Command) -> bool:
    return any(destroys_data(text) for text in (command.stdin, *map(_value, command.args)))


def _value(arg: str) -> str:
    """Return what follows an option in the same word: ``--command=…``, ``-c…``."""
    if arg.startswith("--"):
        return arg.partition("=")[2]
    return arg[2:] if arg.startswith(("-c", "-e", "-Q")) else arg


def _mongo(command: Command) -> bool:
    return any(_MONGO.search(text) is not None for text in (*command.args, command.stdin))


def _redis(command: Command) -> bool:
    words = [word.lower() for word in (*command.operands[:1], *command.stdin.split()[:1])]
    return any(word in ("flushall", "flushdb", "del", "unlink", "shutdown") for word in words)


def _deletes_over_http(command: Command) -> bool:
    args = command.args
    if command.program in ("http", "https", "xh"):
        return "DELETE" in args
    after = any(_METHOD.fullmatch(flag) is not None and verb.upper() == "DELETE" for flag, verb in pairwise(args))
    return after or any(
        re.fullmatch(r"(?:-\w*X|--request=|--method=)[\"']?DELETE", arg, re.IGNORECASE) is not None for arg in args
    )


def _resets(command: Command) -> bool:
    words = command.operands[1:4] if command.program.startswith("python") else command.operands[:3]
    if command.program.startswith("python") and not command.lead.startswith(("manage.py ", "./manage.py ")):
        return False
    return any(_RAKE.fullmatch(word) is not None for word in words)


SERVICES: tuple[DangerousCommand, ...] = (
    DangerousCommand(
        name="containers",
        kind="delete",
        says="deletes or kills containers, images or volumes",
        programs=("docker", "podman", "nerdctl"),
        verbs=(
            "rm",
            "rmi",
            "kill",
            "container rm",
            "container kill",
            "container prune",
            "image rm",
            "image prune",
            "volume rm",
            "volume prune",
            "network rm",
            "network prune",
            "system prune",
            "system reset",
            "builder prune",
            "buildx prune",
            "buildx rm",
            "stack rm",
            "service rm",
            "swarm leave",
            "secret rm",
            "context rm",
        ),
    ),
    DangerousCommand(
        name="compose-down",
        kind="delete",
        says="deletes containers and their data",
        programs=("docker", "podman", "docker-compose", "podman-compose"),
        test=_down,
    ),
    DangerousCommand(
        name="compose-rm",
        kind="delete",
        says="deletes containers",
        programs=("docker", "podman", "docker-compose", "podman-compose"),
        test=_compose_rm,
    ),
    DangerousCommand(
        name="kubectl",
        kind="delete",
        says="deletes or empties cluster resources",
        programs=("kubectl", "oc", "k3s"),
        verbs=("delete", "drain", "kubectl delete"),
    ),
    DangerousCommand(
        name="kubectl-replace",
        kind="delete",
        says="deletes and replaces cluster resources",
        programs=("kubectl", "oc"),
        verbs=("replace",),
        flags=("--force",),
    ),
    DangerousCommand(
        name="helm",
        kind="delete",
        says="uninstalls a release",
        programs=("helm",),
        verbs=("uninstall", "delete", "del", "un"),
    ),
    DangerousCommand(
        name="terraform-destroy",
        kind="delete",
        says="destroys infrastructure",
        programs=(
            "terraform",
            "tofu",
            "terragrunt",
            "pulumi",
            "vagrant",
            "cdk",
            "cdktf",
            "eksctl",
            "kind",
            "minikube",
            "k3d",
        ),
        verbs=(
            "destroy",
            "state rm",
            "workspace delete",
            "force-unlock",
            "stack rm",
            "run-all destroy",
            "delete",
            "cluster delete",
        ),
    ),
    DangerousCommand(
        name="terraform-apply",
        kind="delete",
        says="changes infrastructure without asking",
        programs=("terraform", "tofu", "terragrunt"),
        verbs=("apply", "run-all apply"),
        test=_apply,
    ),
    DangerousCommand(name="aws", kind="delete", says="deletes cloud resources", programs=("aws",), test=_aws),
    DangerousCommand(
        name="aws-s3",
        kind="delete",
        says="deletes stored objects",
        programs=("aws", "s3cmd", "gsutil", "mc", "gcloud"),
        verbs=("s3 rm", "s3 rb", "rm", "rb", "del", "storage rm"),
    ),
    DangerousCommand(
        name="aws-s3-sync",
        kind="delete",
        says="deletes what the other side lacks",
        programs=("aws",),
        verbs=("s3 sync",),
        flags=("--delete",),
    ),
    DangerousCommand(
        name="clouds",
        kind="delete",
        says="deletes cloud resources",
        programs=(
            "gcloud",
            "az",
            "doctl",
            "heroku",
            "fly",
            "flyctl",
            "vercel",
            "netlify",
            "firebase",
            "supabase",
            "linode-cli",
            "hcloud",
            "ibmcloud",
            "oci",
            "scw",
            "railway",
        ),
        test=_names_deletion,
    ),
    DangerousCommand(
        name="stores",
        kind="delete",
        says="deletes stored values",
        programs=("vault", "consul", "etcdctl", "nomad"),
        verbs=(
            "delete",
            "destroy",
            "kv delete",
            "kv destroy",
            "kv metadata delete",
            "secrets disable",
            "lease revoke",
            "token revoke",
            "del",
            "job stop",
            "system gc",
        ),
    ),
    DangerousCommand(name="sql", kind="data", says="destroys data", programs=SQL_PROGRAMS, test=_sql),
    DangerousCommand(name="mongo", kind="data", says="destroys data", programs=("mongo", "mongosh"), test=_mongo),
    DangerousCommand(
        name="redis", kind="data", says="destroys data", programs=("redis-cli", "valkey-cli"), test=_redis
    ),
    DangerousCommand(name="dropdb", kind="data", says="deletes a database or a role", programs=("dropdb", "dropuser")),
    DangerousCommand(
        name="mysqladmin",
        kind="data",
        says="deletes a database",
        programs=("mysqladmin",),
        test=lambda command: "drop" in command.operands,
    ),
    DangerousCommand(
        name="pg-restore", kind="data", says="drops what it restores", programs=("pg_restore",), flags=("-c", "--clean")
    ),
    DangerousCommand(
        name="frameworks",
        kind="data",
        says="empties a database",
        test=_resets,
        programs=(
            "rails",
            "rake",
            "artisan",
            "django-admin",
            "manage.py",
            "python",
            "python3",
            "mix",
            "php",
            "prisma",
            "sequelize",
            "typeorm",
            "supabase",
        ),
    ),
    DangerousCommand(
        name="prisma",
        kind="data",
        says="empties a database",
        programs=("prisma",),
        flags=("--force-reset", "--accept-data-loss"),
    ),
    DangerousCommand(
        name="unpublish",
        kind="delete",
        says="takes a published package away",
        programs=("npm", "pnpm", "cargo", "gem", "yarn"),
        verbs=("unpublish", "yank", "deprecate", "npm unpublish"),
    ),
    DangerousCommand(
        name="http-delete",
        kind="delete",
        says="sends an HTTP DELETE",
        programs=("curl", "http", "https", "xh", "wget", "gh", "iwr", "irm", "invoke-restmethod", "invoke-webrequest"),
        test=_deletes_over_http,
    ),
)
"""Rows about containers, clouds, databases and registries."""
