"""Server of all platforms that take scores: it takes what their references document, and nothing else."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jsonschema import Draft202012Validator

from coherence.export.scores import PlatformName, Standing

TRACE = "0af7651916cd43dd8448eb211c80319c"
RUN = "7b1e1b52-9c9a-4b8e-8a6e-0d0f8f5a0c11"
PROJECT = "0b6c7a5e-3f55-4f0a-9c55-1d6f1f0c7a22"
SESSIONS: dict[PlatformName, str] = {"langfuse": TRACE, "phoenix": TRACE, "langsmith": RUN}

TEXT, OBJECT = {"type": "string", "minLength": 1}, {"type": "object"}
ANNOTATION = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "annotator_kind": {"enum": ["LLM", "CODE", "HUMAN"]},
        "trace_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        "session_id": TEXT,
        "result": {
            "type": "object",
            "properties": {"label": TEXT, "score": {"type": "number"}, "explanation": TEXT},
            "additionalProperties": False,
            "minProperties": 1,
        },
        "metadata": OBJECT,
        "identifier": TEXT,
    },
    "required": ["name", "annotator_kind", "result"],
    "additionalProperties": False,
}
SCORE = {
    "type": "object",
    "properties": {
        "id": TEXT,
        "traceId": TEXT,
        "sessionId": TEXT,
        "name": TEXT,
        "value": {"type": ["number", "string"]},
        "dataType": {"enum": ["NUMERIC", "CATEGORICAL", "BOOLEAN", "TEXT"]},
        "comment": {"type": "string"},
        "metadata": OBJECT,
        "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT.*\+00:00$"},
    },
    "required": ["name", "value"],
    "additionalProperties": False,
    "oneOf": [{"required": ["traceId"]}, {"required": ["sessionId"]}],
}
UUID = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
FEEDBACK = {
    "type": "object",
    "properties": {
        "id": UUID,
        "run_id": UUID,
        "trace_id": UUID,
        "session_id": UUID,
        "key": TEXT,
        "score": {"type": "number"},
        "value": {"type": "string"},
        "comment": {"type": "string"},
        "feedback_source": {"type": "object", "required": ["type"]},
        "extra": OBJECT,
    },
    "required": ["key", "run_id"],
    "additionalProperties": False,
}
DOCUMENTED: dict[str, dict[str, Any]] = {
    "/api/public/scores": SCORE,
    "/v1/trace_annotations": {"type": "object", "properties": {"data": {"type": "array", "items": ANNOTATION}}},
    "/v1/session_annotations": {"type": "object", "properties": {"data": {"type": "array", "items": ANNOTATION}}},
    "/feedback": FEEDBACK,
}
"""Path -> the body that the platform's reference documents."""


class Server(ThreadingHTTPServer):
    """Takes what is documented, keeps it, and answers anything else by 400; at first it fails as often as told."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.wrong: list[str] = []
        self.failures = 0
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def environment(self) -> dict[str, str]:
        return {
            "LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-2", "LANGFUSE_BASE_URL": f"{self.url}/",
            "PHOENIX_ENDPOINT": self.url, "PHOENIX_API_KEY": "px",
            "LANGSMITH_ENDPOINT": self.url, "LANGSMITH_API_KEY": "ls", "LANGSMITH_WORKSPACE_ID": "w",
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 200
        if self.server.failures:
            self.server.failures -= 1
            status = 503
        elif self.path not in DOCUMENTED:
            self.server.wrong.append(self.path)
            status = 404
        elif found := [error.message for error in Draft202012Validator(DOCUMENTED[self.path]).iter_errors(body)]:
            self.server.wrong += found
            status = 400
        else:
            self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        return


def standing(platform: PlatformName, **changes: Any) -> Standing:
    given = {"session": SESSIONS[platform], "index": 0.25, "light": "orange", "decision": "warn", "why": "It loops."}
    return Standing(**{"agent": "fixer", "ts": 1735689600.0, **given, **changes})
