"""Calls that fail without an error flag alarm nearly as flagged ones do; files that speak of errors do not."""

from __future__ import annotations

from typing import Any

import pytest

from coherence import Monitor
from coherence.core.readings import Band

Call = tuple[str, dict[str, Any], str]
"""Tool, arguments and what it returns."""


def shell(*pairs: tuple[str, str]) -> list[Call]:
    return [("Bash", {"command": command}, result) for command, result in pairs]


def of_tool(tool: str, key: str, *pairs: tuple[str, str]) -> list[Call]:
    return [(tool, {key: value}, result) for value, result in pairs]


HTML_502 = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"
NODE = (
    "node:net:1555\n      const ex = new Error(msg);\nError: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnectWrap"
)
DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"

TROUBLE: dict[str, list[Call]] = {
    "python traceback": shell(
        ("python load.py", "Traceback (most recent call last):\n  File \"load.py\", line 8, in main\nKeyError: 'rows'"),
        ("python dates.py", 'loading 40 files\nTraceback (most recent call last):\n  File "dates.py"\nImportError: tz'),
        ("python report.py", 'Traceback (most recent call last):\n  File "report.py", line 30\nZeroDivisionError: 0'),
        ("python -m app.sync", 'Traceback (most recent call last):\n  File "app/sync.py"\nTimeoutError: no answer'),
    ),
    "exit code": shell(
        ("make build", "Building target app\ncc -o app main.o util.o\nProcess exited with code 2"),
        ("tar xf a.tar", "a.tar: not recognised\n[exit code: 2]"),
        ("./deploy.sh stage", "stage: checking the host\nstage: key rejected\nexit status 255"),
        ("terraform plan", "Planning ...\nCommand failed with exit code 1: terraform plan"),
    ),
    "command not found": shell(
        ("rg TODO", "bash: rg: command not found"),
        ("jq . a.json", "/bin/sh: 1: jq: not found"),
        ("poetry install", "zsh: command not found: poetry"),
        ("kubectl get pods", "bash: line 1: kubectl: command not found"),
    ),
    "HTTP 4xx and 5xx": of_tool(
        "http_get",
        "url",
        ("https://api.x.io/orders/7", "HTTP/1.1 404 Not Found\ncontent-type: text/html\n\n<h1>Not Found</h1>"),
        ("https://api.x.io/users", '{"status": 401, "title": "Unauthorized", "detail": "token expired"}'),
        ("https://api.x.io/report?week=3", HTML_502),
        ("https://api.x.io/health", "Request failed with status code 503"),
    ),
    "error field": of_tool(
        "lookup_order",
        "id",
        ("7", '{"error": "order 7 does not exist"}'),
        ("a@x.io", '{"error": {"code": "E12", "message": "user is locked"}}'),
        ("May", '{"data": null, "errors": [{"message": "May is no date", "path": ["refunds"]}]}'),
        ("I-3", '{"ok": false, "error": "internal"}'),
    ),
    "npm": shell(
        ("npm install", "npm WARN deprecated har@5.1.5: gone\nnpm ERR! code ERESOLVE\nnpm ERR! unable to resolve"),
        ("npm run build", '> app@1.0.0 build\n> vite build\n\nnpm ERR! Missing script: "build"'),
        ("npm ci", "npm error code EUSAGE\nnpm error `npm ci` can only install packages that are in sync"),
        ("npm test", "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1"),
    ),
    "permission denied": shell(
        ("cat /etc/shadow", "cat: /etc/shadow: Permission denied"),
        ("./run.sh", "bash: ./run.sh: Permission denied"),
        ("mkdir /opt/app", "mkdir: cannot create directory '/opt/app': Permission denied"),
        ("ssh host uptime", "deploy@host: Permission denied (publickey,password)."),
    ),
    "rust and go": shell(
        ("cargo build", "   Compiling app v0.1.0\nerror[E0382]: borrow of moved value: `rows`\n  --> src/main.rs:14:9"),
        ("go build ./...", "# example.com/app/store\nstore/db.go:31:9: undefined: openPool"),
        ("cargo test --lib", "   Compiling app v0.1.0\nerror[E0308]: mismatched types\n --> src/date.rs:8:5"),
        ("go vet ./cmd", "cmd/main.go:12:2: no required module provides package github.com/x/flags"),
    ),
    "SQL": of_tool(
        "query",
        "sql",
        ("select nme from users", 'ERROR:  column "nme" does not exist\nLINE 1: select nme from users\n         ^'),
        ("select * from odrers", "ERROR 1146 (42S02): Table 'shop.odrers' doesn't exist"),
        ("insert into users values (1)", "sqlite3.OperationalError: table users has 3 columns but 1 values"),
        ("select count(* from users", 'psql:q.sql:1: ERROR:  syntax error at or near "from"'),
    ),
    "ECONNREFUSED": shell(
        ("node ping.js", NODE),
        ("curl -s localhost:8080", "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Connection refused"),
        ("redis-cli ping", "Could not connect to Redis at 127.0.0.1:6379: Connection refused"),
        ("node migrate.js", "Migrating ...\nconnect ECONNREFUSED 10.0.0.5:3306"),
    ),
    "docker daemon": shell(
        ("docker ps", DAEMON),
        ("docker compose up -d", f"unable to get image 'web': {DAEMON}"),
        ("docker build -t app .", f"ERROR: {DAEMON}"),
        ("docker logs web", "error during connect: this error may indicate that the docker daemon is not running"),
    ),
    "AWS AccessDenied": of_tool(
        "aws",
        "call",
        ("s3 ls", "An error occurred (AccessDenied) when calling the ListObjectsV2 operation: Access Denied"),
        ("lambda list", '{"__type": "AccessDeniedException", "message": "User: arn:aws:iam::1:user/ci may not"}'),
        ("sts assume-role", '{"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}'),
        ("s3 cp a s3://data/a", "upload failed: ./a to s3://data/a An error occurred (AccessDenied): Access Denied"),
    ),
}

