"""The HTTP face: which path is served by what, who may call it, and how it is counted. No route computes here."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from specctl.lab.serve import answers, control, exposition, generate, health, identity, loads, metrics, openai
from specctl.lab.serve.gatekeeper import Gatekeeper
from specctl.lab.serve.log import logger
from specctl.lab.serve.service import Service

Serve = Callable[[Request], Awaitable[Response]]
GARBAGE = 'sglang:num_running_reqs{model_name="lab" 3 <!doctype html>\n\x00\xff not an exposition\n'
LIST_NGRAM = {"success": False, "corpus_token_counts": {}, "message": "Ngram speculative decoding is not enabled."}


def build(service: Service, on_startup: Callable[[], None], on_shutdown: Callable[[], Awaitable[None]]) -> Starlette:
    """Return the application; `on_startup` runs before the port opens, `on_shutdown` after the last answer."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        on_startup()
        yield
        await on_shutdown()

    routes = [*_probes(service), *_facts(service), *_readings(service), *_generation(service), *_control(service)]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Gatekeeper, service=service, known=frozenset(route.path for route in routes))],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
    )


async def _refuse(_: Request, error: Exception) -> Response:
    """Answer an unknown path or method as SGLang's web framework does."""
    assert isinstance(error, HTTPException)
    return answers.detail(error.detail, error.status_code)


def _route(path: str, serve: Serve, *methods: str) -> Route:
    """Return a route."""
    return Route(path, serve, methods=list(methods or ("GET",)))


def _probes(service: Service) -> list[Route]:
    """Return the routes that tell whether the server serves."""
    limit_s = health.timeout_s()

    async def ready(_: Request) -> Response:
        return answers.empty(200 if service.lifecycle.is_ready else 503)

    async def healthy(_: Request) -> Response:
        return answers.empty(200 if await health.is_healthy(service, limit_s) else 503)

    async def ping(_: Request) -> Response:
        return answers.empty()

    async def root(_: Request) -> Response:
        return JSONResponse("SGLang is running")

    return [
        _route("/ready", ready),
        _route("/health", healthy),
        _route("/health_generate", healthy),
        _route("/ping", ping),
        _route("/", root),
    ]


def _facts(service: Service) -> list[Route]:
    """Return the routes that tell what the server is; two of them under their old names too."""

    async def model_info(_: Request) -> Response:
        return JSONResponse(identity.model_info(service))

    async def server_info(_: Request) -> Response:
        return JSONResponse(await identity.server_info(service))

    async def list_models(_: Request) -> Response:
        return JSONResponse(identity.models(service))

    async def one_model(request: Request) -> Response:
        wanted = request.path_params["model"]
        if wanted != service.launch.options.served_model_name:
            return answers.openai_error(f"The model '{wanted}' does not exist", status=404)
        return JSONResponse(identity.model_card(service))

    return [
        _route("/model_info", model_info),
        _route("/get_model_info", _deprecated(model_info, "/get_model_info", "/model_info")),
        _route("/server_info", server_info),
        _route("/get_server_info", _deprecated(server_info, "/get_server_info", "/server_info")),
        _route("/v1/models", list_models),
        _route("/v1/models/{model:path}", one_model),
    ]


def _deprecated(serve: Serve, old: str, new: str) -> Serve:
    """Return the same route under an old name that warns in the log."""

    async def warned(request: Request) -> Response:
        logger.warning(
            "Endpoint '%s' is deprecated and will be removed in a future version. Please use '%s' instead.", old, new
        )
        return await serve(request)

    return warned


def _readings(service: Service) -> list[Route]:
    """Return the routes that tell how the server is doing; /metrics exists only where it is enabled."""

    async def current_loads(request: Request) -> Response:
        began = time.monotonic()
        answer = _loads(request, service)
        service.ledger.loads_time.observe(time.monotonic() - began)
        return answer

    async def exposed(_: Request) -> Response:
        if service.launch.options.faults.has("garbage-metrics"):
            return PlainTextResponse(GARBAGE)
        page = exposition.text(metrics.families(service, cpu_s=time.process_time()))
        return Response(page, media_type=exposition.CONTENT_TYPE)

    routes = [_route("/v1/loads", current_loads)]
    if service.launch.options.enable_metrics:
        routes += [_route("/metrics", exposed), _route("/metrics/", exposed)]
    return routes


def _loads(request: Request, service: Service) -> Response:
    """Answer /v1/loads from the last snapshot."""
    wanted = loads.sections(request.query_params.get("include"))
    document = loads.document(
        service.scheduler.reporter.snapshot,
        service.footprint,
        max_running=service.launch.options.max_running_requests,
        wanted=wanted,
        now=dt.datetime.now(dt.UTC),
    )
    entries = document["loads"]
    assert isinstance(entries, list)
    if request.query_params.get("dp_rank", "0") != "0":
        document["loads"] = entries = []
    if request.query_params.get("format") == "prometheus":
        return PlainTextResponse("".join(map(loads.prometheus, entries)))
    return JSONResponse(document)


def _generation(service: Service) -> list[Route]:
    """Return the routes that decode."""

    async def native(request: Request) -> Response:
        return await generate.answer(request, service)

    async def completions(request: Request) -> Response:
        return await openai.answer(request, service, openai.COMPLETIONS)

    async def chat(request: Request) -> Response:
        return await openai.answer(request, service, openai.CHAT)

    return [
        _route("/generate", native, "POST", "PUT"),
        _route("/v1/completions", completions, "POST"),
        _route("/v1/chat/completions", chat, "POST"),
    ]


def _control(service: Service) -> list[Route]:
    """Return the control routes."""

    def bound(serve: Callable[[Request, Service], Awaitable[Response]]) -> Serve:
        async def served(request: Request) -> Response:
            return await serve(request, service)

        return served

    async def resume(_: Request) -> Response:
        return await control.continue_generation(service)

    async def configure_logging(request: Request) -> Response:
        logger.info("Config logging: %r", (await request.body()).decode("utf-8", errors="replace"))
        return answers.empty()

    async def freeze_gc(_: Request) -> Response:
        return PlainTextResponse("Garbage collection frozen.\n")

    async def corpora(_: Request) -> Response:
        return JSONResponse(LIST_NGRAM, status_code=400)

    return [
        _route("/set_internal_state", bound(control.set_internal_state), "POST", "PUT"),
        _route("/flush_cache", bound(control.flush_cache), "GET", "POST"),
        _route("/abort_request", bound(control.abort_request), "POST"),
        _route("/pause_generation", bound(control.pause_generation), "POST"),
        _route("/continue_generation", resume, "POST"),
        _route("/slow_down", bound(control.slow_down), "GET", "POST"),
        _route("/configure_logging", configure_logging, "POST"),
        _route("/freeze_gc", freeze_gc, "GET", "POST"),
        _route("/list_external_corpora", corpora, "GET"),
    ]
