"""A tiny JSON-RPC server on standard input and output, with one trick for each word it is called with."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

wire = sys.__stdout__.buffer  # type: ignore[union-attr]


def tell(message: bytes | dict[str, Any]) -> None:
    wire.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
    wire.flush()


def call(message: dict[str, Any]) -> None:
    """Answer a call of a tool: errors, silence, death, or the arguments again."""
    tool, arguments = message["params"]["name"], message["params"].get("arguments")
    if tool == "die":
        sys.exit(7)
    if tool == "hang":
        return
    if tool == "fail":
        tell({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "no such file"}})
        return
    if tool == "ask":
        tell({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {"about": arguments}})
        return
    text = {"type": "text", "text": json.dumps(arguments)}
    tell({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [text], "isError": tool == "broken"}})


def main() -> None:
    """Answer line by line until standard input ends."""
    sys.stderr.write("the server begins\n")
    sys.stderr.flush()
    if "garbage" in sys.argv:
        tell(b"\x00\xff no json {{{")
    if "flood" in sys.argv:
        for number in range(20_000):
            tell({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": number}})
    if "endless" in sys.argv:
        wire.write(b"x" * 20_000_000 + b"\n")
        wire.flush()
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            tell(b"unread: " + line.rstrip(b"\n"))
            continue
        if isinstance(message, dict) and message.get("method") == "tools/call":
            call(message)
        else:
            tell(b"seen: " + line.rstrip(b"\n"))
    if "slow" in sys.argv:
        time.sleep(30)
    sys.exit(3)


if __name__ == "__main__":
    main()
