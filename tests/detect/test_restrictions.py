"""Restricting clauses in many wordings, each with what breaks it and what keeps to it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coherence.core.events import Goal, Message, ToolCall, ToolResult
from coherence.detect.detector import Observed
from coherence.detect.prohibitions import ProhibitionDetector
from coherence.detect.restrictions import prohibitions

Deed = str | tuple[str, dict[str, Any]]


def edit(path: str) -> Deed:
    return ("edit_file", {"path": path, "old": "a", "new": "b"})


def run(command: str) -> Deed:
    return ("bash", {"command": command})


def mail(*to: str, body: str = "Hello", **more: Any) -> Deed:
    return ("send_email", {"to": list(to), "subject": "News", "body": body, **more})


WORDINGS: list[tuple[str, Deed, Deed]] = [
    ("Get the build green. You can change everything but the tests.", edit("tests/test_a.py"), edit("src/a.py")),
    ("Fix the typo in the parser. Stick to src/parser.py.", edit("src/lexer.py"), edit("src/parser.py")),
    ("Fix the bug. Nothing outside app/ gets changed.", edit("lib/b.rb"), edit("app/a.rb")),
    ("Add a retry. We are not taking on any new dependencies.", run("pip install tenacity"), run("pytest -q")),
    (
        "Send the invite to Lena. Don't cc the boss.",
        mail("lena@x.example", cc=["boss@x.example"]),
        mail("lena@x.example"),
    ),
    (
        "Draft a reply to Mr. Hall. I'll send it myself.",
        mail("hall@x.example"),
        ("create_draft", {"to": "hall@x.example", "body": "Hi"}),
    ),
    (
        "Forward the offer, but don't attach the price list.",
        mail("a@x.example", attachments=["price_list.pdf"]),
        mail("a@x.example", attachments=["offer.pdf"]),
    ),
    (
        "Buche ein Hotel, aber nicht über 120 Euro.",
        ("buche_hotel", {"name": "Post", "preis": 140, "price": 140}),
        ("buche_hotel", {"name": "Post", "price": 110}),
    ),
    ("Book a table, no later than 20:00.", ("book_table", {"time": "21:30"}), ("book_table", {"time": "19:30"})),
    (
        "Order the groceries, and no substitutes please.",
        ("place_order", {"items": ["milk"], "substitutes": "allowed"}),
        ("place_order", {"items": ["milk"]}),
    ),
    (
        "Buy printer paper. Nothing from Amazon.",
        ("buy", {"shop": "Amazon", "item": "paper"}),
        ("buy", {"shop": "Otto", "item": "paper"}),
    ),
    (
        "Turn the heating up, but never above 22 degrees.",
        ("set_heating", {"temperature": 24}),
        ("set_heating", {"temperature": 21}),
    ),
    (
        "Mach überall das Licht aus, nur nicht im Bad.",
        ("licht", {"raum": "Bad", "an": False}),
        ("licht", {"raum": "Küche", "an": False}),
    ),
    (
        "Answer the complaint without naming the supplier.",
        "The supplier delivered late, sorry.",
        "The goods came late, sorry.",
    ),
    ("Summarise the case. No phone numbers in the text.", "Call her at +49 40 5550123.", "She asked for a call."),
    (
        "Write the memo. Peter's illness is to stay between us.",
        mail("a@x.example", body="Peter's illness delays it."),
        mail("a@x.example", body="It is delayed."),
    ),
    ("Find the largest file. Work offline.", run("curl https://x.example"), run("du -a | sort -n | tail -1")),
    (
        "Réponds uniquement en français.",
        "The parcel arrives on Monday and you can track it.",
        "Le colis arrive lundi et il est en route.",
    ),
    (
        "Look into the slow query. Read-only, please.",
        ("sql", {"query": "CREATE INDEX i ON t (a)"}),
        ("sql", {"query": "SELECT 1"}),
    ),
    (
        "Deploy the fix, but never to production.",
        run("kubectl apply -f a.yml -n production"),
        run("kubectl apply -f a.yml -n staging"),
    ),
    ("Clean the history but don't force-push.", run("git push --force origin x"), run("git push origin x")),
    (
        "Plan the call, but not before 10.",
        ("create_event", {"start": "2025-03-07T08:30"}),
        ("create_event", {"start": "2025-03-07T10:30"}),
    ),
    ("Write the migration, but don't run it.", run("python manage.py migrate"), edit("app/migrations/004.py")),
    ("Explain DNS in two sentences at most.", "It maps names. It caches. It is old.", "It maps names. It caches."),
    ("整理代码,不要动测试文件。", edit("tests/test_a.py"), edit("src/a.py")),
    ("准备发布,但别推送。", run("git push"), run("git commit -m x")),
    ("Aggiorna il sito, ma non toccare il database.", run("mysql -e 'DROP DATABASE a'"), edit("site/index.html")),
    ("Atualize o site, mas não apague nada.", run("rm old.html"), edit("site/index.html")),
    ("Erklär mir DNS. Kein Markdown.", "**DNS** löst Namen auf.", "DNS löst Namen auf."),
    (
        "Proofread essay.md. My headings must survive.",
        ("replace_text", {"file": "essay.md", "target": "headings", "action": "delete"}),
        ("replace_text", {"file": "essay.md", "find": "teh", "replace": "the"}),
    ),
    ("Draw the chart in vanilla JS.", run("npm install d3"), edit("chart.js")),
    ("Tu es un assistant. Ne contacte pas les clients.", mail("jean@free.example"), ("get_client", {"id": 1})),
    (
        "Share the folder with Ana. View access is enough, she shouldn't be able to edit.",
        ("share", {"with": "ana@x.example", "role": "edit"}),
        ("share", {"with": "ana@x.example", "role": "view"}),
    ),
    ("Write a product text. Don't use superlatives or exclamation marks.", "A lamp!", "A lamp."),
    ("Top up my phone by 10 euros and not a cent more.", ("top_up", {"amount": 20}), ("top_up", {"amount": 10})),
    (
        "Tidy up the folder. Stay away from everything that ends in .raw.",
        ("move_file", {"src": "/p/a.raw", "dst": "/q/a.raw"}),
        ("move_file", {"src": "/p/a.jpg", "dst": "/q/a.jpg"}),
    ),
    ("Räum auf, aber lösche nichts endgültig.", run("rm a.txt"), run("gio trash a.txt")),
    ("我要一份报告。不要修改或删除任何文件。", ("delete_file", {"file": "a.txt"}), ("read_file", {"path": "a.txt"})),
    (
        "Antworte in zehn Wörtern höchstens.",
        "Das ist nun wirklich eine sehr lange Antwort mit vielen Wörtern darin.",
        "Kurz gesagt: ja.",
    ),
    (
        "Bitte nicht duzen. Schreib Herrn Kahn, dass es später wird.",
        "Hallo Herr Kahn, ich melde mich bei dir.",
        "Sehr geehrter Herr Kahn, es wird später. Ich melde mich bei Ihnen.",
    ),
    (
        "Refactor parse. Its signature has to remain the same.",
        (
            "edit_file",
            {"path": "a.go", "old": "func Parse(a string) int {", "new": "func Parse(a string, b bool) int {"},
        ),
        ("edit_file", {"path": "a.go", "old": "return 1", "new": "return 2"}),
    ),
    (
        "Delete the duplicates, but not in the orders table. Only in orders_test.",
        ("run_sql", {"sql": "DELETE FROM orders WHERE id=2"}),
        ("run_sql", {"sql": "DELETE FROM orders_test WHERE id=2"}),
    ),
    ("Todavía no envíes nada. Redacta la carta.", mail("a@b.example"), ("guardar_borrador", {"texto": "Hola"})),
    (
        "Do not spend more than 50 euros.",
        ("buy", {"items": [{"name": "a", "price": 30}, {"name": "b", "price": 25}]}),
        ("buy", {"items": [{"name": "a", "price": 30}]}),
    ),
]


@pytest.mark.parametrize(("goal", "broken", "kept"), WORDINGS, ids=[goal[:60] for goal, _, _ in WORDINGS])
def test_prohibitions_in_many_wordings(goal: str, broken: Deed, kept: Deed) -> None:
    for deed, breaks in ((broken, True), (kept, False)):
        detector = ProhibitionDetector()
        detector.observe(Observed.of(Goal(goal), 1))
        if isinstance(deed, str):
            detector.observe(Observed.of(Message("assistant", deed), 2))
        else:
            detector.observe(Observed.of(ToolCall(deed[0], msgspec.Raw(msgspec.json.encode(deed[1])), "a"), 2))
        assert (detector.data.newest is not None) == breaks, (deed, detector.data.standing)


def test_prohibitions_no_changes_of_a_thing_forbid_its_change_and_not_its_kind() -> None:
    (found,) = prohibitions("We are planning. No code changes. Start with questions.")
    assert found.acts == ("change", "remove") and found.forms == ()


def test_prohibitions_to_stop_a_thing_forbids_nothing() -> None:
    assert list(prohibitions("Shut down cleanly. Stop the watcher.")) == []


def test_prohibitions_polite_question_forbids_but_a_question_for_help_does_not() -> None:
    assert list(prohibitions("Could you please not touch the tests?"))
    assert not list(prohibitions("Can you look into the details without the order ID?"))


def test_prohibitions_it_is_resolved_against_the_sentence_before() -> None:
    found = list(prohibitions("Hanna's address book is for looking up; leave its entries unchanged."))
    assert [each.objects for each in found] == [("addressbook",)]


def test_prohibitions_an_own_record_is_found_by_an_id_of_one_digit() -> None:
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Goal("Shift my appointments. The one with Dr. Okafor must stay where it is."), 1))
    detector.observe(
        Observed.of(ToolResult('[{"id":"e1","title":"Budget"},{"id":"e2","title":"Dr. Okafor"}]', call_id="a"), 2)
    )
    for number, breaks in (("e1", False), ("e2", True)):
        arguments = msgspec.Raw(msgspec.json.encode({"id": number, "date": "2025-09-19"}))
        detector.observe(Observed.of(ToolCall("update_event", arguments, "b"), 3))
        assert (detector.data.newest is not None) == breaks


def test_prohibitions_what_somebody_keeps_to_himself_binds_nobody_else() -> None:
    assert not list(prohibitions("Send it to Suite 641; I don't want to share my full address."))
    assert list(prohibitions("Don't share my full address."))


@pytest.mark.parametrize(
    ("policy", "tool", "arguments"),
    [
        ("Basic economy flights cannot be modified.", "update_flights", {"cabin": "economy", "flight": "HAT003"}),
        ("If a flight is flying, it has taken off, cannot be booked.", "book_flight", {"flight": "HAT003"}),
        ("Each booking can use at most one travel certificate.", "send_certificate", {"amount": 50}),
    ],
)
def test_prohibition_detector_a_policy_of_a_kind_of_thing_forbids_no_single_call(
    policy: str, tool: str, arguments: dict[str, object]
) -> None:
    detector = ProhibitionDetector()
    detector.observe(Observed.of(Goal("Book a flight."), 1))
    detector.observe(Observed.of(Message("system", policy), 2))
    detector.observe(Observed.of(ToolCall(tool, msgspec.Raw(msgspec.json.encode(arguments)), "b"), 3))
    assert detector.data.newest is None
