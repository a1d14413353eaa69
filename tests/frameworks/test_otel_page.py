from __future__ import annotations

import re
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from coherence.integrations.otlp_receiver import OtlpReceiver
from coherence.providers.readers.otlp import read_requests

pytestmark = pytest.mark.frameworks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "opentelemetry.md"
TEXTS = re.findall(r"^```text\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
BLOCKS = [block for block in TEXTS if "import" in block]


def test_opentelemetry_page_its_code_runs_and_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[dict[str, Any]] = []
    with OtlpReceiver(taken.append, 0) as receiver:
        thread = Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{receiver.server_port}")
        for block in BLOCKS:
            names: dict[str, Any] = {}
            exec(block, names)
            names["provider"].shutdown()
            names["m"].close()
        receiver.shutdown()
        thread.join()
    assert len(BLOCKS) == 2
    spans = read_requests(taken).spans
    assert sorted(span.name for span in spans) == ["chat", "execute_tool Bash", "invoke_agent fixer"]
    assert "pytest" not in str(spans)  # no texts unless asked
