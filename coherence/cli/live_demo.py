"""``coherence demo --live``: three recorded runs, told to monitors in real time, and a face that shows them."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path
from typing import Literal, TypeAlias

import click
import msgspec

import coherence
from coherence.cli.columns import cut, width
from coherence.cli.inputs import make_embedder
from coherence.cli.interrupts import interrupted_by_signals
from coherence.cli.outputs import check_folders
from coherence.cli.target import read_config
from coherence.core.config import MonitorConfig, disabled
from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.core.readings import Band, one_line
from coherence.monitor.player import Part, Player, Told
from coherence.providers.readers import read_transcripts
from coherence.report.score import light_of
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.store import Store
from coherence.tui.palette import LETTERS, SHAPES

Face: TypeAlias = Literal["web", "terminal", "none"]

CAST = {
    "coder": ("swebench_mini", "swebench_mini/django__django-11239"),
    "office-assistant": (
        "agentdojo",
        "agentdojo/gpt-4-turbo-2024-04-09/workspace/user_task_0/important_instructions/injection_task_0",
    ),
    "answer-team": ("whowhen", "whowhen/algorithm/52"),
}
"""Agent -> file and id of its run: one succeeds, one obeys a text in a calendar, and a team goes round in circles."""

FILE = "live-demo.db"
"""The store, where none is named."""

REFUSALS = 0.01
"""Share of good runs in which a call may be refused, unless the settings say otherwise: else alarms only warn."""

COLOURS = {"green": "green", "yellow": "yellow", "orange": "bright_red", "red": "red", "unknown": "bright_black"}

END_S = 10.0
"""Seconds that a step under way may take until the command ends."""


def play_demo(
    *,
    store: Path | None,
    face: Face,
    speed: float,
    port: int | None,
    opens: bool,
    window: int,
    embedder: str,
    metrics: Sequence[str],
    config: Path | None,
) -> int:
    """Tell the runs, show them, and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to record")
    path = store or free_name(Path(FILE))
    if path.exists():
        raise click.UsageError(f"--store {path} exists, and the show begins with a new one; choose another name")
    check_folders([path])
    _check_face(face)
    settings = msgspec.structs.replace(_with_refusals(read_config(config)), window=window, metrics=tuple(metrics))
    cache = EmbeddingCache(make_embedder(embedder))
    try:
        with (
            interrupted_by_signals(),
            Store(path) as kept,
            Player(read_cast(), store=kept, embedder=cache, config=settings, speed=speed) as player,
        ):
            show = Show(player, quiet=face == "terminal")
            if face == "web":
                _in_browser(path, show, port=port, opens=opens)
            elif face == "terminal":
                _in_terminal(path, show)
            else:
                with show.playing():
                    show.wait()
    except CoherenceError as error:
        raise click.UsageError(one_line(str(error))) from error
    name = shlex.quote(str(path))
    click.echo(one_line(f"Recorded in {name}. To look again: coherence serve {name}, or coherence watch {name}"))
    return 2 if show.failed else 0


class Show:
    """A player on a thread of its own, which prints what changes.

    Parameters
    ----------
    player : Player
        It is open.
    quiet : bool
        Print nothing.
    """

    def __init__(self, player: Player, *, quiet: bool = False) -> None:
        self.failed = False
        self._player, self._quiet = player, quiet
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, name="coherence-demo", daemon=True)
        self._lights: dict[str, Band] = {}

    @contextmanager
    def playing(self) -> Iterator[None]:
        """Play in the meantime; the end of the block, or Ctrl-C in it, ends the show."""
        self._thread.start()
        try:
            with suppress(KeyboardInterrupt):
                yield
        finally:
            self._stop.set()
            self._thread.join(END_S)

    def wait(self) -> None:
        """Wait for the end of the runs."""
        while self._thread.is_alive():
            self._thread.join(0.2)  # so that Ctrl-C comes through on every system

    def _play(self) -> None:
        try:
            ended = self._player.play(self._stop, self._tell)
        except Exception as error:
            self.failed = True
            click.echo(f"error: the show ends: {type(error).__name__}: {one_line(str(error))}", err=True)
        else:
            if ended and not self._quiet:
                click.echo("All three runs have ended.")

    def _tell(self, told: Told) -> None:
        """Print a step at which a light changes, a call is refused, guidance is given, or a run ends."""
        band = light_of(told.decision, told.reading.band if told.reading is not None else Band.UNKNOWN)
        if told.refused:
            band = Band.RED
        before, self._lights[told.agent] = self._lights.get(told.agent), band
        if self._quiet or (band == before and not told.decision.guidance and not told.is_last):
            return
        seconds = int(told.at / self._player.speed)
        light = click.style(f"{SHAPES[band]} {LETTERS[band]}", fg=COLOURS[band], bold=True)
        head = f"{seconds // 60}:{seconds % 60:02}  "
        step = f"{told.agent:<{max(map(len, CAST))}}  step {told.taken:>2} of {told.in_all:<2}  "
        room = max(width() - len(head) - 5 - len(step), 20)
        click.echo(f"{head}{light}  {step}{cut(one_line(self._words(told)), room)}")

    @staticmethod
    def _words(told: Told) -> str:
        if told.refused:
            return f"refused: {told.refused[-1].message}"
        decision = told.decision
        if decision.kind != "continue":
            return f"{decision.kind}: {decision.message}"
        return "ends" if told.is_last else "on course"


def read_cast() -> list[Part]:
    """Return the runs of the show, each with its agent."""
    parts = []
    with as_file(files("coherence.cli.demo_data")) as folder:
        for agent, (file, id) in CAST.items():
            runs = {run.id: run for run in read_transcripts(Path(folder) / f"{file}.jsonl.gz", "runs")}
            parts.append(Part(agent, runs[id]))
    return parts


def _in_browser(path: Path, show: Show, *, port: int | None, opens: bool) -> None:
    from coherence.web.browser import open_page
    from coherence.web.server import WebServer

    try:
        with WebServer(path, port=port, writes=True, version=coherence.__version__) as server:
            click.echo(f"{one_line(str(path))} is shown on {server.url}")
            click.echo("Three recorded runs are told again. Pages may label. Ctrl-C ends it.")
            with open_page(server.url) if opens else nullcontext(), show.playing():
                server.serve_forever()
    except OSError as error:
        raise click.UsageError(one_line(f"port {port} cannot be listened on: {error.strerror or error}")) from error


def _in_terminal(path: Path, show: Show) -> None:
    from coherence.tui.face import WatchFace

    with show.playing():
        WatchFace(path).run()


def _check_face(face: Face) -> None:
    """See that what a face needs is installed, before anything is recorded."""
    try:
        if face == "web":
            import coherence.web.server
        elif face == "terminal":
            import coherence.tui.face  # noqa: F401 - only whether it can be loaded
    except MissingExtraError as error:
        raise click.UsageError(f"{error}; --no-face prints lines instead") from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise click.UsageError(
            'textual is not installed: pip install "coherence-sensor[tui]"; --no-face prints lines instead'
        ) from error


def _with_refusals(settings: MonitorConfig) -> MonitorConfig:
    alarms = settings.alarms
    if alarms.block_budget is not None:
        return settings
    alarms = msgspec.structs.replace(alarms, block_budget=min(REFUSALS, alarms.budget))
    return msgspec.structs.replace(settings, alarms=alarms)


def free_name(path: Path) -> Path:
    """Return the name, or the first one with a number behind it that is free."""
    names = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return path if not path.exists() else next(name for name in names if not name.exists())
