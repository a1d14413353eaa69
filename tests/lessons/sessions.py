"""Short runs of agents, written in few words."""

import json
from typing import Any

import msgspec

from coherence.core.events import ToolCall, ToolResult
from coherence.lessons.troubles import Solved, Troubles

YAML = "Traceback (most recent call last):\n  File \"app.py\", line 1\nModuleNotFoundError: No module named 'yaml'"
TYPE = "TypeError: unsupported operand type(s) for +: 'int' and 'str'"


class Story:
    """Calls with their results; event numbers count from 1, a call and its result take two."""

    def __init__(self) -> None:
        self.troubles = Troubles()
        self.seq = 0
        self.solved: list[Solved] = []

    def did(self, tool: str, arguments: Any, result: str, error: bool = False) -> "Story":
        self.seq += 2
        raw = msgspec.Raw(json.dumps(arguments).encode())
        self.troubles.observe_call(ToolCall(tool, raw, f"c{self.seq}"))
        solved = self.troubles.observe_result(self.seq, ToolResult(result, error=error, call_id=f"c{self.seq}"))
        self.solved += solved
        return self

    def ran(self, command: str, result: str = "ok") -> "Story":
        return self.did("Bash", {"command": command}, result)

    def failed(self, command: str, result: str = YAML) -> "Story":
        return self.did("Bash", {"command": command}, result, True)

    def edited(self, path: str, old: str, new: str) -> "Story":
        return self.did("Edit", {"file_path": path, "old_string": old, "new_string": new}, "edited")

    @property
    def fixes(self) -> list[str]:
        return [lesson.fix_text for lesson in self.solved]
