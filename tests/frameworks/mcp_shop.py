"""An MCP server with a little of everything, made with the real package."""

# annotations of tools are objects here: the mcp package resolves names in the module alone

import os
from pathlib import Path
from typing import Annotated


def note(tool: str) -> None:
    """Keep which tool was called, where the test asks for it."""
    if "SHOP_LOG" in os.environ:
        with Path(os.environ["SHOP_LOG"]).open("a") as log:
            log.write(f"{tool}\n")


def main() -> None:
    """Serve on standard input and output; pytest imports this file also where the package is missing."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context, Elicit, Resolve
    from pydantic import BaseModel

    server = MCPServer("shop", log_level="WARNING")

    class Answer(BaseModel):
        sure: bool

    @server.tool()
    async def search(context: Context, word: str) -> str:
        """Search the shop."""
        note("search")
        await context.report_progress(1, 2, "looking")
        if not word:
            raise ValueError("search for what?")
        return f"green {word}"

    def ask(thing: str) -> Elicit[Answer]:
        """Ask the person; how depends on the version of the protocol."""
        return Elicit(f"Book {thing}?", Answer)

    @server.tool()
    def book(thing: str, answer: Annotated[Answer, Resolve(ask)]) -> str:
        """Book something once the person agrees."""
        note("book")
        return f"{thing} is booked: {answer.sure}"

    @server.tool()
    def shell(command: str) -> str:
        """Run a command; only the test knows that it does not."""
        note("shell")
        return f"done: {command}"

    @server.resource("shop://stock")
    def stock() -> str:
        """Return what is in the shop."""
        return "tea"

    @server.prompt()
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    server.run("stdio")


if __name__ == "__main__":
    main()
