"""Index and decision of each session as scores on Langfuse, Phoenix or LangSmith, beside the traces they keep."""

from __future__ import annotations

import base64
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import quote

import msgspec

from coherence.core.errors import CoherenceError
from coherence.core.readings import excerpt
from coherence.export.webhook import Webhook, WebhookCounts
from coherence.monitor.sinks import AgentRecord

Target: TypeAlias = Literal["trace", "session"]
"""Kind of thing that the name of a session is on the platform."""

PlatformName: TypeAlias = Literal["langfuse", "phoenix", "langsmith"]

PLATFORMS: tuple[PlatformName, ...] = get_args(PlatformName)

INDEX, DECISION = "coherence.index", "coherence.decision"
"""Names of the scores."""

MAX_COMMENT = 500
"""Characters of a reason that are sent."""

MAX_SESSIONS = 10_000
"""Sessions that a sink follows; the one that was silent the longest is forgotten."""

_TRACE = re.compile(r"[0-9a-fA-F]{32}")
"""Id of a trace of OpenTelemetry."""

_IDS = uuid.UUID("6f1d0c2e-0a55-4b0e-9a55-6d1f6f0b7a11")
"""Namespace of the ids of scores."""


class PlatformError(CoherenceError):
    """The environment lacks what a platform needs, or a session cannot be found there; the message says what to do."""


class Standing(msgspec.Struct, frozen=True):
    """Newest measurement of an agent's session."""

    agent: str
    session: str
    """Id of the trace, or of the session, on the platform."""
    ts: float
    """Unix time in seconds; a score that is sent again with the same time replaces the first one."""
    index: float | None
    light: str
    decision: str
    why: str = ""

    def id_of(self, score: str) -> str:
        """Return the id of a score, the same whenever it is sent."""
        return str(uuid.uuid5(_IDS, "\0".join((score, self.agent, self.session))))


class Post(NamedTuple):
    """One request."""

    url: str
    body: dict[str, Any]


class Platform(NamedTuple):
    """Receiver of scores, with the credentials that its own client would use."""

    name: PlatformName
    headers: Mapping[str, str]
    posts: Callable[[Standing, Target | None], Iterator[Post]]
    """Yields the requests about a session; raises PlatformError where the platform cannot know it."""


def platform_of(
    name: PlatformName, environment: Mapping[str, str] | None = None, *, project: str | None = None
) -> Platform:
    """Return a platform, by the variables of the environment that its own client reads.

    Parameters
    ----------
    name : str
        ``langfuse``: LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL (or LANGFUSE_HOST). ``phoenix``:
        PHOENIX_ENDPOINT (or PHOENIX_COLLECTOR_ENDPOINT), PHOENIX_API_KEY. ``langsmith``: LANGSMITH_API_KEY,
        LANGSMITH_ENDPOINT, LANGSMITH_WORKSPACE_ID (or LANGCHAIN_…).
    environment : mapping of str to str, optional
        Default: that of the process.
    project : str, optional
        Id of the project that holds the traces, a UUID. LangSmith's newer servers refuse feedback without it; the
        others take none.

    Raises
    ------
    ValueError
        If there is no such platform, or the project is none.
    PlatformError
        If a variable is missing.

    Examples
    --------
    >>> platform = platform_of("langsmith", {"LANGSMITH_API_KEY": "k"})
    >>> session = "7b1e1b52-9c9a-4b8e-8a6e-0d0f8f5a0c11"
    >>> [post.body["key"] for post in platform.posts(Standing("a", session, 0.0, 0.9, "green", "continue"), None)]
    ['coherence.index', 'coherence.decision']
    """
    if name not in PLATFORMS:
        raise ValueError(f"platform must be one of {', '.join(PLATFORMS)}, not {name!r}")
    given = os.environ if environment is None else environment
    if name == "langsmith":
        return _langsmith(given, project)
    if project is not None:
        raise ValueError(f"project is for langsmith alone, not for {name}")
    return _langfuse(given) if name == "langfuse" else _phoenix(given)


