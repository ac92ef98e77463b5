"""The shapes of SGLang's refusals: three kinds of JSON body, by the route that refuses; and reading a request's JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class BadRequestError(ValueError):
    """A request that cannot be served as it stands; HTTP answers 400 with the text."""


class UnknownFieldError(BadRequestError):
    """A sampling parameter that does not exist; SGLang tells of it in a shape of its own."""


def unknown_field(message: str) -> JSONResponse:
    """Return the refusal of an unknown sampling parameter on /generate."""
    return JSONResponse({"error": message}, status_code=400)


def native_error(message: str, status: int = 400) -> JSONResponse:
    """Return the refusal of SGLang's own routes (/generate)."""
    return JSONResponse({"error": {"message": message}}, status_code=status)


def openai_error(message: str, status: int = 400, kind: str = "BadRequestError") -> JSONResponse:
    """Return the refusal of the OpenAI routes, of a full queue and of a body that does not validate."""
    return JSONResponse(
        {"object": "error", "message": message, "type": kind, "param": None, "code": status}, status_code=status
    )


def queue_full(message: str) -> JSONResponse:
    """Return the refusal of a full queue, on any route."""
    return openai_error(message, status=503, kind="503")


def detail(message: str, status: int) -> JSONResponse:
    """Return the web framework's own refusal (unknown path or method)."""
    return JSONResponse({"detail": message}, status_code=status)


def empty(status: int = 200) -> Response:
    """Return an answer without a body."""
    return Response(status_code=status)


async def json_object(request: Request) -> Mapping[str, object]:
    """Return the request's JSON object; raise BadRequestError for any other body."""
    try:
        body = await request.body()
        document = json.loads(body)
        if rb"\ud" in body.lower():
            # Half of a pair of surrogates is JSON, and no text.
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadRequestError(
            f"1 validation error:\n  {{'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error: {error}'}}"
        ) from error
    if not isinstance(document, dict):
        raise BadRequestError(
            "1 validation error:\n  {'type': 'dict_type', 'loc': ('body',), 'msg': 'Input should be a JSON object'}"
        )
    return document
