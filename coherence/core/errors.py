"""Base of all exceptions of this package, and those that several rooms raise.

Wrong arguments raise plain ``ValueError`` or ``TypeError`` that name the argument. While measuring, nothing is raised
into the host: failures are entries in ``Reading.errors``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coherence.core.decisions import Decision


class CoherenceError(Exception):
    """Base of all errors of this package."""


class TranscriptError(CoherenceError, ValueError):
    """A transcript file cannot be read.

    Parameters
    ----------
    path : str or Path
        The file.
    reason : str
        What is wrong and, where possible, what was expected.
    line : int, optional
        Line in the (uncompressed) file, counted from 1.
    """

    def __init__(self, path: str | Path, reason: str, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.reason = reason
        super().__init__(self.path if line is None else f"{path}:{line}", reason)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.reason}"


class VectorError(CoherenceError):
    """An embedder returned a wrong count, a wrong dimension, NaN, infinity or a zero vector."""


class ModelError(CoherenceError):
    """A file of the shipped embedding model is missing, or is not the one that this version ships.

    Parameters
    ----------
    path : str or Path
        The file.
    reason : str
        What is wrong.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(str(path), reason)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}; reinstall: pip install --force-reinstall coherence-sensor"


class JudgeError(CoherenceError):
    """A judge could not be asked, or answered with something that is no probability."""


class PluginError(CoherenceError, ValueError):
    """A plug-in name is unknown or already taken, or the package that offers it fails to load."""


class NotRequestedError(CoherenceError):
    """A metric reads a source of state that it did not declare in ``needs``."""


class UnknownSourceError(CoherenceError):
    """A metric reads a source of state that failed at this tick; the metric is unknown then."""


class MissingExtraError(CoherenceError, ImportError):
    """An optional dependency is missing; the message holds the line that installs it."""

    def __init__(self, what: str, install: str) -> None:
        super().__init__(f"{what} is not installed. Install it with:\n{install}")


class CoherenceBlocked(CoherenceError):  # noqa: N818 - it is no fault: somebody asked for refusals
    """A call of a model's answer must not run, or a request must not be sent; the message says why and what to do.

    Parameters
    ----------
    message : str
        Reasons and remedy.
    decision : Decision
        The first refusal.
    tools : tuple of str
        Names of the refused calls' tools; empty for a request that was not sent.
    """

    def __init__(self, message: str, decision: Decision, tools: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.decision = decision
        self.tools = tools
        self.answer: Any = None
        """The answer with the calls, as the client returns it; ``None`` for a stream and where nothing was sent."""
