"""Amazon Bedrock: ``converse`` and ``converse_stream`` of a client of boto3."""

from __future__ import annotations

import inspect
from typing import Any

from coherence.integrations.calls import Api, Exchange, StandIn, Stream
from coherence.integrations.converse_wire import ConverseWire
from coherence.integrations.watch import Watch

CLIENTS = 'boto3.client("bedrock-runtime")'


def is_client(client: Any) -> bool:
    """Return True for a client of Bedrock's models; those of aiobotocore, whose calls are awaited, are none."""
    if not any(kind.__module__ == "botocore.client" for kind in client.__class__.__mro__):
        return False
    service = client.meta.service_model.service_name
    return service == "bedrock-runtime" and not inspect.iscoroutinefunction(client._make_api_call)


def wrapped(client: Any, watch: Watch) -> Any:
    """Return a stand-in of a client that is watched."""

    def converse(**body: Any) -> Any:
        exchange = Exchange(watch, _API, body)
        asks = exchange.asks()
        with exchange.under_way():
            answer = client.converse(**asks)
        _count(watch, answer)
        exchange.came(answer)
        return answer

    def converse_stream(**body: Any) -> Any:
        exchange = Exchange(watch, _API, body)
        asks = exchange.asks()
        with exchange.under_way():
            answer = client.converse_stream(**asks)
        _count(watch, answer)
        answer["stream"] = Stream(answer["stream"], exchange)
        return answer

    return StandIn(client, converse=converse, converse_stream=converse_stream, _coherence=(watch, client))


def _count(watch: Watch, answer: Any) -> None:
    """Record that the client has repeated a request."""
    if again := answer.get("ResponseMetadata", {}).get("RetryAttempts"):
        watch.monitor.note(f"the model was asked {again + 1} times")


_API = Api(ConverseWire(), lambda value: value, lambda event: "messageStop" in event)