class ScoreSink:
    """Sink that sends the newest index and decision of each session to a platform when the session ends.

    Needs the extra ``webhook``. Sending is that of :class:`~coherence.export.webhook.Webhook`: on a thread of its own,
    with retries. Give the monitor the id of the trace as the name of its session, or that of the platform's session.

    Parameters
    ----------
    platform : str or Platform
        As :func:`platform_of` takes it.
    target : str, optional
        ``trace`` or ``session``: the kind of thing that a session's name is there. Default: by the form of the name.
    **options
        ``timeout_s``, ``retries`` and ``most_waiting`` of the webhook.

    Raises
    ------
    ValueError
        If a parameter is none of these.
    PlatformError
        If the environment lacks a variable.
    MissingExtraError
        If the extra is not installed.
    """

    def __init__(self, platform: PlatformName | Platform, *, target: Target | None = None, **options: Any) -> None:
        if target not in (None, *get_args(Target)):
            raise ValueError(f"target must be one of {', '.join(get_args(Target))} or None, not {target!r}")
        self.platform = platform if isinstance(platform, Platform) else platform_of(platform)
        self._target, self._options = target, options
        self._webhooks: dict[str, Webhook] = {}
        self._newest: dict[tuple[str, str], Standing] = {}
        self._begun: dict[tuple[str, str], float] = {}
        self._lock = Lock()
        self._webhook("https://localhost").close()  # a missing extra and a bad option are told now

    def emit(self, record: AgentRecord) -> None:
        """Note a measurement; returns at once."""
        key, result = (record.agent, record.session), record.result
        with self._lock:
            begun = self._begun.setdefault(key, record.ts)
            if result is None or result.reading is None:
                return
            reading, decision = result.reading, result.decision
            self._newest.pop(key, None)
            self._newest[key] = Standing(
                *key, begun, reading.coherence_index, str(reading.band), decision.kind, decision.message
            )
            while len(self._newest) > MAX_SESSIONS:
                oldest = next(iter(self._newest))
                del self._newest[oldest]
                self._begun.pop(oldest, None)

    def ended(self, agent: str, session: str) -> None:
        """Send the scores of a session that is over."""
        with self._lock:
            found = self._newest.pop((agent, session), None)
            self._begun.pop((agent, session), None)
        if found is not None:
            self.send(found)

    def send(self, standing: Standing) -> int:
        """Queue the scores of a session; return how many requests they take.

        Raises
        ------
        PlatformError
            If the platform cannot know the session.
        """
        posts = list(self.platform.posts(standing, self._target))
        for post in posts:
            with self._lock:
                webhook = self._webhooks.get(post.url)
                if webhook is None:
                    webhook = self._webhooks[post.url] = self._webhook(post.url)
            webhook.emit(post.body)
        return len(posts)

    def counts(self) -> WebhookCounts:
        """Return what became of the requests so far."""
        found = [webhook.counts() for webhook in self._webhooks.values()]
        return WebhookCounts(
            sent=sum(each.sent for each in found),
            failed=sum(each.failed for each in found),
            dropped=sum(each.dropped for each in found),
            waiting=sum(each.waiting for each in found),
        )

    def close(self, timeout_s: float = 5.0) -> bool:
        """Send what waits; return whether nothing was left after so many seconds for each address."""
        done = [webhook.close(timeout_s) for webhook in self._webhooks.values()]
        return all(done)

    def _webhook(self, url: str) -> Webhook:
        return Webhook(url, headers=self.platform.headers, **self._options)


