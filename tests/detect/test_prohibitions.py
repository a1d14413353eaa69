"""Prohibitions in many wordings, and calls and answers that break or keep them.

``tests/policy/test_gate_figures.py`` holds how many of other writers' wordings are seen.
"""

from __future__ import annotations

import time
from typing import Any, TypeAlias

import msgspec
import pytest

from coherence.core.events import Correction, Goal, Message, ToolCall, ToolResult
from coherence.detect.detector import Observed
from coherence.detect.prohibitions import BrokenProhibition, ProhibitionDetector, ProhibitionFacts
from coherence.detect.restrictions import prohibitions

Deed: TypeAlias = str | tuple[str, dict[str, Any]]
"""An answer, or a tool with its arguments."""


def told(*texts: str) -> ProhibitionDetector:
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Goal(texts[0]), 1))
    for seq, text in enumerate(texts[1:], 2):
        detector.observe(Observed.of(Message("user", text), seq))
    return detector


def after(detector: ProhibitionDetector, deed: Deed) -> BrokenProhibition | None:
    """Return what an answer or a call, event 50, breaks."""
    made = Message("assistant", deed) if isinstance(deed, str) else _call(*deed)
    detector.observe(Observed.of(made, 50))
    return detector.data.newest


def _call(tool: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), "1")


def edit(path: str, old: str = "a", new: str = "b") -> Deed:
    return ("edit_file", {"path": path, "old_str": old, "new_str": new})


def run(command: str) -> Deed:
    return ("bash", {"command": command})


def mail(*to: str, **more: Any) -> Deed:
    return ("send_email", {"to": list(to), "subject": "News", "body": "Hello", **more})


STAYS = ("change", "remove", "add", "cancel", "close", "restart", "open", "book", "other", "publish")


@pytest.mark.parametrize(
    ("text", "acts", "objects"),
    [
        ("Do not touch the tests.", ("change",), ("test",)),
        ("No new dependencies.", ("install",), ()),
        ("No logging.", ("any", "have"), ("logg",)),
        ("Do not add comments, tests or logs.", ("add",), ("comment",)),  # and two more
        ("My address must stay the same.", STAYS, ("addres",)),
        ("Keep all databases.", ("remove",), ("databas",)),
        ("The invoices must not be deleted.", ("remove",), ("invoic",)),
        ("I don't want to be transferred.", ("handover",), ()),
        ("We are planning. No code changes. Start with questions.", ("change", "remove"), ("chang", "code")),
        ("Hanna's address book is for looking up; leave its entries unchanged.", STAYS, ("addressbook",)),
        ("Lösche die Tabelle nicht.", ("remove",), ("tabell",)),
        ("Could you please not touch the tests?", ("change",), ("test",)),
        ("Don't share my full address.", ("have", "mention", "send"), ("full", "addres")),
    ],
)
def test_prohibitions_name_act_and_object(text: str, acts: tuple[str, ...], objects: tuple[str, ...]) -> None:
    found = next(prohibitions(text))
    assert (found.acts, set(found.objects)) == (acts, set(objects))


@pytest.mark.parametrize(
    "text",
    [
        "Users do not delete their accounts.",
        "Do not send it unless I say so.",
        "Don't hesitate to change the plan.",
        "Do not change it.",  # what, nobody can tell
        "Should I not delete it?",
        "Can you look into the details without the order ID?",
        "The cabin can be changed without changing the flights.",
        "A guest can be changed, but you cannot change the number of guests.",  # which is in no call
        "Shut down cleanly. Stop the watcher.",
        "Send it to Suite 641; I don't want to share my full address.",
        "No worries!",
        "Send at most s\u0131x mails.",  # matches "six" in any case
    ],
)
def test_prohibitions_pass_over_what_describes_or_has_a_condition(text: str) -> None:
    assert [each for each in prohibitions(text) if each.acts != ("have",)] == []


REFUND = ("transfer_to_human_agents", {"summary": "x"})
SIGNATURE = "Keep the function signatures unchanged."
HALL = ("create_draft", {"to": "hall@x.example", "body": "Hi"})


