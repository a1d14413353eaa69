"""Asking a server that speaks JSON over HTTP, such as those with OpenAI's API."""

from __future__ import annotations

import json
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPErrorProcessor, Request, build_opener


class ServerError(Exception):
    """A server that cannot be reached, or answers with an error or with no JSON; the text follows its name."""


class _AnyStatus(HTTPErrorProcessor):
    """Hands over every answer as it is; urllib would follow a redirect and send the API key along."""

    def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        return response

    https_response = http_response


class JsonServer:
    """A model on a server, and what every request to it needs.

    Parameters
    ----------
    base_url : str
        Such as ``http://127.0.0.1:8080/v1``; nothing is sent anywhere else.
    model : str
        The server's name of the model, which is part of each request.
    api_key : str, optional
        Sent as a bearer token.
    timeout_s : float
        Seconds a request may take, above 0.
    """

    def __init__(self, base_url: str, model: str, api_key: str | None, timeout_s: float) -> None:
        if urlsplit(base_url).scheme not in ("http", "https"):
            raise ValueError(f"base_url must start with http:// or https://, not {base_url!r}")
        if not model:
            raise ValueError("model must be a non-empty str")
        if not timeout_s > 0:
            raise ValueError("timeout_s must be above 0")
        self.base_url = base_url.rstrip("/")
        self.model = model
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._timeout_s = timeout_s
        self._open = build_opener(_AnyStatus).open

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to ``POST {base_url}{path}``; a ServerError says what went wrong."""
        data = json.dumps({"model": self.model, **body}).encode("utf-8", "replace")
        request = Request(f"{self.base_url}{path}", data, self._headers)  # noqa: S310 - scheme checked in __init__
        try:
            with self._open(request, timeout=self._timeout_s) as answer:
                if answer.status != 200:
                    detail = answer.read(300).decode("utf-8", "replace")
                    raise ServerError(f" answered {answer.status}: {detail}")
                return json.load(answer)
        except (URLError, HTTPException, OSError, ValueError) as error:
            raise ServerError(f": {type(error).__name__}: {error}") from error
