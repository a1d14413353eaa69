"""Format of Gemini's ``generate_content``, as ``google-genai`` takes it: texts, parts and contents, in many forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from coherence.core.validation import to_json
from coherence.integrations.conversation import Answer, Json, Result, Said, plain, text_key
from coherence.providers.transcript import TranscriptCall


class GeminiWire:
    """Contents of parts; a call has an id from some models only."""

    def items(self, body: Json) -> Sequence[Any]:
        """Return the contents; neighbours of the model are one, as its chunks are kept one by one."""
        items: list[dict[str, Any]] = []
        for content in _contents(body.get("contents")):
            if items and content["role"] == items[-1]["role"] == "model":
                items[-1]["parts"] += content["parts"]
            else:
                items.append(content)
        return items

    def system(self, body: Json) -> str:
        """Return the instruction."""
        config = body.get("config")
        if isinstance(config, Mapping):
            given = config.get("system_instruction") or config.get("systemInstruction")
        else:
            given = getattr(config, "system_instruction", None)
        return "\n".join(_text(content["parts"]) for content in _contents(given))

    def follows(self, body: Json) -> str | None:
        """Return nothing: each request holds the whole conversation."""
        return None

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the ids of the calls; without them, the mark of the text and the calls."""
        return _keys(item["parts"]) if item["role"] == "model" else ()

    def read(self, item: Json) -> Iterator[Said | Result]:
        """Yield the results in a content, then what it says."""
        parts = item["parts"]
        if item["role"] == "model":
            yield Said("assistant", _text(parts), _calls(parts))
            yield from _served(parts)
            return
        results = list(_results(parts))
        yield from results
        if (text := _text(parts)) or not results:
            yield Said("user", text)

    def begins(self, item: Json) -> bool:
        """Return False: an answer begins at its beginning."""
        return False

    def answer(self, value: Json, begun: str = "") -> Answer:
        """Return the first candidate, with the calls of all."""
        candidates = value.get("candidates") or ()
        all_parts = [_parts((candidate.get("content") or {}).get("parts")) for candidate in candidates]
        usage = value.get("usage_metadata") or {}
        return Answer(
            _text(all_parts[0]) if all_parts else "",
            calls=tuple(call for parts in all_parts for call in _calls(parts)),
            served=tuple(told for parts in all_parts[:1] for told in _served(parts)),
            keys=tuple(key for parts in all_parts for key in _keys(parts)),
            tokens_in=_sum(usage, "prompt_token_count", "tool_use_prompt_token_count"),
            tokens_out=_sum(usage, "candidates_token_count", "thoughts_token_count"),
            tokens_cached=usage.get("cached_content_token_count"),
            model=value.get("model_version"),
            id=value.get("response_id"),
            finished=bool(candidates) and all(candidate.get("finish_reason") for candidate in candidates),
        )

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the response of its chunks."""
        whole: dict[str, Any] = {}
        candidates: dict[int, dict[str, Any]] = {}
        for event in events:
            names = ("model_version", "response_id", "usage_metadata")
            whole.update({name: event[name] for name in names if event.get(name)})
            for told in event.get("candidates") or ():
                candidate = candidates.setdefault(told.get("index") or 0, {"content": {"parts": []}})
                candidate["finish_reason"] = told.get("finish_reason") or candidate.get("finish_reason")
                candidate["content"]["parts"] += (told.get("content") or {}).get("parts") or ()
        return {**whole, "candidates": [candidates[index] for index in sorted(candidates)]}

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        """Return the request with one more part at the end of the user's newest content, behind results of tools."""
        contents = _contents(body.get("contents"))
        for content in reversed(contents):
            if content["role"] == "user":
                content["parts"].append({"text": text})
                return {**body, "contents": contents}
        return {**body, "contents": [*contents, {"role": "user", "parts": [{"text": text}]}]}


def _contents(given: Any) -> list[dict[str, Any]]:
    """Return contents as dicts with role and parts; parts that stand alone, one after the other, are one content."""
    contents: list[dict[str, Any]] = []
    loose = False
    for each in given if isinstance(given, list | tuple) else [] if given is None else [given]:
        told = plain(each)
        if isinstance(told, Mapping) and ("parts" in told or "role" in told):
            contents.append({"role": told.get("role") or "user", "parts": _parts(told.get("parts"))})
            loose = False
            continue
        parts = _parts(told)
        role = "model" if any("function_call" in part for part in parts) else "user"
        if loose and contents[-1]["role"] == role and not isinstance(each, list | tuple):
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
        loose = not isinstance(each, list | tuple)
    return contents


def _parts(given: Any) -> list[dict[str, Any]]:
    """Return parts as dicts by the names of the SDK; a file or an image is whatever the SDK takes for it."""
    parts = []
    for each in given if isinstance(given, list | tuple) else [] if given is None else [given]:
        if isinstance(each, str):
            parts.append({"text": each})
        elif isinstance(each, Mapping) and "mime_type" not in each:
            parts.append({_snake(name): value for name, value in each.items() if value is not None})
        else:
            parts.append({"file_data": each})
    return parts


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


_SILENT = ("function_call", "function_response", "executable_code", "code_execution_result", "tool_call")


def _text(parts: Iterable[Json]) -> str:
    """Return what parts say without thoughts; what is not text is a marker such as ``[image]``."""
    return "".join(_said(part) for part in parts)


def _said(part: Json) -> str:
    if part.get("thought") or any(kind in part for kind in _SILENT):
        return ""
    if (text := part.get("text")) is not None:
        return str(text)
    for kind in ("inline_data", "file_data"):
        if (data := part.get(kind)) is not None:
            told = data if isinstance(data, Mapping) else {}
            mime = told.get("mime_type") or told.get("mimeType") or "file"
            return f"[{str(mime).partition('/')[0]}]"
    return ""


def _calls(parts: Iterable[Json]) -> tuple[TranscriptCall, ...]:
    calls = [part["function_call"] for part in parts if part.get("function_call")]
    return tuple(TranscriptCall(call.get("name") or "", call.get("args") or {}, call.get("id")) for call in calls)


def _results(parts: Iterable[Json]) -> Iterator[Result]:
    for part in parts:
        if response := part.get("function_response"):
            told = response.get("response") or {}
            # the names that the API asks for, and what the SDK itself gives as the result of a function
            for name, error in (("error", True), ("output", None), ("result", None)):
                if list(told) == [name]:
                    yield Result(response.get("id"), _shown(told[name]), error, tool=response.get("name"))
                    break
            else:
                yield Result(response.get("id"), _shown(told), tool=response.get("name"))


def _served(parts: Iterable[Json]) -> Iterator[Said | Result]:
    """Yield the code that the provider has run, and what came of it."""
    for part in parts:
        if code := part.get("executable_code"):
            yield Said("assistant", "", (TranscriptCall("code_execution", {"code": code.get("code")}),))
        if result := part.get("code_execution_result"):
            outcome = str(result.get("outcome") or "")
            yield Result(None, result.get("output") or "", not outcome.endswith("OUTCOME_OK"), tool="code_execution")


def _keys(parts: Sequence[Json]) -> tuple[str, ...]:
    calls = _calls(parts)
    if calls and all(call.id for call in calls):
        return tuple(f"call {call.id}" for call in calls)
    made = "".join(_shown([call.name, call.arguments]) for call in calls)
    return (text_key(_text(parts) + made),)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else to_json("response", value).decode()


def _sum(usage: Json, *names: str) -> int | None:
    known = [usage[name] for name in names if usage.get(name) is not None]
    return sum(known) if known else None