@pytest.mark.parametrize(
    ("goal", "broken", "kept"),
    [
        ("Do not touch the tests.", edit("tests/test_a.py"), edit("src/a.py", new="the tests")),
        ("Do not touch the tests.", run("sed -i s/a/b/ tests/test_a.py"), ("read_file", {"path": "tests/test_a.py"})),
        ("Do not touch the tests.", run("echo x > spec/a_test.go"), run("pytest tests && sed -n 1,9p tests/a.py")),
        ("You can change everything but the tests.", edit("tests/test_a.py"), edit("src/a.py")),
        ("Fix the typo. Stick to src/parser.py.", edit("src/lexer.py"), edit("src/parser.py")),
        ("No new dependencies.", run("cd app && npm install lodash"), run("npm run build")),
        ("Draw the chart in vanilla JS.", run("npm install d3"), edit("chart.js")),
        ("Keep all databases.", ("sql", {"query": "DROP DATABASE crm"}), ("sql", {"query": "SELECT 1"})),
        ("Deploy, but never to production.", run("kubectl apply -n production"), run("kubectl apply -n staging")),
        ("Don't force-push.", run("git push --force origin x"), run("git push origin x")),
        ("Commit if you like, but nothing gets pushed.", run("git commit -am x && git push"), run("git commit -am x")),
        ("Write the migration, but don't run it.", run("python manage.py migrate"), edit("app/migrations/004.py")),
        ("Find the largest file. Work offline.", run("curl https://x.example"), run("du -a | sort -n | tail -1")),
        ("No logging.", edit("a.py", "x = 1", "import logging"), edit("a.py", "import logging", "x = 1")),
        (SIGNATURE, edit("a.py", "def f(a):", "def f(b):"), edit("a.py", "def f(a):\n 1", "def f(a):")),
        ("Send it to Lena. Don't cc the boss.", mail("l@x.io", cc=["boss@x.io"]), mail("l@x.io")),
        ("Draft a reply to Mr. Hall. I'll send it myself.", mail("hall@x.example"), HALL),
        ("I don't want to be transferred.", REFUND, ("get_order", {"id": 1})),
        ("Do not spend more than $40.", ("buy_item", {"price": 41.5}), ("buy_item", {"price": 40})),
        ("Spend at most zero euros.", ("buy_item", {"price": 1}), ("buy_item", {"price": 0})),
        ("Send at most dreißig mails.", ("send", {"count": 31}), ("send", {"count": 30})),
        ("Never above 22 degrees.", ("set_heating", {"temperature": 24}), ("set_heating", {"temperature": 21})),
        ("Book a table, no later than 20:00.", ("book", {"time": "21:30"}), ("book", {"time": "19:30"})),
        ("Buy paper. Nothing from Amazon.", ("buy", {"shop": "Amazon"}), ("buy", {"shop": "Otto"})),
        ("Mach überall das Licht aus, nur nicht im Bad.", ("licht", {"raum": "Bad"}), ("licht", {"raum": "Küche"})),
        ("Räum auf, aber lösche nichts endgültig.", run("rm a.txt"), run("gio trash a.txt")),
        ("Aggiorna il sito, ma non toccare il database.", run("mysql -e 'DROP DATABASE a'"), edit("site/index.html")),
        ("Todavía no envíes nada.", mail("a@b.example"), ("guardar_borrador", {"texto": "Hola"})),
        ("Ne contacte pas les clients.", mail("jean@free.example"), ("get_client", {"id": 1})),
        ("整理代码,不要动测试文件。", edit("tests/test_a.py"), edit("src/a.py")),
        ("Answer without naming the supplier.", "The supplier was late.", "The goods came late."),
        ("Answer in at most 6 words.", "one two three four five six seven eight", "It is 5."),
        ("Explain DNS in two sentences at most.", "It maps names. It caches. It is old.", "It maps. It caches."),
        ("Explain without formulas.", "The energy is E = m*c^2.", "Energy grows with mass."),
        ("No links in your answer.", "See https://x.io", "See the docs"),
        ("Don't mention prices.", "It costs $5.", "It is cheap."),
        ("Erklär mir DNS. Kein Markdown.", "**DNS** löst Namen auf.", "DNS löst Namen auf."),
        ("Réponds uniquement en français.", "The parcel arrives on Monday, and you can track it.", "Le colis est là."),
    ],
)
def test_prohibition_detector_sees_the_call_or_answer_that_breaks_one(goal: str, broken: Deed, kept: Deed) -> None:
    found = after(told(goal), broken)
    assert found is not None and (found.other, found.seq) == (1, 50) and found.sentence in goal
    assert after(told(goal), kept) is None


