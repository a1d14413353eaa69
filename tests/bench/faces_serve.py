"""Costs of ``coherence serve``: its start, the delay from a record to a page, and its CPU while many agents run.

The server, the agents' writer and the pages are processes of their own. Rows of real monitors are written again into
the sessions of many agents, a few events at a time as monitors do, at a steady rate. A page follows the feed, and asks
for what it shows again at each message, as the page in a browser does: with a gap of 0.3 s, and at most half the time.
Linux only: CPU seconds are read from /proc.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from showing import say

from coherence.monitor.monitor import Monitor
from coherence.store.rows import EventRow
from coherence.store.store import Store

BATCH = 5
"""Events that an agent writes at once."""

GAP_S = 0.3
TICKS = os.sysconf("SC_CLK_TCK")


def template(folder: Path) -> tuple[str, list[EventRow]]:
    """Return settings and events of a real monitor, with their readings and decisions."""
    path = folder / "template.db"
    with Monitor(agent="a", store=path, embedder=False, goal="fix the login test") as monitor:
        for number in range(40):
            monitor.message(
                "assistant", f"I look at part {number} of the test, which waits for an answer of the server."
            )
            call = monitor.tool_call("Bash", {"command": f"pytest -q tests/test_{number}.py"})
            monitor.tool_result(f"{number} passed, 1 failed: the login page has no title", call=call)
            monitor.decide()
    with Store(path) as store:
        row = store.session("a")
        assert row is not None
        return row.config, [event for event in store.events(row.id) if event.firing is None and not event.outcomes]


def write(path: Path, agents: int, rate: float, seconds: float) -> None:
    """Write events of many agents at a rate; print the time and the newest position after each transaction."""
    config, rows = template(path.parent)
    with Store(path, synchronous="NORMAL") as store:
        with store.transaction() as transaction:
            sessions = [
                transaction.add_session(
                    agent=f"agent-{number}",
                    session=f"live-{time.time_ns()}",
                    parent=None,
                    source="api",
                    started=time.time(),
                    config=config,
                )
                for number in range(agents)
            ]
        print(sessions[7 % agents].session, flush=True)
        sys.stdin.readline()
        step = BATCH / (agents * rate)
        begin, place = time.monotonic(), dict.fromkeys(range(agents), 0)
        for turn in range(int(seconds / step)):
            wait = begin + turn * step - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            number = turn % agents
            with store.transaction() as transaction:
                first = transaction.last_seq(sessions[number].id) + 1
                now = time.time()
                batch = [
                    EventRow(first + offset, now, row.kind, row.data, row.reading, row.decision)
                    for offset, row in enumerate(rows[(place[number] + each) % len(rows)] for each in range(BATCH))
                ]
                place[number] += BATCH
                transaction.add_events(sessions[number], batch)
            newest = store.fetch("SELECT max(id) FROM events")[0][0]
            print(time.time(), newest, flush=True)
        print("took", time.monotonic() - begin, flush=True)


class Server:
    """The command as a process, and how long it took to start."""

    def __init__(self, path: Path) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "coherence", "serve", str(path), "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.printed_s = time.perf_counter() - began
        found = re.search(r"http://(127\.0\.0\.1):(\d+)/#token=(\S+)", said)
        assert found is not None, said
        self.port, token = int(found[2]), found[3]
        self.host = f"127.0.0.1:{self.port}"
        self.get("/", "")
        self.first_byte_s = time.perf_counter() - began
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {"Origin": f"http://{self.host}", "Content-Type": "application/json"}
        connection.request("POST", "/login", json.dumps({"token": token}), headers)
        self.cookie = connection.getresponse().headers["set-cookie"].partition(";")[0]
        self.get("/api/overview", self.cookie)
        self.overview_s = time.perf_counter() - began

    def get(self, path: str, cookie: str) -> bytes:
        """Return the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        assert answer.status == 200, (path, answer.status, answer.read())
        return answer.read()

    def cpu_s(self) -> float:
        """Return the CPU seconds of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        """Return the memory of the process in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Page:
    """A page: it follows the feed, and asks again for what it shows."""

    def __init__(self, server: Server, shown: tuple[str, ...]) -> None:
        self.server, self.shown = server, shown
        self.heard: list[tuple[float, int]] = []
        """Time and position of each message."""
        self.seen: list[tuple[float, int]] = []
        """Time at which what is shown was there again, and the position that it was asked for."""
        self.ended = threading.Event()
        self._news = threading.Event()
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        threading.Thread(target=self._listen, daemon=True).start()
        if shown:
            threading.Thread(target=self._show, daemon=True).start()

    def _listen(self) -> None:
        head = f"GET /api/live HTTP/1.1\r\nHost: {self.server.host}\r\nCookie: {self.server.cookie}\r\n\r\n"
        self.socket.sendall(head.encode())
        for line in self.socket.makefile("rb"):
            if self.ended.is_set():
                return
            if line.startswith(b'data: {"newest"'):
                self.heard.append((time.time(), json.loads(line[6:])["newest"]))
                self._news.set()

    def _show(self) -> None:
        while not self.ended.is_set():
            self._news.wait()
            self._news.clear()
            newest = self.heard[-1][1]
            began = time.perf_counter()
            for path in self.shown:
                self.server.get(path, self.server.cookie)
            self.seen.append((time.time(), newest))
            time.sleep(max(GAP_S, time.perf_counter() - began))


