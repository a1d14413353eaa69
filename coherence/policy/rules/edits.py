"""A rule about files that are changed unseen."""

from __future__ import annotations

from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.core.validation import check_count
from coherence.policy.rules.finding_builders import found, quiet, shown_path, shown_tool
from coherence.state.reducer import AgentState


class BlindEdit:
    """The newest action changed a file that exists and was never read.

    Only what the events show counts (see :func:`~coherence.state.history.blind_target`); an edit that failed changed
    nothing. The score is 0.5 for the first such file among the last 30 actions and 1 from ``warn`` files on; it is 0
    again with the next action. ``None`` before the first action.

    Parameters
    ----------
    warn : int
        Different files among the last 30 actions from which it asks to warn, 2 or more.

    Examples
    --------
    >>> import msgspec
    >>> from coherence.core.events import ToolCall, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> arguments = msgspec.Raw(b'{"file_path": "/src/app.py", "old_string": "a", "new_string": "b"}')
    >>> state.fold(1, 0.0, ToolCall("Edit", arguments, "1"))
    >>> state.fold(2, 0.0, ToolResult("ok", call_id="1"))
    >>> print(BlindEdit()(state, None, calm))
    blind_edit: Edit changed /src/app.py, which was not read before
    """

    name = "blind_edit"

    def __init__(self, *, warn: int = 3) -> None:
        self.warn = check_count("warn", warn, least=2, most=31)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest action."""
        actions = state.facts.actions
        if not actions:
            return None
        last = actions[-1]
        if not last.blind:
            return self._quiet
        blind = [action for action in actions if action.blind]
        files = len({action.blind for action in blind})
        why = f"{shown_tool(last.tool)} changed {shown_path(last.blind)}, which was not read before"
        if files > 1:
            why += f"; {files} files were changed so within {len(actions)} actions"
        return found(
            self.name,
            min(1.0, 0.5 + 0.5 * (files - 1) / (self.warn - 1)),
            "warn" if files >= self.warn else "guide",
            why,
            "compare the file with what it was before the edit",
            [action.seq for action in blind],
        )
