"""A regression guard around any callable: its calls are recorded, a harmful change of configuration is rolled back."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, NoReturn, ParamSpec, Self, TypeVar, get_args, overload

from coherence.core.callback import wall_clock
from coherence.core.config import disabled
from coherence.core.redact import redact
from coherence.core.validation import check_count, check_flag, check_number, check_text, clean, plain_text, shown
from coherence.guard.account import Account
from coherence.guard.adapter import adapter_of
from coherence.guard.bounds import Bounds
from coherence.guard.collaborators import (
    ADAPTER,
    ConfigAdapter,
    Notify,
    Strategy,
    check_methods,
    check_notifier,
    refuse_async,
)
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.executor import Actor
from coherence.guard.export import export_trail
from coherence.guard.ledger import read_history
from coherence.guard.measure import LEAST_ANSWER_S, Measuring, Started
from coherence.guard.patch_events import Decision, Policy
from coherence.guard.patches import notice_of
from coherence.guard.proposals import Plan, checked_patch, refuses
from coherence.guard.runner import Durability, Out, Runner, end_quietly
from coherence.guard.status import Status, status_of
from coherence.guard.traces import Past, Trace, newest_calls
from coherence.guard.trigger import Override, checked_overrides
from coherence.guard.views import View
from coherence.guard.wrap import wrapped
from coherence.monitor.arguments import as_store, check_name
from coherence.monitor.monitor import Monitor
from coherence.store.store import Store

T = TypeVar("T")
P = ParamSpec("P")

MAX_WHY = 1_000
"""Characters of a reason that are kept."""


class TemporaryStore(Store):
    """A store in a temporary folder of its own, which is removed by :meth:`close`; a killed process leaves it there.

    SQLite's databases in memory have no write-ahead log and are not shared with forked processes, a file does both.
    """

    def __init__(self) -> None:
        self._made_by = os.getpid()
        super().__init__(Path(tempfile.mkdtemp(prefix="coherence-")) / "store.db", synchronous="NORMAL")

    def close(self) -> None:
        """Close the file and remove it, unless this is a forked child: the parent goes on using it."""
        super().close()
        if self._made_by == os.getpid():
            shutil.rmtree(self.path.parent, ignore_errors=True)


class Guard:
    """Records the calls of agents, asks for a patch when they fail too often, and judges every patch.

    A failure of the guard itself never reaches the caller: it is counted in :attr:`errors`. All methods may be called
    from any thread. Several processes may use one store; they share one patch for each agent.

    Parameters
    ----------
    store : path or Store
        File that keeps calls and patches; ``":memory:"`` = a temporary folder that is removed when the guard is closed.
    strategy : Strategy, optional
        Proposes patches. Without it, calls are only recorded. If it has a method ``apply``, that is called instead of
        the adapter's ``apply_config``; see :func:`~coherence.guard.adapter.adapter_of`.
    config_adapter : ConfigAdapter, optional
        Owns the configuration. Without it, a proposal is recorded and not applied.
    notifier : Notifier or callable, optional
        Receives a notice of each step of a patch.
    policy : {"sequential", "classic"}
        How a patch is judged: by a test that stays valid however often it is checked, or by the classic rules.
    durability : {"batched", "full"}
        What a crash may lose, see :data:`Durability`.
    bounds : Bounds, optional
        What a patch may change. Without it, a proposal is recorded and not applied.
    thresholds : mapping of str to Override, optional
        Number of failures that calls for a patch, by agent. For other agents it follows from how often they are called.
    monitor : Monitor, optional
        Monitor of the agent that is called; its index and band after a call are recorded with the call.
    is_success : callable, optional
        Takes a result, returns whether the call succeeded. Default: a call that returns has succeeded.
    cost_of : callable, optional
        Takes a result, returns what the call cost, 0 or more in any unit, or None.
    control_flow : exception type or tuple of them
        Exceptions that steer the host and are no failure, such as ``langgraph.errors.GraphBubbleUp``. A call that
        raises one counts as a success, and its trace names the exception. Default: none.
    measures : callable, optional
        Returns measures for the strategy, by name.
    canary_share : float
        Share of calls that a patch on trial serves, in [0.01, 1].
    canary_slice : int
        Calls between two changes of the configuration, 1 to 10,000.
    return_on_decay : bool
        If a confirmed configuration gets worse, return to the one before it. If false, the decline is only reported.
    wait_s : float
        Longest time that a call waits for strategy, adapter and notifier, 0 to 3,600 seconds. After it the call's
        result is returned and they go on; ``patch_applied`` and ``rolled_back`` say what was done by then. Only one
        call waits for a step, not the calls made meanwhile. Interrupts and :meth:`arun` never wait. With
        ``durability="full"`` a call waits equally long for the store, but at least 1 s. What could not be written by
        then is counted and written later. ``is_success`` and ``cost_of`` together, ``call_id`` and ``clock`` may take
        equally long, at least 1 s; one that hangs is left out while it does so.
    clock : callable
        Returns the Unix time in seconds. If it fails, time goes on from its newest reading, else it is the system's.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, which the message names.
    StoreError
        If the store cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Guard(store=f"{folder}/guard.db") as guard:
    ...     out = guard.run(lambda: "done", agent="support", task="answer ticket")
    ...     out.result, out.success, out.patch_applied, guard.status("support").calls
    ('done', True, False, 1)
    """

    def __init__(
        self,
        *,
        store: str | Path | Store = "guard.db",
        strategy: Strategy | None = None,
        config_adapter: ConfigAdapter | None = None,
        notifier: Notify | None = None,
        policy: Policy = "sequential",
        durability: Durability = "batched",
        bounds: Bounds | None = None,
        thresholds: Mapping[str, Override] | None = None,
        monitor: Monitor | None = None,
        is_success: Callable[[Any], object] | None = None,
        cost_of: Callable[[Any], float | None] | None = None,
        control_flow: type[BaseException] | tuple[type[BaseException], ...] = (),
        measures: Callable[[], Mapping[str, float | None]] | None = None,
        canary_share: float = 0.2,
        canary_slice: int = 10,
        return_on_decay: bool = False,
        wait_s: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if plain_text(policy) not in get_args(Policy):
            raise ValueError(f"policy must be 'sequential' or 'classic', not {shown(policy)}")
        if plain_text(durability) not in get_args(Durability):
            raise ValueError(f"durability must be 'batched' or 'full', not {shown(durability)}")
        check_methods("strategy", strategy, ("analyze",))
        check_methods("config_adapter", config_adapter, ADAPTER)
        check_notifier(notifier)
        for name, function in (("is_success", is_success), ("cost_of", cost_of), ("measures", measures)):
            refuse_async(name, function)
        if bounds is not None and not isinstance(bounds, Bounds):
            raise TypeError(f"bounds must be Bounds, not {type(bounds).__name__}")
        steering = control_flow if isinstance(control_flow, tuple) else (control_flow,)
        for kind in steering:
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise TypeError(f"control_flow must be exception types, not {shown(kind)}")
        plan = Plan(
            strategy=strategy,
            adapter=adapter_of(strategy, config_adapter),
            notifier=notifier,
            bounds=bounds,
            overrides=checked_overrides(thresholds),
            policy=policy,
            share=check_number("canary_share", canary_share, least=0.01, most=1),
            slice=check_count("canary_slice", canary_slice, least=1, most=10_000),
            returns=check_flag("return_on_decay", return_on_decay),
            measures=measures,
        )
        self._wait_s = check_number("wait_s", wait_s, least=0, most=3600)
        self.durability = durability
        if not callable(clock):
            raise TypeError(f"clock must be callable, not {shown(clock)}")
        self._troubles = ErrorCounts()
        self._clock = clock = wall_clock(clock, max(self._wait_s, LEAST_ANSWER_S), self._troubles.failed)
        # a store that was passed in is the host's, and stays open
        owns_store = not isinstance(store, Store)
        if store is None:
            raise TypeError("store must be a path, ':memory:' or a Store, not None")
        self.store = None if disabled() else TemporaryStore() if store == ":memory:" else as_store(store)
        """The store; pass it on to share the file. None = the package is switched off, and calls are only run."""
        self._actor = None if self.store is None else Actor(plan, self.store, self._troubles, clock)
        measuring = Measuring(monitor, is_success, cost_of, steering, self._troubles, self._wait_s)
        self._runner = Runner(
            self.store, self._actor, measuring, self._troubles, durability, clock, self._wait_s, owns_store=owns_store
        )
        # of the runner: a finaliser that held the guard would keep it alive
        self._end = weakref.finalize(self, end_quietly, self._runner)

    @property
    def errors(self) -> dict[str, int]:
        """Failures of the guard itself: ``stage: type`` -> count."""
        return dict(self._troubles.counts)

    @property
    def newest_errors(self) -> dict[str, str]:
        """Stage -> its newest failure in words."""
        return dict(self._troubles.newest)

    @overload
    def run(
        self,
        fn: Callable[[], T],
        *,
        agent: str,
        task: str = "",
        call_id: str | None = None,
        raises: Literal[True] = True,
    ) -> Out[T]: ...

    @overload
    def run(
        self, fn: Callable[[], T], *, agent: str, task: str = "", call_id: str | None = None, raises: bool
    ) -> Out[T | None]: ...

    def run(
        self, fn: Callable[[], T], *, agent: str, task: str = "", call_id: str | None = None, raises: bool = True
    ) -> Out[T] | Out[T | None]:
        """Call ``fn`` and record the call; what it raises is recorded and raised again.

        Parameters
        ----------
        fn : callable
            Takes no arguments. If it returns a coroutine, future or generator, this is returned as it is, ``success``
            is None, and nothing is recorded: use :meth:`arun` or :meth:`wrap` instead.
        agent : str
            Name of the agent: any text that is not blank. The middle of a name beyond 500 characters is left out.
        task : str
            Purpose of the call, in words.
        call_id : str, optional
            Id by which an adapter that serves two configurations is told which one to use; default: a new id.
        raises : bool
            False = an exception of ``fn`` is returned as :attr:`Out.error` and not raised again. Exceptions that
            interrupt or end the process are always raised.

        Examples
        --------
        >>> with Guard(store=":memory:") as guard:
        ...     out = guard.run(lambda: 1 / 0, agent="support", raises=False)
        ...     out.success, out.result, out.error
        (False, None, ZeroDivisionError('division by zero'))
        """
        check_flag("raises", raises)
        return self._runner.called(self._runner.start(agent, task, None, call_id), fn, raises=raises)

    @overload
    async def arun(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        agent: str,
        task: str = "",
        call_id: str | None = None,
        raises: Literal[True] = True,
    ) -> Out[T]: ...

    @overload
    async def arun(
        self, fn: Callable[[], Awaitable[T]], *, agent: str, task: str = "", call_id: str | None = None, raises: bool
    ) -> Out[T | None]: ...

    async def arun(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        agent: str,
        task: str = "",
        call_id: str | None = None,
        raises: bool = True,
    ) -> Out[T] | Out[T | None]:
        """Do what :meth:`run` does for a callable that returns an awaitable; the event loop stays free.

        A callable that returns a plain value has run on the loop's thread, and is recorded as well. The later steps are
        not awaited, so cancelling the task does not lose the result.
        """
        check_flag("raises", raises)
        return await self._runner.acalled(self._runner.start(agent, task, None, call_id), fn, raises=raises)

    def wrap(
        self, *, agent: str, task: str | None = None, call_id: Callable[..., str | None] | None = None
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Return a decorator for a function, a coroutine function, a generator or an async generator.

        The wrapped callable returns, yields and raises what the function does. Its arguments are recorded; a tag stands
        for one that cannot be serialised. A generator's duration is the time spent in it. A generator that is closed
        early has succeeded.

        Parameters
        ----------
        agent : str
            Name of the agent.
        task : str, optional
            Purpose of the calls; default: the function's name.
        call_id : callable, optional
            Takes the arguments of a call and returns what :meth:`run` takes as ``call_id``. A node of a graph that is
            resumed with the same arguments then uses the same configuration.
        """
        check_name("agent", agent)
        if call_id is not None and not callable(call_id):
            raise TypeError(f"call_id must be callable, not {shown(call_id)}: it takes the arguments of a call")
        return lambda fn: wrapped(self._runner, self._start, fn, agent, task, call_id)

    def _start(self, agent: str, task: str, arguments: Any, call_id: Callable[[], str | None] | None) -> Started:
        """Begin a call of what is wrapped; by this method it keeps its guard."""
        return self._runner.start(agent, task, arguments, call_id)

    def flush(self) -> None:
        """Write everything recorded so far; a later kill of the process loses none of it.

        Raises
        ------
        StoreError
            If the store cannot be written; the records stay in memory and are written later.
        """
        self._runner.flush()

    def status(self, agent: str) -> Status:
        """Return the status of an agent, with the calls of other processes as far as they are written."""
        view = self._view(agent)
        view.refresh()
        with view.lock:
            return status_of(view.agent, view.account, self._clock())

    def history(self, agent: str, limit: int = 100, *, slices: bool = False) -> list[Past]:
        """Return the newest decisions on an agent's patches, oldest first.

        With ``slices``, every switch of the configuration during a trial is among them.
        """
        limit, slices = check_count("limit", limit), check_flag("slices", slices)
        store, name = self._written(agent)
        return read_history(store, name, limit, slices=slices)

    def traces(self, agent: str, limit: int = 100) -> list[Trace]:
        """Return the newest recorded calls of an agent, oldest first."""
        limit = check_count("limit", limit)
        store, name = self._written(agent)
        return newest_calls(store, name, limit)

    def export(self, agent: str, file: str | Path | IO[bytes]) -> int:
        """Write an agent's calls and decisions as JSON lines, return how many; see :func:`export_trail`.

        A path must name a new file: if it exists, FileExistsError is raised and nothing is overwritten.
        """
        store, name = self._written(agent)
        return export_trail(store, name, file)

    def propose(self, agent: str, patch: Mapping[str, Any], why: str = "a person proposed it") -> bool:
        """Put a patch of your own on trial; return whether it is on trial, or will be as soon as a guard can.

        The patch is tried and judged like any other, against the calls before it. The bounds are obeyed; without
        bounds, your word is enough. No further approval is needed, even if bounds or configuration ask for a person, or
        if the same patch was given up before. It replaces a waiting patch. If this guard has no adapter, the request is
        kept, and a process that has one takes it up.

        Parameters
        ----------
        agent : str
            Name of the agent whose configuration changes.
        patch : mapping
            The changes, in plain JSON values: up to 65,536 bytes.
        why : str
            Your reason, in words.

        Returns
        -------
        bool
            ``False``: another patch is already on trial or approved, or the adapter could not apply this one; the
            history then says why.

        Raises
        ------
        TypeError, ValueError
            For a bad argument, and for a patch that the bounds refuse or that changes nothing; nothing is written.
        """
        wanted, why = checked_patch(patch), checked_why(why)
        if self._actor is None:
            return False
        view = self._view(agent)
        view.refresh()
        number = view.account.patching.number + 1

        def asked(account: Account) -> Decision | None:
            if account.patching.trial is not None or account.patching.approved:
                return None
            return Decision("trial_wanted", patch=wanted, why=why)

        # before the bounds: a patch on trial has moved what steps are measured from
        if asked(view.account) is None:
            return False
        # so that whoever asks is told why; whoever carries it out judges it again
        if refused := refuses(wanted, view.agent, self._actor.plan, self._troubles):
            raise ValueError(f"patch: {refused}")
        if self._asked(view, asked) is None:
            return False
        self._actor.carry_out(view, self._wait_s, lambda patching: not patching.approved)
        with view.lock:
            patching = view.account.patching
            return patching.holds(number) or patching.approved

    def rollback(self, agent: str, why: str = "a person asked") -> bool:
        """Restore the configuration before an agent's patch, on trial or confirmed; return whether that was done.

        It may be impossible at once, because this guard has no adapter or another process is applying the patch. Then
        the request is kept, and a process with an adapter fulfils it. A guard that has an adapter waits for this up to
        ``wait_s`` seconds.
        """
        why = checked_why(why)
        if self._actor is None:
            return False
        view = self._view(agent)

        def asked(account: Account) -> Decision | None:
            patching = account.patching
            ends = patching.phase == "restoring" and not patching.pauses
            if patching.holder is None or ends or patching.wish is not None:
                return None
            return Decision("rollback_wanted", number=patching.holder.number, why=why)

        # if somebody has asked before, that request is waited for
        wish = self._asked(view, asked) or view.account.patching.wish
        if wish is None:
            return False
        number = wish.number
        return self._actor.carry_out(view, self._wait_s, lambda patching: not patching.holds(number))

    def approve(self, agent: str, why: str = "a person approved", seq: int | None = None) -> bool:
        """Approve the waiting patch of an agent; return whether one waited.

        A process with an adapter (this one at once, if it has one) reads the configuration, checks the patch against
        the bounds again, and puts it on trial. Without bounds, the approval is enough. With ``seq``, the number of the
        entry that proposed the patch, only that patch is approved.
        """
        why = checked_why(why)
        if self._actor is None:
            return False
        view = self._view(agent)

        def asked(account: Account) -> Decision | None:
            waiting = account.patching.waiting
            if waiting is None or waiting.approved is not None or seq not in (None, waiting.seq):
                return None
            return Decision("approval_wanted", proposed_seq=waiting.seq, why=why)

        if self._asked(view, asked) is None:
            waiting = view.account.patching.waiting
            return waiting is not None and waiting.approved is not None and seq in (None, waiting.seq)
        self._actor.carry_out(view, self._wait_s, lambda patching: not patching.approved)
        return True

    def decline(self, agent: str, why: str = "a person declined", seq: int | None = None) -> bool:
        """Decline the waiting patch of an agent, which is then not proposed again soon; return whether one waited.

        With ``seq``, the number of the entry that proposed the patch, only that patch is declined.
        """
        why = checked_why(why)
        if self._actor is None:
            return False
        view = self._view(agent)

        def asked(account: Account) -> Decision | None:
            waiting = account.patching.waiting
            if waiting is None or account.patching.phase == "reviewing" or seq not in (None, waiting.seq):
                return None
            return Decision("refused", patch=waiting.patch, why=why)

        step = self._asked(view, asked)
        if step is not None:
            self._actor.notify(notice_of(view.agent, view.account.patching, step))
        return step is not None

    def _asked(self, view: View, wanted: Callable[[Account], Decision | None]) -> Decision | None:
        """Write a person's request, unless there is nothing to ask for."""
        return view.decide(self._clock, lambda account, at: wanted(account))

    def _view(self, agent: str) -> View:
        """Return the account of an agent, by its name as calls are recorded under it."""
        return self._runner.view(check_name("agent", agent))

    def _written(self, agent: str) -> tuple[Store, str]:
        """Write what waits of an agent; return the store, and the agent's name there."""
        view = self._view(agent)
        view.write()
        assert self.store is not None
        return self.store, view.agent

    def close(self) -> None:
        """Write everything and end; calling it again does nothing. A guard that you do not close does this by itself.

        Raises
        ------
        StoreError
            If the store cannot be written; what was not yet written is lost.
        """
        if self._end.detach() is not None:
            self._runner.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise TypeError("a Guard cannot be pickled or copied: make one in each process, with the same store")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def checked_why(why: str) -> str:
    """Return a reason as it is kept: without secrets."""
    return clean(redact(check_text("why", why)), MAX_WHY)
