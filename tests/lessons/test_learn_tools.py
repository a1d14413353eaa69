"""Stories of files and of tools that are no shells: which of them teach something, and what."""

from lessons.sessions import TYPE, YAML, Story


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
