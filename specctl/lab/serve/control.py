"""The control routes: live settings, cache flush, pause, abort, slow down; each guarded by the admin key where one is set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from specctl.lab.serve import answers, dialect, initlines
from specctl.lab.serve.answers import BadRequestError
from specctl.lab.serve.log import logger
from specctl.lab.serve.scheduler import PauseMode
from specctl.lab.serve.service import Service

FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. "
    "(When there are running or waiting requests, the operation will not be performed.)\n"
)
FLUSH_POLL_S = 0.02
MICRO_BATCH_KEY = "pp_max_micro_batch_size"
TRACE_KEY = "verify_trace"
_SWITCHES = frozenset({dialect.ALGORITHM_KEY, *dialect.KNOB_KEYS})


async def set_internal_state(request: Request, service: Service) -> Response:
    """Change live settings; 200 with [true] or [false], the reason of a refusal only in the log, as in SGLang."""
    try:
        changes = _changes(await answers.json_object(request))
    except BadRequestError as error:
        return answers.openai_error(str(error), kind="Bad Request")
    done = await service.ask(lambda: apply(changes, service))
    if done and changes:
        logger.info("Config updated via context override: %s", dict(changes))
    return JSONResponse([done])


def apply(changes: Mapping[str, object], service: Service) -> bool:
    """Apply all changes or none, in the scheduler's thread between two steps; answer whether they were applied."""
    known = {MICRO_BATCH_KEY, TRACE_KEY, *service.accept_thresholds, *_SWITCHES}
    unknown = next((key for key in changes if key not in known), None)
    if unknown is not None:
        logger.warning("Updating %s is not supported.", unknown)
        return False
    micro = changes.get(MICRO_BATCH_KEY)
    limit = service.launch.options.max_running_requests
    if isinstance(micro, int | float) and not 1 <= micro <= limit:
        logger.warning(
            "Updating %s to %s is rejected because it is out of the valid range [1, %d].", MICRO_BATCH_KEY, micro, limit
        )
        return False
    if TRACE_KEY in changes and service.launch.options.verify_trace is None:
        logger.warning("Updating %s is rejected: the server was started without --verify-trace.", TRACE_KEY)
        return False
    if not _switch(changes, service):
        return False
    if TRACE_KEY in changes:
        service.scheduler.set_trace(on=bool(changes[TRACE_KEY]))
    if isinstance(micro, int | float):
        service.pp_max_micro_batch_size = micro
    thresholds = {
        key: float(value)
        for key, value in changes.items()
        if key in service.accept_thresholds and isinstance(value, int | float)
    }
    if thresholds:
        service.accept_thresholds.update(thresholds)
        service.scheduler.reporter.reset_acceptance()
    return True


def _switch(changes: Mapping[str, object], service: Service) -> bool:
    """Change the algorithm or its knobs, where the changes name any; answer whether that went well."""
    wanted = {key: value for key, value in changes.items() if key in _SWITCHES}
    if not wanted:
        return True
    present = service.scheduler.speculation
    name = wanted.get(dialect.ALGORITHM_KEY, present.algorithm.name)
    knobs = {dialect.KNOB_KEYS[key]: value for key, value in wanted.items() if key in dialect.KNOB_KEYS}
    wrong = next((value for value in knobs.values() if not isinstance(value, int)), None)
    try:
        if wrong is not None or not (name is None or isinstance(name, str)):
            raise ValueError(f"a knob must be an integer and the algorithm a name, got {wanted}")
        chosen = present.changed(name, {knob: value for knob, value in knobs.items() if isinstance(value, int)})
        service.scheduler.switch(chosen)
    except (ValueError, KeyError) as error:
        logger.warning("Updating %s is rejected: %s", ", ".join(wanted), error)
        return False
    for line in initlines.algorithm_lines(service.launch, chosen):
        logger.info("%s", line)
    return True


def _changes(body: Mapping[str, object]) -> dict[str, object]:
    """Return the changes that a body asks for: numbers, and for the algorithm a name or null."""
    wanted = body.get("server_args")
    if not isinstance(wanted, dict):
        raise BadRequestError(
            "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'server_args'), 'msg': 'Field required'}"
        )
    return {
        str(key): value if key == dialect.ALGORITHM_KEY else _number(str(key), value) for key, value in wanted.items()
    }


