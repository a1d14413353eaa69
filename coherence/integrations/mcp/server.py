"""MCP server by which an agent reads itself."""

# annotations of tools are objects here: the mcp package resolves names in the module alone

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.core.readings import one_line
from coherence.integrations.mcp.own_state import OwnState
from coherence.store.told import NEWEST

INSTALL = '  pip install "coherence-sensor[mcp]"'

LOOPBACK = "127.0.0.1"

CALL = "claudecode/toolUseId"
"""Field of a request's ``_meta`` in which Claude Code names the call; its hooks report the same id."""

INSTRUCTIONS = (
    "Shows you how your own run stands, as a sensor measures it. Ask coherence_status when you are unsure whether you "
    "are still on course, coherence_explain after guidance or a refused call, and lessons_for_error when a call fails."
)


def make_server(own: OwnState, version: str = "") -> Any:
    """Return an ``MCPServer`` with tools and resources on what an agent may know of itself.

    Parameters
    ----------
    own : OwnState
        The agent; the caller closes it.
    version : str
        Of this package, for the client.

    Raises
    ------
    MissingExtraError
        If the mcp package is not installed.
    """
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Context
        from mcp.server.mcpserver.exceptions import ResourceError
    except ImportError as error:
        raise MissingExtraError("mcp, version 2 or newer,", INSTALL) from error

    server = MCPServer("coherence", instructions=INSTRUCTIONS, version=version, log_level="WARNING")

    def telling(ask: Callable[..., str]) -> Callable[..., str]:
        """Have the agent read why something is refused: of other errors it is told nothing."""

        @wraps(ask)
        def asked(*args: Any, **named: Any) -> str:
            try:
                return ask(*args, **named)
            except (CoherenceError, TypeError, ValueError) as error:
                raise ResourceError(one_line(str(error))) from error

        return asked

    def call_of(context: Context) -> str:
        found = (context.request_context.meta or {}).get(CALL)
        return found if isinstance(found, str) else ""

    def coherence_status(context: Context) -> str:
        """Return how your run stands: light, index, trend, pressure, decision, strongest reason, budgets."""
        return own.status(call_of(context))

    def coherence_explain(context: Context, id: str = NEWEST) -> str:
        """Return why guidance was given or a call refused: the newest one, or the one with this id."""
        return own.explain(id, call_of(context))

    def lessons_for_error(error: str, tool: str = "") -> str:
        """Return what fixed errors like this one in earlier runs; ``tool`` is the tool that failed."""
        return own.lessons_for(error, tool)

    def record_lesson(context: Context, error: str, fix: str, tool: str = "") -> str:
        """Keep what fixed an error for later runs: the error as it was printed, and the fix in words or a command."""
        return own.record_lesson(error, fix, tool, call_of(context))

    def declare_goal(context: Context, text: str) -> str:
        """Put on record what you work on now; what you were asked to do stands."""
        return own.declare_goal(text, call_of(context))

    def declare_constraint(context: Context, text: str) -> str:
        """Forbid yourself something for the rest of the session, such as: Do not push to main. You cannot undo it."""
        return own.declare_constraint(text, call_of(context))

    def readings(agent: str) -> str:
        """Return the newest readings of an agent, the newest first."""
        return json.dumps(own.readings(agent))

    told = (coherence_status, coherence_explain, lessons_for_error)
    for tool in (*told, record_lesson, declare_goal, declare_constraint):
        server.tool(structured_output=False)(telling(tool))
    server.resource("coherence://readings/{agent}", mime_type="application/json")(telling(readings))
    return server


def serve(own: OwnState, port: int | None = None, *, version: str = "") -> None:
    """Answer until the client ends it: on standard input and output, or by streamable HTTP on a loopback port.

    Parameters
    ----------
    own : OwnState
        The agent.
    port : int, optional
        Port of ``http://127.0.0.1:PORT/mcp``.
    version : str
        Of this package, for the client.
    """
    server = make_server(own, version)
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host=LOOPBACK, port=port)
