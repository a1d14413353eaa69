"""Runs scored side by side, each as a whole in one of several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing import active_children, get_context, parent_process
from threading import Thread

import click

from coherence.cli.inputs import make_embedder
from coherence.providers.transcript import Transcript
from coherence.report.ahead import usable_cores
from coherence.report.score import ScoredRun
from coherence.sensor.embedding_cache import EmbeddingCache

MAX_PROCESSES = 61
"""As many as Windows lets a process wait for."""


class ProcessEndedError(click.ClickException):
    """A process has ended before its work was done: the system killed it."""

    exit_code = 2


def count_processes(jobs: int, runs: int) -> int:
    """Return how many processes score some runs; ``jobs`` = 0 means one per core."""
    return min(jobs or usable_cores(), runs, MAX_PROCESSES)


def score_side_by_side(
    transcripts: Sequence[Transcript],
    score: Callable[..., ScoredRun],
    embedder: str,
    jobs: int,
    on_steps: Callable[[int], object],
) -> list[ScoredRun]:
    """Score runs in several processes, and return them in the order of the transcripts.

    Parameters
    ----------
    transcripts : sequence of Transcript
        The runs.
    score : callable
        Scores one: :func:`~coherence.report.score.score_transcript` with settings. It is sent to the processes.
    embedder : str
        Name of the embedder; each process makes one of its own.
    jobs : int
        Number of processes; 0 = one per core.
    on_steps : callable
        Called with the number of steps of each run that is done, from another thread.

    Raises
    ------
    ValueError
        If the settings do not fit.
    ProcessEndedError
        If a process ends before its work is done.
    """
    # Not fork: threads of the model and of the monitors would be missing in the child.
    processes = count_processes(jobs, len(transcripts))
    score = partial(score, ahead=usable_cores() // processes - 1)
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _begin)
    # The longest first, or it might begin when all others are done.
    order = sorted(range(len(transcripts)), key=lambda at: len(transcripts[at].steps), reverse=True)
    futures: dict[int, Future[ScoredRun]] = {}
    try:
        with _interrupt_waits():  # the processes start here: while one loads, it would print where it was interrupted
            for at in order:
                futures[at] = pool.submit(_score_run, score, embedder, transcripts[at])
                futures[at].add_done_callback(partial(_tell, len(transcripts[at].steps), on_steps))
        return [futures[at].result() for at in range(len(transcripts))]
    except BrokenProcessPool as error:
        raise ProcessEndedError(
            "a process that scored runs was ended; if it lacked memory, take fewer --jobs"
        ) from error
    except BaseException:  # Ctrl-C: nobody waits for the runs that are under way
        for child in active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupt_waits() -> Iterator[None]:
    """Have Ctrl-C wait for a moment; processes that are started meanwhile do not hear it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tell(steps: int, on_steps: Callable[[int], object], _: Future[ScoredRun]) -> None:
    on_steps(steps)


def _begin() -> None:
    """Prepare a process: it ends with the one that has started it, and hears of Ctrl-C from that one alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@cache
def _make_cache(embedder: str) -> EmbeddingCache:
    return EmbeddingCache(make_embedder(embedder))


def _score_run(score: Callable[..., ScoredRun], embedder: str, transcript: Transcript) -> ScoredRun:
    try:
        return score(transcript, embedder=_make_cache(embedder))
    except (TypeError, ValueError) as error:  # of any class: not each can be sent to another process
        raise ValueError(str(error)) from None
