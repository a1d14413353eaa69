"""The plug-in of pytest, in runs of pytest within pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from xml.etree import ElementTree

import pytest

# numpy cannot be loaded twice: what a run within this one loads is dropped at its end, unless it was there before.
import coherence.pytest_plugin.assertion
import coherence.report.html  # noqa: F401

pytest_plugins = ["pytester"]

ROOM = "coherence.pytest_plugin.plugin"
# An installation of this package brings it by itself.
LOADED = [] if "coherence" in {point.name for point in entry_points(group="pytest11")} else ["-p", ROOM]
# Plug-ins of others that may be installed here: each run would load them once more, a second or two of imports.
WITHOUT = [word for name in ("langsmith_plugin", "phoenix", "anyio", "cacheprovider") for word in ("-p", f"no:{name}")]

OPTIONS = """
import pytest

@pytest.fixture
def coherence_options():
    return {"embedder": False, "goal": "make the tests pass"}
"""

TESTS = """
import pytest
from coherence import assert_coherent

def loop(m, times=5):
    for _ in range(times):
        m.message("assistant", "I run the tests.")
        call = m.tool_call("Bash", {"command": "pytest -q"})
        m.usage(tokens_in=10, tokens_out=5, cost_usd=0.001)
        m.tool_result("ImportError: no module x", error=True, call=call)

def healthy(m):
    m.tool_result("a.txt b.txt", call=m.tool_call("Bash", {"command": "ls"}))
    m.message("assistant", "There are two files.")

def test_healthy(coherence_monitor):
    healthy(coherence_monitor)
    assert_coherent(coherence_monitor, light="green")

def test_loops_unjudged(coherence_monitor):
    loop(coherence_monitor)

@pytest.mark.coherence(light="yellow")
def test_marked(coherence_monitor):
    loop(coherence_monitor)

@pytest.mark.coherence(light="red", no=["loop"])
def test_marked_no_loop(coherence_monitor):
    loop(coherence_monitor)

@pytest.mark.coherence
def test_marked_and_good(coherence_monitor):
    healthy(coherence_monitor)

@pytest.mark.coherence(light="red", budget={"tokens": 75})
def test_over_budget(coherence_monitor):
    loop(coherence_monitor)

@pytest.mark.coherence(light="red", budget={"tokens": 76})
def test_below_budget(coherence_monitor):
    loop(coherence_monitor)

def test_without():
    assert True
