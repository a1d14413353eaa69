"""The server: each question, answers that say what is wrong, stores that come and go, slow clients and its end."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from coherence.monitor.monitor import Monitor
from coherence.store.errors import StoreError
from coherence.store.store import Store
from coherence.web import server as server_module
from coherence.web.server import WebServer
from web.serving import WAIT_S, Served, answered, record, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("server") / "runs.db"
    record(path)
    record(path, session="2", steps=1)
    record(path, agent="coder/helper", session="a b/ü%?#&", steps=2)
    with serving(path, version="1.2.3") as found:
        yield found


ONE = "agent=coder&session=1"


def test_about_names_the_store_without_its_folder(served: Served) -> None:
    assert answered(served.client.get("/api/about")) == {"version": "1.2.3", "store": "runs.db", "write": False}


def test_overview_has_a_row_for_each_session_and_filters(served: Served) -> None:
    found = answered(served.client.get("/api/overview"))
    assert found["total"] == found["matched"] == len(found["lines"]) == 3
    # a goal, 4 steps of 3 events and a tick each, the refused call and its tick
    assert {line["session"] for line in found["lines"]} == {"1", "2", "a b/ü%?#&"}
    one = answered(served.client.get("/api/overview", params={"agent": "coder", "sort": "steps", "limit": 1}))
    assert one["matched"] == 2 and [line["session"] for line in one["lines"]] == ["1"]
    assert answered(served.client.get("/api/overview?text=no+such+words"))["matched"] == 0
    assert answered(served.client.get("/api/overview?agent=&band=&since="))["matched"] == 3


@pytest.mark.parametrize("writes", [True, False])
def test_serve_forever_counts_what_an_earlier_version_wrote_if_it_may_write(tmp_path: Path, writes: bool) -> None:
    path = tmp_path / "runs.db"
    record(path)
    count = "SELECT count(*) FROM tallies"
    with Store(path) as store:
        with store.transaction() as transaction:
            for table in ("tallies", "points", "marks"):  # as a store of such a version has them
                transaction.execute(f"DELETE FROM {table}")
        with serving(path, writes=writes) as found:
            assert answered(found.client.get("/api/overview"))["lines"][0]["steps"] == 8  # 4 calls, 4 messages
            end = time.monotonic() + (WAIT_S if writes else 0.5)
            while (counted := list(store.fetch(count)) == [(1,)]) != writes and time.monotonic() < end:
                time.sleep(0.02)
            assert counted == writes


def test_session_is_found_by_whatever_name_it_has(served: Served) -> None:
    found = answered(served.client.get("/api/session", params={"agent": "coder/helper", "session": "a b/ü%?#&"}))
    assert found["line"]["agent"] == "coder/helper" and found["line"]["goal"] == "fix the login test"
    assert len(found["refusals"]) == 1


def test_session_that_is_none_names_the_nearest(served: Served) -> None:
    answer = served.client.get("/api/session?agent=codr&session=1")
    assert answer.status_code == 404 and "coder/1" in answer.json()["error"]


def test_timeline_events_and_step_show_parts_of_a_session(served: Served) -> None:
    timeline = answered(served.client.get(f"/api/timeline?{ONE}&points=3"))
    assert 1 <= len(timeline["points"]) <= 3
    events = answered(served.client.get(f"/api/events?{ONE}&after=1&limit=2"))
    assert [event["seq"] for event in events] == [2, 3]
    assert [e["kind"] for e in answered(served.client.get(f"/api/events?{ONE}&kind=goal"))] == ["goal"]
    step = answered(served.client.get(f"/api/step?{ONE}&seq=3"))
    assert step["first"] <= 3 <= step["last"] and step["events"]
    assert served.client.get(f"/api/step?{ONE}&seq=9999").status_code == 404


def test_compare_shows_two_sessions(served: Served) -> None:
    found = answered(served.client.get("/api/compare?a=coder&b=1&c=coder&d=2"))
    assert (found["one"]["line"]["session"], found["other"]["line"]["session"]) == ("1", "2")


def test_rooms_answer_where_there_is_little_to_show(served: Served) -> None:
    assert {agent["agent"] for agent in answered(served.client.get("/api/fleet"))["agents"]} == {
        "coder",
        "coder/helper",
    }
    assert answered(served.client.get("/api/guard"))["agents"] == []
    assert isinstance(answered(served.client.get("/api/lessons?text=yaml")), list)
    assert answered(served.client.get("/api/experiments"))[0]["firings"] >= 1


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("overview?band=blue", "band: invalid enum value 'blue'; expected one of green, yellow, orange, red, unknown"),
        ("overview?limit=0", "limit: expected `int` >= 1"),
        ("overview?limit=1001", "limit: expected `int` <= 1000"),
        ("overview?limit=many", "limit: expected `int`, got `str`"),
        ("overview?since=nan", "since: expected `float`"),
        ("overview?nonsense=1", "nonsense: no such field; there are: agent, band, rule"),
        ("overview?agent=a&agent=b", "agent: given twice"),
        ("overview?agent=%ff", "malformed parameters"),
        ("overview?agent", "malformed parameters"),
        (f"overview?text={'x' * 1_001}", "text: expected `str` of length <= 1000"),
        ("session?agent=coder", "the request missing required field `session`"),
        (f"step?{ONE}&seq=0", "seq: expected `int` >= 1"),
        (f"step?{ONE}&seq={2**63}", "seq: "),
        (f"timeline?{ONE}&points=5001", "points: expected `int` <= 5000"),
        ("fleet?x=1", "x: no such field; there are: none"),
        ("overview?" + "&".join(f"a{n}=1" for n in range(60)), "malformed parameters"),
    ],
)
def test_queries_say_what_is_wrong_with_a_parameter(served: Served, query: str, says: str) -> None:
    answer = served.client.get(f"/api/{query}")
    assert answer.status_code == 400 and says in answer.json()["error"], answer.text


def test_queries_are_bounded(served: Served) -> None:
    assert served.client.get(f"/api/overview?text={'x' * 17_000}").status_code == 414


def test_answers_are_compressed_where_they_are_large_and_the_client_takes_it(served: Served) -> None:
    plain = served.client.get("/api/overview", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and len(plain.content) > 1_024
    with served.client.stream("GET", "/api/overview", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip" and answer.headers["vary"] == "accept-encoding"
        packed = b"".join(answer.iter_raw())
    lines = json.loads(gzip.decompress(packed))["lines"]
    assert [line["strip"] for line in lines] == [line["strip"] for line in json.loads(plain.content)["lines"]]
    small = served.client.get("/api/about", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


def test_shell_is_served_at_every_address_of_the_page(served: Served) -> None:
    paths = ("/", "/session/coder/1?step=3", "/session/a%2Fb/c%20d", "/compare", "/fleet", "/lessons", "/guard")
    first = served.client.get("/")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    for path in (*paths, "/experiments"):
        assert served.client.get(path).content == first.content
    again = served.client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304 and again.content == b""


def test_assets_are_those_of_the_package_with_their_types(served: Served) -> None:
    folder = Path(server_module.__file__).parent / "static"
    kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    found = [each for each in folder.iterdir() if each.suffix in kinds]
    assert {each.suffix for each in found} >= {".js", ".css"}
    for each in found:
        answer = served.client.get(f"/static/{each.name}")
        assert answer.content == each.read_bytes() and answer.headers["content-type"] == kinds[each.suffix]


def test_methods_that_change_nothing_here_are_refused(served: Served) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "POST"):
        assert served.client.request(method, "/api/overview").status_code == 405
    assert served.client.get("/login").status_code == 405
    assert served.client.head("/").status_code == 200


MARKUP = "<script>alert(1)</script>\"'`${x}]]>--><img src=x onerror=alert(1)>\u2028\x07"


def test_texts_of_an_agent_come_back_as_json_in_every_field(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(agent=MARKUP, session=MARKUP, store=path, embedder=False, goal=MARKUP) as monitor:
        for _ in range(4):
            monitor.message("assistant", MARKUP)
            call = monitor.tool_call(MARKUP, {MARKUP: MARKUP})
            monitor.tool_result(f"Error: {MARKUP}", error=True, call=call)
            monitor.decide()
        monitor.check("Bash", {"command": f"rm -rf / # {MARKUP}"})
    named = {"agent": MARKUP, "session": MARKUP}
    with serving(path, writes=True) as served:
        line = answered(served.client.get("/api/overview"))["lines"][0]
        assert line["agent"] == line["session"] == MARKUP and "<script>" in line["goal"]
        for name, more in (("session", {}), ("timeline", {}), ("events", {}), ("step", {"seq": 3})):
            text = served.client.get(f"/api/{name}", params={**named, **more})
            assert answered(text), name
        for name in ("fleet", "lessons", "guard", "experiments"):
            answered(served.client.get(f"/api/{name}"))
        answered(served.post("label", {**named, "label": "bad", "comment": MARKUP}))
        refused = [
            served.client.get("/api/session", params={"agent": MARKUP, "session": "x"}),
            served.client.get("/api/overview", params={"band": MARKUP}),
            served.client.get("/api/overview", params={MARKUP: "x"}),
            served.post("label", {**named, "label": MARKUP}),
            served.post("label-firing", {"id": MARKUP, "label": "good"}),
        ]
    assert [answer.status_code for answer in refused] == [404, 400, 400, 400, 404]
    for answer in refused:
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "this is a folder"),
        (lambda path: path.write_text(""), "not a store"),
        (lambda path: path.write_text("hello"), "not a store"),
        (lambda path: path.write_bytes(b"PK\3\4"), "zip archive"),
        (lambda path: os.mkfifo(path), "no regular file"),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE notes (a)").connection.close(), "another program"),
    ],
    ids=["missing", "folder", "empty", "text", "zip", "pipe", "stranger"],
)
def test_server_refuses_what_is_no_store_and_leaves_it_alone(tmp_path: Path, make: Any, says: str) -> None:
    path = tmp_path / "runs.db"
    make(path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(StoreError, match=says):
        WebServer(path, port=0)
    assert sorted(os.listdir(tmp_path)) == before


def test_server_refuses_a_link_and_names_the_file_behind_it(tmp_path: Path) -> None:
    record(tmp_path / "real.db")
    (tmp_path / "runs.db").symlink_to(tmp_path / "real.db")
    with pytest.raises(StoreError, match=r"symbolic link.*real\.db"):
        WebServer(tmp_path / "runs.db", port=0)


def test_server_says_that_the_store_is_gone_and_goes_on_with_the_one_that_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    record(path)
    record(tmp_path / "other.db", agent="other")
    with serving(path, writes=True) as served:
        assert answered(served.client.get("/api/overview"))["lines"][0]["agent"] == "coder"
        path.unlink()
        gone = served.client.get("/api/overview")
        assert gone.status_code == 503 and gone.json()["error"].startswith("runs.db: no such file")
        refused = served.post("label", {"agent": "coder", "session": "1", "label": "bad"})
        assert refused.status_code == 503 and not path.exists(), "a server makes no store"
        for side in ("-wal", "-shm"):
            Path(f"{path}{side}").unlink(missing_ok=True)
        shutil.move(tmp_path / "other.db", path)
        assert answered(served.client.get("/api/overview"))["lines"][0]["agent"] == "other"
        path.unlink()
        path.write_text("hello, I am something else now")
        odd = served.client.get("/api/overview")
        assert odd.status_code == 503 and "not a store" in odd.json()["error"]
    assert path.read_text() == "hello, I am something else now"


def test_server_goes_on_when_what_it_shows_is_purged(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    record(path)
    record(path, agent="other")
    with serving(path) as served:
        assert answered(served.client.get("/api/overview"))["total"] == 2
        with Store(path) as store:
            store.purge(agent="coder")
        assert [line["agent"] for line in answered(served.client.get("/api/overview"))["lines"]] == ["other"]
        left = served.client.get(f"/api/session?{ONE}")
        assert left.status_code in (200, 404) and "login" not in left.text and "yaml" not in left.text


@pytest.mark.slow
def test_server_says_that_the_store_is_locked_and_answers_once_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    record(path)
    with serving(path, writes=True) as served:
        answered(served.client.get("/api/overview"))
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            body = {"agent": "coder", "session": "1", "label": "bad"}
            began = time.monotonic()
            refused = served.post("label", body)
            assert refused.status_code == 503 and "locked" in refused.json()["error"]
            assert time.monotonic() - began < 10
            assert answered(served.client.get("/api/overview"))["total"] == 1, "a writer is in no reader's way"
            other.execute("ROLLBACK")
            answered(served.post("label", body))
        finally:
            other.close()


def test_server_answers_a_page_while_another_one_waits_for_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    record(path)
    with serving(path) as served:
        answered(served.client.get("/api/overview"))
        entered, leave = threading.Event(), threading.Event()

        def slow(*_: Any, **__: Any) -> Any:
            entered.set()
            leave.wait(WAIT_S)
            return ()

        from coherence.views.views import Views

        monkeypatch.setattr(Views, "experiments", slow)
        waiting = threading.Thread(target=httpx.get, args=(f"{served.base}/api/experiments",),
                                   kwargs={"headers": {"Cookie": served.cookie}, "timeout": WAIT_S})  # fmt: skip
        waiting.start()
        try:
            assert entered.wait(WAIT_S)
            answered(served.client.get("/api/about"))
            answered(served.client.get("/api/overview"))
        finally:
            leave.set()
            waiting.join(WAIT_S)


def test_server_reports_a_fault_of_its_own_without_details(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from coherence.views.views import Views

    def broken(*_: Any) -> Any:
        raise KeyError("/secret/place")

    monkeypatch.setattr(Views, "experiments", broken)
    answer = served.client.get("/api/experiments")
    assert answer.status_code == 500 and "secret" not in answer.text
    assert "/secret/place" in caplog.text


@pytest.mark.slow
def test_connection_that_sends_its_request_drop_by_drop_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "REQUEST_S", 0.5)
    record(tmp_path / "runs.db")
    with serving(tmp_path / "runs.db", writes=True) as served:
        heads = (
            b"",
            b"GET / HTTP/1.1\r\nHost: x",
            f"POST /login HTTP/1.1\r\nHost: {served.host}\r\nOrigin: {served.base}\r\n"
            "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{".encode(),
        )
        for head in heads:
            with socket.create_connection(("127.0.0.1", served.server.port), WAIT_S) as peer:
                peer.sendall(head)
                began = time.monotonic()
                assert closed_while_it_drips(peer), head
                assert time.monotonic() - began < 5
        answered(served.client.get("/api/about"))


def closed_while_it_drips(peer: socket.socket) -> bool:
    peer.settimeout(0.1)
    for _ in range(100):
        try:
            peer.sendall(b"x")
            if peer.recv(65_536) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.slow
def test_connection_of_a_client_that_takes_nothing_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "TAKEN_S", 0.5)
    path = tmp_path / "runs.db"
    record(path)
    with serving(path) as served:
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            peer.connect(("127.0.0.1", served.server.port))
            request = f"GET /api/overview HTTP/1.1\r\nHost: {served.host}\r\nCookie: {served.cookie}\r\n\r\n".encode()
            assert is_closed_while_it_asks(peer, request)
        answered(served.client.get("/api/about"))


def is_closed_while_it_asks(peer: socket.socket, request: bytes) -> bool:
    """Ask again and again, and read nothing."""
    peer.settimeout(0.1)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            peer.sendall(request)
        except TimeoutError:
            continue
        except OSError:
            return True
        time.sleep(0.001)
    return False


@pytest.mark.slow
def test_connections_are_bounded_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 8)
    record(tmp_path / "runs.db")
    with serving(tmp_path / "runs.db") as served:
        answered(served.client.get("/api/about"))
        peers = [socket.create_connection(("127.0.0.1", served.server.port), WAIT_S) for _ in range(20)]
        try:
            answered(served.client.get("/api/about"))
            time.sleep(0.3)
            open_ones = 0
            for peer in peers:
                peer.settimeout(0.05)
                try:
                    open_ones += peer.recv(1) != b""
                except TimeoutError:
                    open_ones += 1
                except ConnectionError:
                    pass
            assert open_ones == 7, "eight with the client's own"
        finally:
            for peer in peers:
                peer.close()
        answered(served.client.get("/api/about"))


def test_body_is_bounded_and_must_be_json(tmp_path: Path) -> None:
    record(tmp_path / "runs.db")
    with serving(tmp_path / "runs.db", writes=True) as served:

        def said(content: bytes, kind: str = "application/json") -> tuple[int, str]:
            answer = served.client.post("/api/label", content=content, headers={"Content-Type": kind})
            return answer.status_code, answer.json()["error"]

        assert said(b"{" + b" " * 70_000 + b"}")[0] == 413
        assert said(b"{}", "text/plain") == (415, "expected application/json, not text/plain")
        assert said(b"a=1", "application/x-www-form-urlencoded")[0] == 415
        assert said(b"")[0] == said(b"\xff")[0] == said(b"[" * 60_000)[0] == said(b"[]")[0] == 400
        assert said(b'{"agent":"coder","session":"1","label":"bad","x":1}')[1].startswith("x: no such field")
        assert said(b'{"agent":"coder","session":"1"}')[1] == "the request missing required field `label`"
        assert said(b'{"agent":"coder","session":"1","label":"Bad"}')[1].endswith("expected one of good, bad")


def test_server_takes_another_port_where_its_own_is_taken_unless_it_was_named(tmp_path: Path) -> None:
    record(tmp_path / "runs.db")
    with WebServer(tmp_path / "runs.db") as first, WebServer(tmp_path / "runs.db") as second:
        assert first.port != second.port
        with pytest.raises(OSError, match="in use"):
            WebServer(tmp_path / "runs.db", port=second.port)


def test_server_listens_on_the_loopback_device_only(served: Served) -> None:
    assert served.server._socket.getsockname()[0] == "127.0.0.1"


def test_server_starts_without_what_measures(tmp_path: Path) -> None:
    record(tmp_path / "runs.db")
    code = (
        "import sys\nfrom pathlib import Path\nfrom coherence.web.server import WebServer\n"
        "with WebServer(Path(sys.argv[1]), port=0): pass\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'faiss', 'tree_sitter', 'rich', 'coherence.monitor.monitor'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "runs.db")], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
