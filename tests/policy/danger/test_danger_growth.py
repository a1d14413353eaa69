"""What judges a call takes time in proportion to its text, on hostile shapes too."""

from __future__ import annotations

import pytest
from growth import check_growth, spent

from coherence.core.config import ForbiddenCall
from coherence.policy.danger import (
    asking,
    calls,
    classify,
    code,
    disclosure,
    files,
    follow,
    git,
    protection,
    roots,
    services,
    sql,
    things,
    unread,
    wipes,
)
from coherence.policy.danger.classify import judge

NAMED = [
    (f"{module.__name__.rpartition('.')[2]}.{name}", pattern)
    for module in (
        *(asking, calls, classify, disclosure, files, follow, git, protection, roots, services, sql, things, unread),
        wipes,
    )
    for name, pattern in vars(module).items()
    if hasattr(pattern, "finditer") and name.isupper()
]
NAMED += [(f"code.{name}", getattr(code, name)) for name in ("_ROOTS", "_JOINED")]

WHOLE = frozenset(
    (
        "_REMOTE",
        "_HOST",
        "_ROOT",
        "_SYSTEM",
        "_BRANCHES",
        "_BUCKET",
        "_PART",
        "_CLUSTER",
        "_BELOW_ROOT",
        "_TRUE",
        "_NUMBERS",
        "_AUDIT_LOG",
        "_OPEN_MODE",
        "_GUARDED",
        "_LISTS_ALL",
        "_LOOKS_MADE",
    )
)
START = (
    "_DROPS",
    "_STARTS_DELETE",
    "_UPDATES",
    "_VARIABLE",
    "_HOME_CALL",
    "_DEFAULT",
    "_CELL",
    "_GOES_ON",
    "_OWN_HOST",
    "_ONE",
    "_DIGITS",
    "_DROP",
    "_ONLY_SHOWS",
)
"""Patterns that are asked about a whole text, or its beginning, alone."""

PIECES = (
    *(
        " ",
        "a",
        "A",
        "1",
        "/",
        "~",
        ".",
        "-",
        "_",
        "'",
        '"',
        "`",
        "(",
        "[",
        "{",
        "$",
        "=",
        ":",
        ";",
        "\n",
        "@",
        "%",
        "不要",
        "é",
    ),
    *(
        "a.",
        "a/",
        "/*",
        "/..",
        "~/",
        "$HOME/",
        "a@",
        "a@b.",
        "a@b.c ",
        "https://",
        "http://a/",
        "a.b.",
        "$(",
        "$(cat ",
        "${A",
    ),
    *(
        "DROP TABLE ",
        "DELETE FROM a ",
        "TRUNCATE ",
        "UPDATE a SET ",
        "WHERE 1=1 ",
        "CREATE TABLE ",
        "/*",
        "--",
        "''",
        "ROLLBACK ",
    ),
    *(
        "rmtree(",
        "rm(",
        "a = ",
        "for a in ",
        "walk('",
        "'a' ",
        '"a" ',
        '"""',
        "'''",
        "os.environ[",
        "exec(",
        "eval(a",
        "a = fetch(",
    ),
    *(
        "requests.post(",
        "open('",
        "data=",
        "json=os.environ",
        "body: ",
        "urlopen(",
        "password ",
        "login is ",
        "api_key: ",
        "[redacted:",
    ),
    *(
        "db.a.drop(",
        "db.a",
        "repos/a/",
        "refs/heads/",
        "+main",
        "main",
        "test_",
        "prod ",
        "_API_KEY",
        "$A_TOKEN",
        "s3://a",
        "a:a",
    ),
    *(
        "under no circumstances ",
        "nothing gets ",
        "only files below ",
        "nobody may be invited ",
        "Only Ana, ",
        "keep a out",
        "a must not ",
    ),
    *(
        "at most 5 ",
        "no pueden ",
        "darf nicht ",
        "die a bleiben ",
        "with the label ",
        "a = b",
        "A = ",
        "| a",
        "- a",
        "5 mg ",
        "$5",
        "x(a) = ",
    ),
    *(
        "process.cwd()",
        "$ENV{",
        "' + '",
        ".delete_a(",
        "new Delete",
        "'https://a' ",
        "method: 'DELETE'",
        "delete",
        "created",
    ),
    *(
        "\ta\n",
        "a: ;",
        '"a": "b"',
        "* ",
        "| base64 -d",
        "seed phrase: a",
        "word ",
        "gh_",
        "sk-",
        "a-",
        "backups/",
        "~/a/",
    ),
    *(
        "KEYS *",
        "$(ls ",
        "scriptblock]::Create(",
        "glob('*')",
        "if ",
        "BETWEEN 0 AND ",
        "id = id",
        "LIKE '%'",
        "0.0.0.0/0",
    ),
    *("- [", "to Ana ", "without ", "not ", "without ask", "do not ", "to The ", "/proc/1", "Bearer "),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pattern"), NAMED, ids=[name for name, _ in NAMED])
def test_growth_a_pattern_takes_no_more_than_its_share_for_a_longer_text(name: str, pattern: object) -> None:
    def ask(text: str) -> object:
        own = name.rpartition(".")[2]
        if own in WHOLE:
            return pattern.fullmatch(text)  # type: ignore[attr-defined]
        if own in START:
            return pattern.match(text)  # type: ignore[attr-defined]
        return list(pattern.finditer(text))  # type: ignore[attr-defined]

    check_growth(ask, PIECES)


HOSTILE = [
    piece * (1_000_000 // len(piece))
    for piece in ("a ", "password is x ", "'", "rmtree('a') ", "DROP TABLE a; ", "{", "a@b.c ", "$(cat a) ")
]


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(
    ("tool", "key"), [("send_email", "body"), ("run_sql", "query"), ("python", "code"), ("write_file", "content")]
)
def test_judge_a_hostile_text_of_a_megabyte_is_judged_soon(tool: str, key: str, text: str) -> None:
    assert spent(lambda given: judge(tool, {key: given}), text) < 0.5  # 0.1 s on a quiet machine


@pytest.mark.slow
@pytest.mark.parametrize("matches", ["a*b*a*b*c", "*a*a*a*a*a*a*a*z", "git push*--force"])
def test_forbidden_call_a_pattern_takes_linear_time(matches: str) -> None:
    entry = ForbiddenCall(matches=matches)
    assert spent(lambda given: entry.forbids("Bash", given), "ab " * 330_000) < 0.3  # 0.05 s on a quiet machine