def _langfuse(given: Mapping[str, str]) -> Platform:
    key, secret = _needed(given, "LANGFUSE_PUBLIC_KEY"), _needed(given, "LANGFUSE_SECRET_KEY")
    base = _base(given, ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), "https://cloud.langfuse.com")

    def posts(found: Standing, target: Target | None) -> Iterator[Post]:
        is_trace = _is_trace(found.session) if target is None else target == "trace"
        shared = {
            "traceId" if is_trace else "sessionId": found.session,
            "timestamp": datetime.fromtimestamp(found.ts, UTC).isoformat(),
            "metadata": {"agent": found.agent, "light": found.light},
        }
        url, why = f"{base}/api/public/scores", excerpt(found.why, MAX_COMMENT)
        if found.index is not None:
            score = {"name": INDEX, "value": found.index, "dataType": "NUMERIC", "comment": found.light}
            yield Post(url, {"id": found.id_of(INDEX), **score, **shared})
        score = {"name": DECISION, "value": found.decision, "dataType": "CATEGORICAL", "comment": why}
        yield Post(url, {"id": found.id_of(DECISION), **score, **shared})

    basic = base64.b64encode(f"{key}:{secret}".encode()).decode()
    return Platform("langfuse", {"Authorization": f"Basic {basic}"}, posts)


def _phoenix(given: Mapping[str, str]) -> Platform:
    base = _base(given, ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT"), "http://localhost:6006")
    base = base.removesuffix("/v1/traces")
    key = given.get("PHOENIX_API_KEY", "").strip()

    def posts(found: Standing, target: Target | None) -> Iterator[Post]:
        is_trace = _is_trace(found.session) if target is None else target == "trace"
        shared = {
            "trace_id" if is_trace else "session_id": found.session,
            "annotator_kind": "CODE",
            "identifier": f"coherence:{found.agent}",
            "metadata": {"agent": found.agent},
        }
        decision = {"label": found.decision, "explanation": excerpt(found.why, MAX_COMMENT) or found.decision}
        data = [{"name": DECISION, "result": decision, **shared}]
        if found.index is not None:
            data.insert(0, {"name": INDEX, "result": {"score": found.index, "label": found.light}, **shared})
        yield Post(f"{base}/v1/{'trace' if is_trace else 'session'}_annotations", {"data": data})

    return Platform("phoenix", {"Authorization": f"Bearer {key}"} if key else {}, posts)


def _langsmith(given: Mapping[str, str], project: str | None) -> Platform:
    key = _needed(given, "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
    base = _base(given, ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"), "https://api.smith.langchain.com")
    workspace = given.get("LANGSMITH_WORKSPACE_ID", "").strip()
    try:
        held = {} if project is None else {"session_id": str(uuid.UUID(project))}
    except ValueError as error:
        raise ValueError(f"project must be the id of a project, a UUID, not {excerpt(project or '', 60)!r}") from error

    def posts(found: Standing, target: Target | None) -> Iterator[Post]:
        try:
            trace = str(uuid.UUID(found.session))
        except ValueError:
            trace = ""
        if target == "session" or not trace:
            raise PlatformError(
                f"{found.agent}/{found.session}: LangSmith takes feedback on traces, "
                "so the session must have the id of its trace as its name"
            )
        # the first run of a trace has the trace's id
        shared = {"run_id": trace, "trace_id": trace, "feedback_source": {"type": "api", "metadata": {}}, **held}
        extra = {"agent": found.agent, "light": found.light}
        if found.index is not None:
            score = {"key": INDEX, "score": round(found.index, 4), "comment": found.light}  # more digits are refused
            yield Post(f"{base}/feedback", {"id": found.id_of(INDEX), **score, **shared, "extra": extra})
        score = {"key": DECISION, "value": found.decision, "comment": excerpt(found.why, MAX_COMMENT)}
        yield Post(f"{base}/feedback", {"id": found.id_of(DECISION), **score, **shared, "extra": extra})

    headers = {"x-api-key": key, **({"X-Tenant-Id": quote(workspace)} if workspace else {})}
    return Platform("langsmith", headers, posts)


def _needed(given: Mapping[str, str], *names: str) -> str:
    found = next((given[name].strip() for name in names if given.get(name, "").strip()), "")
    if not found:
        raise PlatformError(f"{names[0]} is not set; it is read from the environment, as by the platform's own client")
    return found


def _base(given: Mapping[str, str], names: tuple[str, ...], default: str) -> str:
    return next((given[name].strip() for name in names if given.get(name, "").strip()), default).rstrip("/")


def _is_trace(name: str) -> bool:
    return _TRACE.fullmatch(name) is not None