def delays(written: list[tuple[float, int]], told: list[tuple[float, int]]) -> list[float]:
    """Return for each transaction the seconds until a page was told of it."""
    found, place = [], 0
    for when, newest in written:
        while place < len(told) and told[place][1] < newest:
            place += 1
        if place < len(told):
            found.append(max(told[place][0] - when, 0.0))
    return found


def follow(path: Path, name: str, shown: tuple[str, ...], arguments: argparse.Namespace) -> None:
    """Measure while agents write and one page is open."""
    command = [sys.executable, __file__, "--write-to", str(path), "--seconds", str(arguments.seconds),
               "--agents", str(arguments.agents), "--rate", str(arguments.rate)]  # fmt: skip
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdin is not None and writer.stdout is not None
    session = writer.stdout.readline().strip()
    shown = tuple(each.format(session=session) for each in shown)
    server = Server(path)
    page = Page(server, shown)
    time.sleep(2)
    page.heard.clear()
    before, began = server.cpu_s(), time.perf_counter()
    writer.stdin.write("go\n")
    writer.stdin.flush()
    written, took = [], 0.0
    for line in writer.stdout:
        one, _, other = line.partition(" ")
        if one == "took":
            took = float(other)
            break
        written.append((float(one), int(other)))
    used, passed = server.cpu_s() - before, time.perf_counter() - began
    time.sleep(1.5)
    page.ended.set()
    heard = sorted(delays(written, page.heard))
    seen = sorted(delays(written, page.seen)) if shown else []
    rate = len(written) * BATCH / took
    say(f"{name}: {rate:.0f} events/s of {arguments.agents} agents")
    say(f"  CPU of the server: {100 * used / passed:.1f} % of one core; memory {server.memory_mb():.0f} MB")
    say(f"  from record to message: {_spread(heard)}; {len(page.heard) / passed:.1f} messages/s")
    if seen:
        say(f"  from record to answers: {_spread(seen)}; {len(page.seen) / passed:.1f} times/s")
    server.process.terminate()
    server.process.wait(20)
    writer.wait(20)


def _spread(values: list[float]) -> str:
    middle, high = statistics.median(values), values[int(0.99 * (len(values) - 1))]
    return f"median {1e3 * middle:.0f} ms, 99 % {1e3 * high:.0f} ms, most {1e3 * values[-1]:.0f} ms"


def main() -> None:
    """Measure, or write for another process that does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--rate", type=float, default=20.0, help="events of an agent in a second")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--write-to", type=Path)
    arguments = parser.parse_args()
    if arguments.write_to is not None:
        write(arguments.write_to, arguments.agents, arguments.rate, arguments.seconds)
        return
    say(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "runs.db"
        with Monitor(agent="a", store=path, embedder=False, goal="say hello") as monitor:
            monitor.message("assistant", "Hello.")
            monitor.decide()
        for _ in range(3):
            server = Server(path)
            say(
                f"start: address printed after {1e3 * server.printed_s:.0f} ms, first page after "
                f"{1e3 * server.first_byte_s:.0f} ms, first overview after {1e3 * server.overview_s:.0f} ms"
            )
            before = server.cpu_s()
            time.sleep(2)
            began = time.perf_counter()
            server.process.terminate()
            server.process.wait(20)
            say(f"  ends {1e3 * (time.perf_counter() - began):.0f} ms after the signal; CPU before: {before:.2f} s")
        follow(path, "feed alone", (), arguments)
        follow(path, "overview open", ("/api/overview",), arguments)
        one = "agent=agent-7&session={session}"
        page = (f"/api/session?{one}", f"/api/timeline?{one}", f"/api/events?{one}&limit=100")
        follow(path, "session open", page, arguments)


if __name__ == "__main__":
    main()