"""
"""Five rounds of 10 + 5 tokens are 75, which reaches a budget of 75 and no other."""

FAILED = {"test_marked", "test_marked_no_loop", "test_over_budget"}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(OPTIONS)
    pytester.makepyfile(test_agent=TESTS)
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*LOADED, *WITHOUT, *options)


def section(result: pytest.RunResult) -> list[str]:
    """Return the lines of the summary."""
    text = result.stdout.str()
    assert text.count(" coherence =") == 1
    return text.partition(" coherence =")[2].partition("\n")[2].partition("\n=")[0].splitlines()


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["in one process", "with xdist"])
def test_plugin_judges_summarises_and_reports(project: pytest.Pytester, options: tuple[str, ...]) -> None:
    result = run(project, *options, "--coherence-report=out.html", "--junitxml=junit.xml", "--strict-markers")
    result.assert_outcomes(passed=5, failed=3)
    failed = set(re.findall(r"^FAILED test_agent.py::(\w+)", result.stdout.str(), re.M))
    assert failed == FAILED
    result.stdout.fnmatch_lines(["the run is orange after step 5 of 10, worse than light='yellow'", "  cause: *"])
    result.stdout.fnmatch_lines(["the run has the finding repeated_tool_call_loop (loop) after step 9, which no= *"])
    result.stdout.no_fnmatch_line("*- coherence -*")  # it would say the same again
    result.stdout.fnmatch_lines(["the run has the finding budget.tokens (budget) after step 9, which no= forbids"])

    rows = section(result)
    assert len(rows) == 8, "one a monitored test, and the report"
    assert rows[0].startswith("red     █") and "test_over_budget" in rows[0], "the worst light first"
    assert re.fullmatch(r"green +·?█+ +test_agent.py::test_marked_and_good +cost unknown +no finding", rows[-2])
    # five calls of 0.001 dollars
    assert "0.0050 USD    bash_retry, " in next(row for row in rows if "test_loops_unjudged" in row)
    assert rows[-1] == "report: out.html"

    page = (project.path / "out.html").read_text("utf-8").replace("<wbr>", "")
    assert all(f"test_agent.py::{name}" in page for name in FAILED) and "test_without" not in page
    assert "ImportError: no module x" in page

    cases = {case.get("name"): case for case in ElementTree.parse(project.path / "junit.xml").iter("testcase")}
    told = {
        name: {each.get("name"): each.get("value") for each in case.iter("property")} for name, case in cases.items()
    }
    assert told["test_without"] == {}
    looped = told["test_loops_unjudged"]
    assert (looped["coherence_light"], looped["coherence_steps"]) == ("orange", "10")
    assert float(looped["coherence_cost_usd"] or 0) == pytest.approx(0.005)
    assert 0 <= float(looped["coherence_index"] or 2) < 0.5
    assert (looped["coherence_findings"] or "").startswith("bash_retry ")
    assert "coherence_cost_usd" not in told["test_healthy"], "unknown, which is not 0"


def test_plugin_a_test_that_fails_by_itself_shows_its_run(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_agent=TESTS + "\n@pytest.mark.coherence\ndef test_own(coherence_monitor):\n"
        "    loop(coherence_monitor)\n    assert 1 == 2\n"
    )
    result = run(project, "-k", "test_own")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E * assert 1 == 2", "*- coherence -*", "the run is orange after step 5 of 10*"])


def test_plugin_an_assertion_shows_the_line_of_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_agent=TESTS + "\ndef test_own(coherence_monitor):\n    loop(coherence_monitor)\n"
        "    assert_coherent(coherence_monitor)\n"
    )
    result = run(project, "-k", "test_own")
    result.stdout.fnmatch_lines(
        [">   * assert_coherent(coherence_monitor)", "E *AssertionError: run 'main/1' is orange*"]
    )
    assert "assertion.py" not in result.stdout.str(), "no line of this package"


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("no=['lop']", "the mark coherence: no rule is called 'lop'; short names: budget, "),
        ("lights='green'", "the mark coherence: it takes only light=, no=, budget=, known="),
        ("'green'", "the mark coherence: it takes only light="),
        ("light='blue'", "the mark coherence: light must be one of green, yellow, orange, red, not 'blue'"),
    ],
)
def test_plugin_a_bad_mark_is_told_before_its_test_runs(project: pytest.Pytester, mark: str, says: str) -> None:
    project.makepyfile(
        test_agent=f"import pytest\n@pytest.mark.coherence({mark})\n"
        "def test_bad(coherence_monitor):\n    print('ran')\n"
    )
    result = run(project)
    result.assert_outcomes(errors=1)
    assert says in result.stdout.str() and "ran" not in result.stdout.str().split()


def test_plugin_a_mark_without_the_fixture_fails(project: pytest.Pytester) -> None:
    project.makepyfile(test_agent="import pytest\n@pytest.mark.coherence\ndef test_bad():\n    pass\n")
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["the mark coherence judges the fixture coherence_monitor, which this test does not use"]
    )


def test_plugin_a_skipped_or_expected_failure_stays_one(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_agent=TESTS + "\n@pytest.mark.coherence\ndef test_skips(coherence_monitor):\n"
        "    loop(coherence_monitor)\n    pytest.skip('no model here')\n"
        "\n@pytest.mark.xfail\n@pytest.mark.coherence\n"
        "def test_xfails(coherence_monitor):\n    loop(coherence_monitor)\n"
    )
    run(project, "-k", "skips or xfails").assert_outcomes(skipped=1, xfailed=1)


def test_plugin_a_monitor_that_is_told_nothing_passes_unless_it_has_to_be_known(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_agent="import pytest\n@pytest.mark.coherence\ndef test_calm(coherence_monitor):\n    pass\n"
        "@pytest.mark.coherence(known=True)\ndef test_known(coherence_monitor):\n    pass\n"
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the run has no step, and known=True asks for a light"])
    assert [row.split()[0] for row in section(result)] == ["unknown", "unknown"]


def test_plugin_the_report_says_why_there_is_none(project: pytest.Pytester) -> None:
    result = run(project, "--coherence-report=out.html", "-k", "without")
    assert section(result) == ["out.html was not written: no test used coherence_monitor"]
    assert not (project.path / "out.html").exists()
    lost = run(project, "--coherence-report=nowhere/out.html")
    assert lost.ret == pytest.ExitCode.USAGE_ERROR
    lost.stderr.fnmatch_lines(["ERROR: --coherence-report nowhere/out.html: its folder does not exist"])


def test_plugin_is_found_by_its_entry_point_and_warns_of_nothing(project: pytest.Pytester) -> None:
    """As an installer leaves it: of such a package, pytest looks for files that were loaded before it, and warns."""
    info = project.path / "installed" / "coherence_here-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: coherence-here\nVersion: 1\n")
    (info / "RECORD").write_text("coherence/__init__.py,,\ncoherence/pytest_plugin/plugin.py,,\n")
    points = files("coherence.core").joinpath("plugins.ini").read_text("utf-8").partition("[pytest11]")
    assert points[1]
    (info / "entry_points.txt").write_text("".join(points[1:]))
    project.makeini("[pytest]\nfilterwarnings = error\n")
    code = "import coherence, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    paths = os.pathsep.join((str(info.parent), os.environ.get("PYTHONPATH", "")))
    result = subprocess.run(
        [sys.executable, "-c", code, "-q", *WITHOUT, "-k", "and_good"],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "green  ·██  test_agent.py::test_marked_and_good" in result.stdout


def test_plugin_leaves_runs_alone_that_use_none_of_it(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_agent="import sys\ndef test_nothing_is_loaded():\n"
        "    named = [n for n in ('numpy', 'msgspec', 'coherence.monitor', 'coherence.report') if n in sys.modules]\n"
        "    assert named == []\n"
    )
    command = [sys.executable, "-m", "pytest", *LOADED, *WITHOUT, "-q"]
    result = subprocess.run(command, cwd=project.path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
    assert "coherence" not in result.stdout
