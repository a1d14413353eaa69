"""Judging a call takes time in proportion to its text, on hostile shapes too."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
from growth import check_growth, spent

from coherence.core.forbidden_calls import ForbiddenCall
from coherence.policy.danger import (
    asking,
    calls,
    classify,
    code,
    disclosure,
    files,
    follow,
    git,
    paths,
    services,
    sql,
    things,
    unread,
    wipes,
)
from coherence.policy.danger.classify import judge

MODULES = (
    *(asking, calls, classify, disclosure, files, follow, git, paths, services, sql, things, unread),
    wipes,
)
NAMED = [
    *(
        (module, name)
        for module in MODULES
        for name, pattern in vars(module).items()
        if hasattr(pattern, "finditer") and name.isupper()
    ),
    (code, "_ROOTS"),
    (code, "_JOINED"),
]

PIECES = (
    " ·a·A·1·/·~·.·-·_·'·\"·`·(·[·{·$·=·:·;·\n·@·%·不要·é·a.·a/·/*·/..·~/·$HOME/·a@·a@b.·a@b.c ·https://·http://a/·"
    "a.b.·$(·$(cat ·${A·DROP TABLE ·DELETE FROM a ·TRUNCATE ·UPDATE a SET ·WHERE 1=1 ·CREATE TABLE ·--·''·"
    "ROLLBACK ·rmtree(·rm(·a = ·for a in ·walk('·'a' ·\"a\" ·\"\"\"·'''·os.environ[·exec(·eval(a·a = fetch(·"
    "requests.post(·open('·data=·json=os.environ·body: ·urlopen(·password ·login is ·api_key: ·[redacted:·"
    "db.a.drop(·db.a·repos/a/·refs/heads/·+main·main·test_·prod ·_API_KEY·$A_TOKEN·s3://a·a:a·"
    "under no circumstances ·nothing gets ·only files below ·nobody may be invited ·Only Ana, ·keep a out·"
    "a must not ·at most 5 ·no pueden ·darf nicht ·die a bleiben ·with the label ·a = b·A = ·| a·- a·5 mg ·$5·"
    "x(a) = ·process.cwd()·$ENV{·' + '·.delete_a(·new Delete·'https://a' ·method: 'DELETE'·delete·created·\ta\n·"
    'a: ;·"a": "b"·* ·| base64 -d·seed phrase: a·word ·gh_·sk-·a-·backups/·~/a/·KEYS *·$(ls ·'
    "scriptblock]::Create(·glob('*')·if ·BETWEEN 0 AND ·id = id·LIKE '%'·0.0.0.0/0·- [·to Ana ·without ·not ·"
    "without ask·do not ·to The ·/proc/1·Bearer "
).split("·")


@pytest.mark.torture
@pytest.mark.parametrize(("module", "name"), NAMED, ids=lambda each: getattr(each, "__name__", each))
def test_growth_a_pattern_takes_no_more_than_its_share_for_a_longer_text(module: ModuleType, name: str) -> None:
    pattern, source = getattr(module, name), inspect.getsource(module)
    if any(f"{name}.{way}" in source for way in ("search", "find", "sub", "split")):
        check_growth(lambda text: list(pattern.finditer(text)), PIECES)
    else:  # the module asks about a whole text, or its beginning, alone
        check_growth(pattern.fullmatch if f"{name}.fullmatch" in source else pattern.match, PIECES)


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
    assert spent(lambda given: judge(tool, {key: given}), text, 9, enough=0.5) <= 0.5  # 0.1 s on a quiet machine


@pytest.mark.slow
@pytest.mark.parametrize("matches", ["a*b*a*b*c", "*a*a*a*a*a*a*a*z", "git push*--force"])
def test_forbidden_call_a_pattern_takes_linear_time(matches: str) -> None:
    entry = ForbiddenCall(matches=matches)
    text = "ab " * 330_000
    assert spent(lambda given: entry.forbids("Bash", given), text, 9, enough=0.3) <= 0.3  # 0.05 s on a quiet machine
