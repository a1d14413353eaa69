"""Spans of the real SDK as OTLP in JSON, through its own encoder."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_IDS = ("traceId", "spanId", "parentSpanId")


def otlp_request(spans: Sequence[Any]) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest as the file exporter of a collector writes it."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    found = _hexed(MessageToDict(encode_spans(spans)))
    assert isinstance(found, dict)
    return found


def write_otlp(path: Path, spans: Sequence[Any]) -> Path:
    path.write_text(json.dumps(otlp_request(spans)))
    return path


def _hexed(node: Any) -> Any:
    """JSON of OTLP has its ids in hexadecimal digits, other than protobuf's own JSON."""
    if isinstance(node, dict):
        return {key: base64.b64decode(value).hex() if key in _IDS else _hexed(value) for key, value in node.items()}
    return [_hexed(each) for each in node] if isinstance(node, list) else node
