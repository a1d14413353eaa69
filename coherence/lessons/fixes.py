"""The fix of an error: the changes since, reduced to those that tell somebody else what to do."""

from __future__ import annotations

import re
from posixpath import basename

from coherence.core.lazy import lazy_regex
from coherence.lessons.commands import DOCUMENT
from coherence.lessons.steps import MAX_STEP
from coherence.lessons.troubles import FixStep, Made, Solved, Trouble

MAX_STEPS = 5
"""Changes that are kept since an error: the last ones."""

MAX_FIX = 600
"""Characters of a fix."""


def is_retry(trouble: Trouble, made: Made) -> bool:
    """Return whether a call is for the same as one that failed: of the same intent, or with an argument it lacked."""
    if trouble.intent == made.intent:
        return True
    if made.kind != "tool" or trouble.tool != made.tool or not trouble.arguments.items() <= made.arguments.items():
        return False
    return any(key not in trouble.arguments and key in trouble.error_text for key in made.arguments)


def add_steps(trouble: Trouble, seq: int, made: Made) -> None:
    """Add changes to those made since an error; a file that cannot be read or written is not mended by edits."""
    if trouble.settled or (trouble.intent.startswith(("read: ", "write: ")) and made.kind == "file"):
        return
    kept = [step for step in trouble.steps if step.text not in made.steps]  # only the last time counts
    trouble.steps = [*kept, *(FixStep(seq, text) for text in made.steps)][-MAX_STEPS:]


def solve(trouble: Trouble, seq: int, made: Made) -> Solved | None:
    """Return the lesson of an error that a success has solved, ``None`` if there is nothing to be learnt.

    Parameters
    ----------
    trouble : Trouble
        The error.
    seq, made : int, Made
        The successful call and the event that reported its success.
    """
    if trouble.settled:
        steps = trouble.steps
    else:
        own = [FixStep(seq, text) for text in _own_steps(trouble, made)]
        since = trouble.fresh() or ([] if own else trouble.steps)
        steps = own if own and made.kind == "tool" else [*since, *own]
    steps = _telling(steps[-MAX_STEPS:], trouble)
    if not steps:
        return None
    return Solved(
        pattern=trouble.pattern,
        error_text=trouble.error_text,
        fix_text=fix_of([step.text for step in steps]),
        tool=trouble.tool,
        seqs=tuple(sorted({trouble.seq, *(step.seq for step in steps), seq} - {0})),
    )


_BY_NUMBER = lazy_regex(r"ran `sed -i\S* ['\"]?[0-9,$]+d['\"]? \S+`")
_OPAQUE = lazy_regex(r"wrote (.+) \([0-9]+ lines\)")


def _telling(steps: list[FixStep], trouble: Trouble) -> list[FixStep]:
    """Return the steps that tell somebody else what to do.

    That a long file was written tells nothing, unless the error asks for just this file; no more does it to run it,
    that a script was typed in place, or that lines were deleted by their numbers.
    """
    found = [(step, _OPAQUE.fullmatch(step.text)) for step in steps]
    opaque = {basename(match[1]) for _, match in found if match and not _asks_for(trouble, match[1])} | {DOCUMENT}
    return [
        step
        for step, match in found
        if not _BY_NUMBER.fullmatch(step.text)
        and (basename(match[1]) not in opaque if match else not any(name in step.text for name in opaque))
    ]


def _asks_for(trouble: Trouble, path: str) -> bool:
    if basename(path) in trouble.intent:  # the agent had not written its own script yet
        return False
    parts = {part.partition(".")[0] for part in path.split("/")}
    return any(part in parts for slot in trouble.slots for part in re.split(r"[/.\\]", slot) if part)


def _own_steps(trouble: Trouble, made: Made) -> tuple[str, ...]:
    """Return the differences of the successful call itself, nothing if it was the same."""
    if made.kind == "file":
        return ()
    if made.kind == "tool":
        return (_other_call(trouble, made),) if made.doing != trouble.doing else ()
    moved = bool(made.where) and made.where != trouble.where and not made.where.startswith("/")
    if made.doing == trouble.doing and not (moved and not trouble.fresh()):
        return made.prior
    command = f"cd {made.where} && {made.text[5:-1]}" if moved else made.text[5:-1]
    if made.prior and made.prior[-1].startswith("ran `"):
        return (*made.prior[:-1], f"ran `{made.prior[-1][5:-1]} && {command}`"[:MAX_STEP])
    return (*made.prior, f"ran `{command}`")


def _other_call(trouble: Trouble, made: Made) -> str:
    before, now = trouble.arguments, made.arguments
    changed = [
        f"{key}=`{now[key]}`" + (f" instead of `{before[key]}`" if key in before else "")
        for key in now
        if before.get(key) != now[key]
    ]
    gone = [f"without {key}" for key in before if key not in now]
    if not changed and not gone:
        return made.text
    return f"called {made.tool} with {', '.join([*changed, *gone])}"[:MAX_STEP]


def fix_of(texts: list[str]) -> str:
    """Return changes as one line of at most 600 characters; a single shell command stands alone.

    Examples
    --------
    >>> fix_of(["ran `pip install pyyaml`"])
    'pip install pyyaml'
    >>> fix_of(["ran `pip install pyyaml`", "edited app.py: `import yml` -> `import yaml`"])
    'ran `pip install pyyaml`; edited app.py: `import yml` -> `import yaml`'
    """
    if len(texts) == 1 and texts[0].startswith("ran `"):
        return texts[0][5:-1]
    most = (MAX_FIX - 2 * len(texts)) // max(1, len(texts))
    if sum(len(text) + 2 for text in texts) > MAX_FIX:
        texts = [text if len(text) <= most else f"{text[: most - 2]}…`" for text in texts]
    return "; ".join(texts)