def test_prohibition_detector_knows_its_own_company_by_the_addresses_it_sees() -> None:
    detector = told("I am emma@blue.example. Do not write to anybody outside our company.")
    detector.observe(Observed.of(ToolResult("from: tom@blue.example\nto: emma@blue.example"), 3))
    assert after(detector, ("send_email", {"recipients": ["tom@blue.example"]})) is None
    assert after(detector, ("send_email", {"recipients": ["tom@other.example"]})) is not None


def test_prohibition_detector_finds_a_record_by_the_id_that_a_result_gave_it() -> None:
    detector = told("Shift my appointments. The one with Dr. Okafor must stay where it is.")
    listed = '[{"id":"e1","title":"Budget"},{"id":"e2","title":"Dr. Okafor"}]'
    detector.observe(Observed.of(ToolResult(listed, call_id="a"), 2))
    assert after(detector, ("update_event", {"id": "e1", "date": "2025-09-19"})) is None
    assert after(detector, ("update_event", {"id": "e2", "date": "2025-09-19"})) is not None


@pytest.mark.parametrize(
    ("policy", "tool", "arguments"),
    [
        ("Basic economy flights cannot be modified.", "update_flights", {"cabin": "economy", "flight": "HAT003"}),
        ("If a flight is flying, it has taken off, cannot be booked.", "book_flight", {"flight": "HAT003"}),
        ("Each booking can use at most one travel certificate.", "send_certificate", {"amount": 50}),
    ],
)
def test_prohibition_detector_a_policy_of_a_kind_of_thing_forbids_no_single_call(
    policy: str, tool: str, arguments: dict[str, Any]
) -> None:
    detector = told("Book a flight.")
    detector.observe(Observed.of(Message("system", policy), 2))
    assert after(detector, (tool, arguments)) is None


def test_prohibition_detector_a_later_request_lifts_it_and_another_goal_forgets_it() -> None:
    deploy = ("deploy", {"version": "3.2"})
    assert after(told("Do not deploy yet."), deploy) is not None
    assert after(told("Do not deploy yet.", "Fine, now deploy it."), deploy) is None
    detector = told("Do not deploy yet.")
    detector.observe(Observed.of(Goal("Something else"), 9, goal="x"))
    assert after(detector, deploy) is None


def test_prohibition_detector_hears_corrections_and_the_system_text_for_every_goal() -> None:
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Message("system", "You help customers. Never issue refunds yourself."), 1))
    detector.observe(Observed.of(Goal("My mug is broken"), 2))
    assert after(detector, ("deploy", {})) is None
    detector.observe(Observed.of(Correction("Never deploy on your own."), 3))
    for deed, sentence in ((("issue_refund", {"order": 7}), "refunds"), (("deploy", {}), "deploy")):
        found = after(detector, deed)
        assert found is not None and sentence in found.sentence


def test_prohibition_detector_its_data_is_bounded_and_stored() -> None:
    detector = told("".join(f"Do not delete table{at}. " for at in range(300)))
    assert len(detector.data.standing) == 24
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(detector.data), type=ProhibitionFacts) == detector.data
    detector.renumber()
    assert {each.seq for each in detector.data.standing} == {0}


@pytest.mark.parametrize(
    "piece", ["a", "do not ", "Do not delete a. ", "keep ", "a@b.c ", "> a/b ", "without editing "]
)
def test_prohibition_detector_a_megabyte_takes_no_longer_than_its_beginning(piece: str) -> None:
    long = piece * (1_000_000 // len(piece))
    begun = time.thread_time()
    detector = told(long)
    assert time.thread_time() - begun < 0.25  # 50 ms on a quiet machine
    begun = time.thread_time()
    after(detector, run(long))
    after(detector, ("edit_file", {"path": long, "content": long}))
    assert time.thread_time() - begun < 0.5


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("Payments are approved by the treasurer.", [("pay",)]),
        ("REFUNDS ARE GRANTED BY THE MANAGER.", [("pay",)]),
        ("Contracts are done by people.", [("any", "have")]),
        ("The paper is written by the book.", []),
    ],
)
def test_prohibitions_what_people_alone_do_is_forbidden(text: str, acts: list[tuple[str, ...]]) -> None:
    assert [found.acts for found in prohibitions(text)] == acts