def _number(key: str, value: object) -> int | float:
    """Return a value as a number; a text that reads as one counts, as in SGLang."""
    for kind in (int, float):
        try:
            if isinstance(value, str):
                return kind(value)
        except ValueError:
            continue
    if isinstance(value, int | float):
        return value
    raise BadRequestError(
        f"1 validation error:\n  {{'type': 'int_parsing', 'loc': ('body', 'server_args', '{key}'), "
        "'msg': 'Input should be a valid integer, unable to parse string as an integer'}"
    )


async def flush_cache(request: Request, service: Service) -> Response:
    """Forget what is cached (the lab caches nothing) and the lifetime acceptance; refused while requests run."""
    try:
        limit_s = float(request.query_params.get("timeout", 0) or 0)
    except ValueError:
        return answers.openai_error("timeout must be a number of seconds", kind="Bad Request")
    until = time.monotonic() + limit_s
    while True:
        waiting, running = await service.ask(service.scheduler.counts)
        if waiting + running == 0:
            break
        if time.monotonic() >= until:
            return _not_flushed(waiting, running, waited=limit_s > 0)
        await asyncio.sleep(FLUSH_POLL_S)
    await service.ask(service.scheduler.reporter.reset_acceptance)
    logger.info("Cache flushed successfully!")
    return PlainTextResponse(FLUSHED)


def _not_flushed(waiting: int, running: int, *, waited: bool) -> Response:
    """Return the refusal of a flush while requests run."""
    if waited:
        logger.warning("Deferred flush_cache timed out while waiting for idle state.")
        return PlainTextResponse("Timed out waiting for idle state.", status_code=400)
    logger.warning(
        "Cache not flushed because there are pending requests. #queue-req: %d, #running-req: %d", waiting, running
    )
    return PlainTextResponse("Flush cache failed.\n", status_code=400)


async def abort_request(request: Request, service: Service) -> Response:
    """End one request or all; 200 whether or not it was known."""
    try:
        body = await answers.json_object(request)
    except BadRequestError as error:
        return answers.openai_error(str(error), kind="Bad Request")
    rid = body.get("rid")
    if body.get("abort_all") is True:
        await service.ask(service.scheduler.abort_all)
    elif isinstance(rid, str) and rid:
        await service.ask(lambda: service.scheduler.abort(rid))
    else:
        logger.warning("Ignore abort_request with empty rid and abort_all=False")
    return answers.empty()


async def pause_generation(request: Request, service: Service) -> Response:
    """Stop decoding; the default mode ends every running request, as in SGLang."""
    try:
        body = await answers.json_object(request)
        mode = PauseMode(body.get("mode", PauseMode.ABORT.value))
    except BadRequestError as error:
        return answers.openai_error(str(error), kind="Bad Request")
    except ValueError:
        choices = "Input should be 'abort', 'retract' or 'in_place'"
        return answers.openai_error(
            f"1 validation error:\n  {{'type': 'literal_error', 'loc': ('body', 'mode'), 'msg': \"{choices}\"}}",
            kind="Bad Request",
        )
    await service.pause(mode)
    return JSONResponse({"message": "Generation paused successfully.", "status": "ok"})


async def continue_generation(service: Service) -> Response:
    """Decode again; the server's status is not repaired by this."""
    await service.resume()
    logger.info("[continue_generation] torch.cuda.empty_cache() called: reserved 0.0 MB -> 0.0 MB (freed 0.0 MB)")
    return JSONResponse({"message": "Generation continued successfully.", "status": "ok"})


async def slow_down(request: Request, service: Service) -> Response:
    """Sleep before every step from now on; null or a negative number ends it."""
    try:
        body = await answers.json_object(request)
        if "forward_sleep_time" not in body:
            raise BadRequestError(
                "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'forward_sleep_time'), 'msg': 'Field required'}"
            )
        value = body["forward_sleep_time"]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise BadRequestError(
                "1 validation error:\n  {'type': 'float_type', 'loc': ('body', 'forward_sleep_time')}"
            )
    except BadRequestError as error:
        return answers.openai_error(str(error), kind="Bad Request")
    service.scheduler.step_sleep_s = max(value or 0.0, 0.0)
    return JSONResponse(None)
