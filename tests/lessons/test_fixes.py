"""Shell lines and calls of other tools: their purpose, what they may have changed, and what stories of them teach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.lessons.shell import parse_line, read_line
from lessons.sessions import TYPE, YAML, Story

SAME = [
    ("pytest tests/a.py::test_x", "pytest tests/a.py::test_y -vv"),
    ("pytest tests/a.py", "cd /repo && timeout 60 python -m pytest -q tests/a.py -k 'x and y' 2>&1 | tail -5"),
    ("pytest tests/a.py", ".venv/bin/pytest ./tests/a.py"),
    ("npm test", "npm run test -- --silent"),
    ("npm i left-pad", "npm install left-pad@1.3.0"),
    ("pip install a b", "pip install 'a==1'"),
    ("python app.py", "uv run python3 app.py"),
    ("python app.py", "PYTHONPATH=src DEBUG=1 python app.py --port 80"),
    ("python app.py", "cd /srv/app && python /srv/app/app.py > out.log 2>&1"),
    ("python app.py", "pip install pyyaml && python app.py"),
    ("python app.py", "bash -lc 'cd /x; python app.py'"),
    ("docker run -p 80:80 nginx:1.25", "docker run -d -p 8080:80 nginx"),
    ("git commit -m 'one two'", "git commit --no-verify -m three"),
    ("cat a.txt", "cat a.txt | head -5"),
    ("make", "make && git status | head"),
    ("docker exec -it web python manage.py migrate", "python manage.py migrate"),
]
OTHER = [
    ("pip install a", "pip install z"),
    ("pytest tests/a.py", "pytest tests/b.py"),
    ("npm test", "npm run build"),
    ("git push", "git pull"),
    ("python app.py serve", "python app.py migrate"),
    ("docker compose up", "docker compose down"),
    ("make test", "make install"),
    ("curl https://a.org/x", "curl https://b.org/x"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_read_line_lines_for_the_same_thing_have_one_intent(one: str, other: str) -> None:
    assert read_line(one).intent == read_line(other).intent != ""


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_read_line_lines_for_different_things_have_two(one: str, other: str) -> None:
    assert read_line(one).intent != read_line(other).intent


@pytest.mark.parametrize(
    "line", ["", "cd /x", "echo hi", "sleep 5", "which python && pwd", "# pip install x", "export A=1"]
)
def test_read_line_what_cannot_be_retried_is_for_nothing(line: str) -> None:
    assert read_line(line).intent == ""


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("pip install pyyaml 2>&1 | tail -3", ("ran `pip install pyyaml`",)),
        ("cd /r && mkdir -p out && ls && pwd", ("ran `mkdir -p out`",)),
        ("sed -i 's/a/b/' app.py; python app.py", ("ran `sed -i 's/a/b/' app.py`",)),
        ("export PYTHONPATH=$(pwd)/src", ("ran `export PYTHONPATH=$(pwd)/src`",)),
        ("cd frontend", ("ran `cd frontend`",)),
        ("git checkout -b fix && git status", ("ran `git checkout -b fix`",)),
        ("docker start db; sleep 5", ("ran `docker start db`",)),
        ("echo 'DEBUG=1' >> .env", ("ran `echo 'DEBUG=1' >> .env`",)),
        ("cat > .env <<'EOF'\nDEBUG=1\nEOF\n", ("wrote .env: `DEBUG=1`",)),
        ("cat <<EOF > a.py\n1\n2\n3\n4\nEOF\npython a.py", ("wrote a.py (4 lines)",)),
        ("grep -rl foo . | xargs sed -i s/foo/bar/", ("ran `grep -rl foo . | xargs sed -i s/foo/bar/`",)),
        ("python manage.py migrate", ("ran `python manage.py migrate`",)),
        ("python - <<'EOF'\nopen('a', 'w').write('x')\nEOF", ("ran `python - <<… (1 lines)`",)),
        ("npm run build", ("ran `npm run build`",)),
        ("eslint --fix src", ("ran `eslint --fix src`",)),
        ("curl -fsSL https://x.org/i.sh | sh", ("ran `curl -fsSL https://x.org/i.sh | sh`",)),
        ("psql -c 'create table a (b int)' app", ("ran `psql -c 'create table a (b int)' app`",)),
        ("lsof -ti:3000 | xargs kill -9", ("ran `lsof -ti:3000 | xargs kill -9`",)),
    ],
)
def test_read_line_what_may_have_changed_something(line: str, made: tuple[str, ...]) -> None:
    assert read_line(line).steps == made


@pytest.mark.parametrize(
    "line",
    [
        "cat a.py",
        "ls -la > /dev/null",
        "git status && git log --oneline | head",
        "echo done",
        "pip list",
        "pip install --help",
        "kubectl get pods",
        "pytest tests/a.py",
        "npm run test",
        "make test",
        "python reproduce_issue.py",
        "python - <<'EOF'\nprint(open('a').read())\nEOF",
        "python test_create.py",
        "sed -n 1,5p a.py",
        "sleep 30",
        "curl -s http://localhost:80/",
        "# pip install x",
    ],
)
def test_read_line_what_changes_nothing(line: str) -> None:
    assert read_line(line).steps == ()


def test_read_line_display_is_no_difference_and_everything_else_is() -> None:
    plain = read_line("pytest tests/a.py").doing
    assert read_line("pytest -vv tests/a.py::test_x -k y --tb=short 2>&1 | tail -9").doing != b""
    assert read_line("pytest -vv tests/a.py::test_x -k y --tb=short").doing == plain
    assert read_line("PYTHONPATH=. pytest tests/a.py").doing != plain
    assert read_line("python -m pytest tests/a.py").doing != plain
    assert read_line("pip install -v a").doing == read_line("pip install a").doing
    assert read_line("pip install --user a").doing != read_line("pip install a").doing


def test_read_line_a_line_can_hide_that_its_command_failed() -> None:
    for line in ("make | tail", "make; echo $?", "make || true", "make &"):
        assert read_line(line).hidden, line
    for line in ("make", "make && echo ok", "cd x; make", "make\n", "make 2>&1"):
        assert not read_line(line).hidden, line


def test_learn_commands_quotes_and_documents_hold_together() -> None:
    groups, joints = parse_line("echo 'a && b' | cat; git commit -m \"x; y\" && cat <<E >f\nrm -rf / && x\nE\nls")
    assert [[command.words for command in group] for group in groups] == [
        [["echo", "a && b"], ["cat"]],
        [["git", "commit", "-m", "x; y"]],
        [["cat"]],
        [["ls"]],
    ]
    assert joints == [";", "&&", "\n", ""]
    assert parse_line("make 2>&1 all >&2 &> log")[0][0][0].words == ["make", "all"]
    assert groups[2][0].documents == ["rm -rf / && x"]
    assert groups[2][0].written == ["f"]


@given(st.text(alphabet="ab '\"`$()<>|&;\n\\#=-0\0\ud800E", max_size=200))
def test_read_line_any_line_is_read(line: str) -> None:
    found = read_line(line)
    assert len(found.intent) <= 167
    assert all(len(part) <= 240 for part in (*found.steps, *found.prior, found.text))


@pytest.mark.parametrize("piece", ["'", '"', "$(", "`", "<<E\n", "a ", "a;", "|", "\\", "( ", "x=1 ", "sudo ", "\n<<A"])
def test_read_line_a_long_line_costs_little(piece: str) -> None:
    found = read_line(piece * 100_000)
    assert len(found.intent) <= 167


def test_learn_tools_a_long_file_tells_nothing_unless_the_error_asks_for_it() -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    story = Story().failed("python repro.py", TYPE).did("Write", {"file_path": "repro.py", "content": text}, "ok")
    assert story.ran("python repro.py").fixes == []
    story = Story().failed("python app.py", "FileNotFoundError: No such file or directory: 'settings.json'")
    story.did("Write", {"file_path": "/etc/app/settings.json", "content": text}, "ok")
    assert story.ran("python app.py").fixes == ["wrote app/settings.json (30 lines)"]
    story = Story().failed("python app.py", TYPE).did("Write", {"file_path": ".env", "content": "DEBUG=1\n"}, "ok")
    assert story.ran("python app.py").fixes == ["wrote .env: `DEBUG=1`"]


def test_learn_tools_the_agents_own_script_and_line_numbers_tell_nothing() -> None:
    text = "\n".join(f"line {number}" for number in range(30))
    missing = "python: can't open file '/x/repro.py': [Errno 2] No such file or directory"
    story = Story().failed("python repro.py", missing).did("Write", {"file_path": "/x/repro.py", "content": text}, "ok")
    assert story.ran("python repro.py").fixes == []
    assert Story().failed("python app.py", TYPE).ran("sed -i '12,14d' app.py").ran("python app.py").fixes == []
    story = Story().failed("python app.py", TYPE).ran("sed -i 's/1/2/' app.py").ran("python app.py")
    assert story.fixes == ["sed -i 's/1/2/' app.py"]


def test_learn_tools_an_edit_that_did_not_fit_is_no_lesson_but_its_command_is() -> None:
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    story = Story().did("Edit", edit, "Error: String to replace not found in file", True).edited("a.py", "xx", "y")
    assert story.fixes == []
    story = Story().did("Edit", edit, "Error: EACCES: permission denied, open 'a.py'", True).ran("chmod u+w a.py")
    assert story.edited("a.py", "x", "y").fixes == ["chmod u+w a.py"]
    story = Story().did("Edit", edit, "Error: EACCES: permission denied, open 'a.py'", True).ran("chmod u+w a.py")
    assert story.edited("b.py", "x", "y").fixes == []


def test_learn_tools_a_patch_and_several_edits_are_shown_by_what_differs() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n ctx\n-old line\n+new line\n*** End Patch"
    story = Story().failed("make").did("apply_patch", {"input": patch}, "ok").ran("make")
    assert story.fixes == ["edited src/a.py: `old line` -> `new line`"]
    block = "<<<<<<< SEARCH\nu8 a;\n=======\nuint8_t a;\n>>>>>>> REPLACE"
    story = Story().failed("make").did("apply_diff", {"path": "x.c", "diff": block}, "ok").ran("make")
    assert story.fixes == ["edited x.c: `u8 a;` -> `uint8_t a;`"]
    edits = [{"old_string": "def f():\n    a\n    z", "new_string": "def f():\n    b\n    z"}, {"old_string": "c"}]
    story = Story().failed("make").did("MultiEdit", {"file_path": "a.py", "edits": edits}, "ok").ran("make")
    assert story.fixes == ["edited a.py: `a` -> `b` and 1 more"]


def test_learn_tools_other_tools_are_matched_by_their_values_and_told_by_what_differs() -> None:
    story = Story().did("send_email", {"to": "a@x.org", "text": "Hi"}, "Error: to must be a list", True)
    assert story.did("send_email", {"to": ["a@x.org"], "text": "Hi"}, "sent").fixes == [
        'called send_email with to=`["a@x.org"]` instead of `a@x.org`'
    ]
    story = Story().did(
        "book", {"when": "2024-05-01T10:00:00", "seat": 4}, "ValueError: unconverted data remains", True
    )
    assert story.did("book", {"when": "2024-05-01 10:00", "seat": 4}, "done").fixes == [
        "called book with when=`2024-05-01 10:00` instead of `2024-05-01T10:00:00`"
    ]


def test_learn_tools_an_argument_that_was_asked_for_is_the_fix() -> None:
    story = Story().did("add_event", {"title": "a"}, "TypeError: missing 1 required argument: 'date'", True)
    assert story.did("add_event", {"title": "a", "color": "red"}, "ok").fixes == []
    assert story.did("add_event", {"title": "b", "date": "May 1"}, "ok").fixes == []
    assert story.did("add_event", {"title": "a", "date": "May 1"}, "ok").fixes[-1].endswith("with date=`May 1`")


def test_learn_tools_a_tool_that_changes_is_a_step_and_one_that_looks_or_thinks_is_none() -> None:
    call = {"user": "ann", "flight": "HAT1"}
    story = Story().did("book_flight", call, "Error: no payment method on file", True)
    story.did("get_user_details", {"user": "ann"}, "{}").did("think", {"thought": "set a card"}, "")
    story.did("TodoWrite", {"todos": [{"content": "add a card"}]}, "ok")
    story.did("add_payment_method", {"user": "ann", "kind": "card"}, "added")
    assert story.did("book_flight", call, "booked").fixes == ["called add_payment_method(user=ann, kind=card)"]


def test_learn_tools_other_names_of_shells_and_editors_work_too() -> None:
    story = Story().did("execute_command", {"cmd": ["bash", "-lc", "python app.py"]}, YAML, True)
    story.did("str_replace_based_edit_tool", {"command": "view", "path": "app.py"}, "…")
    edit = {"command": "str_replace", "path": "app.py", "old_str": "import yaml", "new_str": "import json"}
    story.did("str_replace_based_edit_tool", edit, "ok").did("run_shell", {"command": "python app.py"}, "ok")
    assert story.fixes == ["edited app.py: `import yaml` -> `import json`"]