FILES = {
    "docs/logs.md": (
        "# Reading the logs\n\nERROR: could not open the socket\nERROR 2024-05-01 retrying\n"
        'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: bad port\n\n'
        "The program exits with exit status 1 if a line cannot be read, with exit code 2 on bad usage.\n"
    ),
    "port.py": (
        "def port_of(text: str) -> int:\n    try:\n        return int(text)\n    except ValueError as error:\n"
        '        raise ValueError(f"not a port: {text!r}") from error\n'
    ),
    "README.md": (
        '# Shop\n\n## Error handling\n\nErrors are returned as JSON: `{"error": "no such order"}`, with status 404 or '
        "500.\nIf the database is down you see `ECONNREFUSED`. Permission denied means that the key is wrong.\n"
    ),
    "build.sh": "#!/bin/sh\nset -e\n[ -d build ] || exit 1\ncommand -v jq > /dev/null || exit 127\nmake all\n",
    "load.js": (
        'export async function load(id) {\n  if (res.status === 404) throw new Error("not found");\n'
        '  if (!res.ok) return { "error": "HTTP 500" };\n  return res.json();\n}\n'
    ),
}
FOUND = [
    "Search returned 5 results:\n1. Error budgets\n2. Error handling in Go",
    "Query returned 3 rows\n7 | Anna\n9 | Ben",
    "src/db.go:12:func open() error {\nsrc/log.go:7:// Error handling: see README",
    '{"ticket": 7, "title": "Error 500 on login", "status": "open", "errors": []}',
    '{"orders": [{"id": 7, "status": "failed payment, paid later"}]}',
]


def watch(calls: list[Call], *, flagged: bool = False) -> list[tuple[Band, float]]:
    """Return band and risk after each call."""
    with Monitor(goal="Get the weekly report of the shop to run.", config={"timeout_s": 60.0}) as m:
        seen = []
        for tool, arguments, result in calls:
            m.tool_call(tool, arguments)
            m.tool_result(result, error=flagged)
            m.decide()
            reading = m.latest
            assert reading is not None and reading.coherence_index is not None
            seen.append((reading.band, 1.0 - reading.coherence_index))
        return seen


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if at % 4 else ()) for at, kind in enumerate(TROUBLE)]
)
def test_failure_of_trouble_without_a_flag_alarms_at_least_half_as_much_as_with_one(kind: str) -> None:
    (band, unflagged), (_, flagged) = watch(TROUBLE[kind])[-1], watch(TROUBLE[kind], flagged=True)[-1]
    assert band != Band.GREEN
    assert unflagged >= 0.5 * flagged


@pytest.mark.parametrize(
    ("tool", "key"), [("Read", "file_path"), ("read_file", "path"), ("Bash", "command"), ("fetch", "url")]
)
def test_failure_of_files_that_speak_of_errors_stay_green(tool: str, key: str) -> None:
    calls = [(tool, {key: f"cat {path}" if tool == "Bash" else path}, text) for path, text in FILES.items()]
    assert {band for band, _ in watch(calls)} == {Band.GREEN}


def test_failure_of_what_a_search_finds_about_errors_stays_green() -> None:
    assert {band for band, _ in watch(of_tool("search", "query", *zip("abcde", FOUND, strict=True)))} == {Band.GREEN}
