"""Settings for the whole suite."""

import gc
import os
import re
import signal
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from property_sizes import LARGE, QUICK

# A busy machine must not fail a property: what a test asserts is the law, not its speed.
settings.register_profile("quick", deadline=None, max_examples=QUICK)
settings.register_profile("large", deadline=None, max_examples=LARGE)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the seed of the tests in ``torture``."""
    parser.addoption(
        "--torture-seed", type=int, default=1, help="from which the tests in tests/torture draw all chance"
    )


_WHOLE_FILE = re.compile(r"^pytestmark = .*?\bpytest\.mark\.(crewai|frameworks|hosts|torture|web)\b", re.MULTILINE)
"""A mark that all tests of a file carry."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a file out whose tests are all left out: each worker took 9 s to import the frameworks and clients."""
    if collection_path.suffix != ".py":
        return None
    mark = _WHOLE_FILE.search(collection_path.read_text(encoding="utf-8"))
    return True if mark and f"not {mark[1]}" in config.option.markexpr else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the docstrings of tests and their helpers only where one stands: else all load twice."""
    collectors = yield
    if ">>> " in file_path.read_text(encoding="utf-8", errors="replace"):
        return collectors
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


def pytest_collectstart() -> None:
    """Collect no garbage while tests are collected: all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over them from now on, and come seldom: it took a tenth of the suite's time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture
def in_child() -> Callable[[Callable[[], object]], str]:
    """Fork, run an action in the child, and return what it returned or raised there, as text."""

    def run(action: Callable[[], object]) -> str:
        receiver, sender = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork with threads
            child = os.fork()
        if child == 0:
            try:
                signal.alarm(60)  # a child that hangs says nothing
                try:
                    said = repr(action())
                except BaseException as error:
                    said = f"{type(error).__name__}: {error}"
                os.write(sender, said.encode()[:60_000])
            finally:
                os._exit(0)
        os.close(sender)
        with os.fdopen(receiver, "rb") as file:
            said = file.read().decode()
        os.waitpid(child, 0)
        return said

    return run


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return a folder that every user may enter, and that can be removed whatever a test forbids."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)
