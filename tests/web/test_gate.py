"""The gate: strangers' requests end there, whatever they try."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from coherence.web.gate import HEADERS
from web.serving import Served, answered, record, serving

SECRET = "no page shows this line"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gate")
    record(folder / "runs.db")
    (folder / "secret.txt").write_text(SECRET)
    with serving(folder / "runs.db", writes=True, host_names=["dev.example:8443", "box"]) as found:
        yield found


def names(served: Served) -> list[str]:
    port = served.server.port
    return [f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}", "dev.example:8443", "box"]


def test_gate_takes_requests_for_names_of_this_server(served: Served) -> None:
    for host in names(served):
        status, body = served.raw("GET", "/api/about", {"Host": host, "Cookie": served.cookie})
        assert status == 200, (host, body)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}.evil.example", "[::1]",
     "127.0.0.1:{port}@evil.example", "0.0.0.0:{port}", "127.0.0.2:{port}", "dev.example", "", " "],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/about", "/static/theme.js", "/login", "/nothing"])
def test_gate_refuses_a_name_that_leads_here_by_dns_rebinding(served: Served, host: str, path: str) -> None:
    named = host.format(port=served.server.port)
    status, body = served.raw("GET", path, {"Host": named, "Cookie": served.cookie})
    assert status == 421 and b"another name" in body


def test_gate_refuses_a_request_without_a_host_or_with_two(served: Served) -> None:
    status, body = served.raw("GET", "/", {})
    assert status == 400 and b"no valid HTTP" in body
    status, body = served.raw("GET", "/", {"Host": served.host, "host": "evil.example"})
    assert status in (400, 421) and b"html" not in body


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "http://127.0.0.1:1", "file://", "http://localhost.evil.example",
     "ftp://127.0.0.1:{port}", "http://127.0.0.1:{port}/", "http://127.0.0.1:{port}.evil.example"],
)  # fmt: skip
def test_gate_refuses_requests_of_other_origins(served: Served, origin: str) -> None:
    headers = {"Host": served.host, "Cookie": served.cookie, "Origin": origin.format(port=served.server.port)}
    for method, path in (("GET", "/api/overview"), ("GET", "/"), ("POST", "/api/label"), ("POST", "/login")):
        body = b"{}" if method == "POST" else None
        status, said = served.raw(method, path, {**headers, "Content-Type": "application/json"}, body)
        assert status == 403, (method, path, said)


def test_gate_refuses_a_change_that_does_not_say_where_it_comes_from(served: Served) -> None:
    headers = {"Host": served.host, "Cookie": served.cookie, "Content-Type": "application/json"}
    status, body = served.raw("POST", "/api/label", headers, b'{"agent":"coder","session":"1","label":"bad"}')
    assert status == 403 and b"Origin" in body
    assert answered(served.client.get("/api/overview"))["lines"][0]["label"] is None


def test_gate_refuses_what_a_browser_says_is_of_another_site_but_a_link_to_a_page(served: Served) -> None:
    def status(path: str, **headers: str) -> int:
        named = {f"Sec-Fetch-{name.title()}": value for name, value in headers.items()}
        return served.raw("GET", path, {"Host": served.host, "Cookie": served.cookie, **named})[0]

    for site in ("cross-site", "same-site", "unheard-of"):
        assert status("/api/overview", site=site, mode="cors", dest="empty") == 403
        assert status("/api/overview", site=site, mode="navigate", dest="document") == 403
        assert status("/static/theme.js", site=site, mode="no-cors", dest="script") == 403
        assert status("/static/theme.js", site=site, mode="navigate", dest="document") == 403
        assert status("/", site=site, mode="navigate", dest="iframe") == 403
        assert status("/", site=site, mode="navigate", dest="document") == 200
    assert status("/api/overview", site="same-origin", mode="cors", dest="empty") == 200
    assert status("/api/about", site="none", mode="navigate", dest="document") == 200


PATHS = ["about", "overview", "session?agent=coder&session=1", "live", "fleet", "lessons", "guard", "experiments",
         "nothing", ""]  # fmt: skip


@pytest.mark.parametrize("cookie", [None, "", "coherence_{port}=", "coherence_{port}=wrong", "coherence_1={value}",
                                    "{value}", "coherence_{port}=\xff", "coherence_{port}={value}x",
                                    "a=" + "a" * 9_000 + "; coherence_{port}={value}"])  # fmt: skip
def test_gate_gives_no_data_without_the_cookie(served: Served, cookie: str | None) -> None:
    headers = {"Host": served.host}
    if cookie is not None:
        value = served.cookie.partition("=")[2]
        headers["Cookie"] = cookie.format(port=served.server.port, value=value)
    for path in PATHS:
        status, body = served.raw("GET", f"/api/{path}", headers)
        assert status == 401 and b"not logged in" in body, path


def test_gate_takes_the_cookie_beside_one_of_the_same_name_that_another_server_has_set(served: Served) -> None:
    name = served.cookie.partition("=")[0]
    status, _ = served.raw("GET", "/api/about", {"Host": served.host, "Cookie": f"{name}=other; {served.cookie}"})
    assert status == 200


@pytest.mark.parametrize("token", ["", "wrong", "é", "\0", "x" * 300])
def test_login_refuses_a_wrong_token(served: Served, token: str) -> None:
    answer = httpx.post(f"{served.base}/login", json={"token": token}, headers={"Origin": served.base})
    assert answer.status_code in (400, 401) and "set-cookie" not in answer.headers
    almost = served.token[:-1] + ("A" if served.token[-1] != "A" else "B")
    answer = httpx.post(f"{served.base}/login", json={"token": almost}, headers={"Origin": served.base})
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


def test_login_gives_a_cookie_that_no_script_reads_and_no_other_site_sends(served: Served) -> None:
    answer = httpx.post(f"{served.base}/login", json={"token": served.token}, headers={"Origin": served.base})
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert attributes == ["Path=/api", "HttpOnly", "SameSite=Strict"]
    # 32 bytes in base64 without padding: 43 letters
    assert len(served.token) == 43 and len(name.partition("=")[2]) == 43
    assert served.token not in name
    tls = httpx.post(
        f"{served.base}/login", json={"token": served.token}, headers={"Origin": "https://dev.example:8443"}
    )
    assert "Secure" in tls.headers["set-cookie"].split("; ")


def test_gate_gives_every_answer_its_headers(served: Served) -> None:
    answers = [
        served.client.get("/"),
        served.client.get("/api/overview"),
        served.client.get("/api/nothing"),
        served.client.get("/static/nothing"),
        served.client.get("/api/session?agent=x&session=y"),
        served.client.post("/login", json={}),
        served.client.get("/", headers={"Host": "evil.example"}),
        served.client.delete("/api/overview"),
        httpx.get(f"{served.base}/api/overview"),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 404, 404, 400, 421, 405, 401]
    for answer in answers:
        for name, value in HEADERS:
            assert answer.headers[name] == value
        assert "server" not in answer.headers
        assert answer.headers["cache-control"] == ("no-cache" if answer is answers[0] else "no-store")
        assert "access-control-allow-origin" not in answer.headers


TRAVERSALS = ["../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "%2e%2e%2fsecret.txt", "..%5csecret.txt",
              "%252e%252e%252fsecret.txt", "....//secret.txt", "%c0%ae%c0%ae/secret.txt", "/etc/passwd",
              "%2fetc%2fpasswd",
              "../runs.db", "..%2f..%2fapp.py", "../app.py", "../__init__.py", "index.html%00.js", "index.html/",
              ".", "..", "", "C:%5cWindows%5cwin.ini", "file:///etc/passwd", "~/.ssh/id_rsa", "app.py"]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
@pytest.mark.parametrize("prefix", ["/static/", "/", "/api/", "//", "/session/../static/", "/static/./"])
def test_assets_no_path_leads_to_a_file_outside(served: Served, prefix: str, path: str) -> None:
    status, body = served.raw("GET", prefix + path, {"Host": served.host, "Cookie": served.cookie})
    held = (SECRET.encode(), b"root:", b"SQLite format", b"import ", b"PRIVATE KEY")
    assert not any(each in body.replace(b"@import ", b"") for each in held)
    # the page itself, or nothing
    assert status in (400, 404) or (status == 200 and body.startswith(b"<!doctype html>"))


@pytest.mark.parametrize("target", ["http://evil.example/", "*", "http://127.0.0.1/etc/passwd", "/a b", "/\x01"])
def test_gate_survives_odd_targets(served: Served, target: str) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", served.server.port), 10) as peer:
        peer.sendall(f"GET {target} HTTP/1.1\r\nHost: {served.host}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: peer.recv(65_536), b""))
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
    assert b"content-security-policy" in answer.lower()


def test_gate_opens_no_websocket(served: Served) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    assert served.raw("GET", "/", {"Host": served.host, **upgrade})[0] == 200
    assert served.raw("GET", "/api/live", {"Host": served.host, **upgrade})[0] == 401
    assert served.raw("GET", "/", {"Host": "evil.example", **upgrade})[0] == 421
