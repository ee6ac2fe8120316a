"""The web server of `penstock serve`: the page, the API, server-sent events, and what is refused.

There are no cookies: a token is sent with each request, so that another site cannot use it; without tokens the service
listens on loopback alone, and commands need a header that other sites cannot send.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import ipaddress
import json
import logging
import math
import os
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import resources
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.live.alarm_records import RefusedError
from penstock.live.api import ENDPOINTS, MAY, Api, Endpoint, PlainJson
from penstock.live.connectors import Input, Outbox, make_inputs, make_targets
from penstock.live.options import ServeOptions
from penstock.live.service import Service
from penstock.live.store import find_token
from penstock.storage import StorageError

log = logging.getLogger("penstock.serve")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
COMMAND_HEADER = "penstock-command"
_TURN_SECONDS = 0.0005  # of a thread that works, until one that waits for it has its turn
_MOST_BUCKETS = 10_000
_SLOWEST_READER = 1000.0  # bytes a second
_MOST_LISTENERS = 500
_TICK, _HEARTBEAT = 0.1, 15.0  # seconds
_OWN_FILES, _ASSET_FILES = 256, 4  # that the process opens apart from connections: store, inputs, messages
_FEWEST_CONNECTIONS = 16
_STOP_SECONDS, _END_SECONDS = 2.5, 4.5  # until threads are left as they are, and until the process ends without them
_MOST_CHANGES = 200  # in one event; with more, pages load everything again
_SCRIPT = "text/javascript"
_PAGE = {  # files of the page; the charts are those of the report
    "/": ("live/templates/live.html", "text/html"),
    "/live.css": ("live/templates/live.css", "text/css"),
    "/live.js": ("live/templates/live.js", _SCRIPT),
    **{f"/{name}.js": (f"report/templates/{name}.js", _SCRIPT) for name in ("format", "view", "chart")},
}


Tokens = Callable[[], Sequence[tuple[str, str, str]]]  # name, role and hash of each


@dataclass(frozen=True)
class Limits:
    """What a client may cost.

    header_seconds, body_seconds : a client that is slower is cut off.
    answer_seconds : a client that reads less than 1 kB/s of a long answer in so long is cut off too.
    header_bytes : of the address and all headers together.
    rate, burst : requests a second of a user (of an address, where there is no valid token), and how many at once.
    connections : those beyond are closed at once; fewer, if the process may not open so many files.
    uploads, upload_bytes : bodies sent to addresses that begin so may be so long, and take any time but for pauses.
    """

    header_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 30.0
    header_bytes: int = 32_768
    rate: float = 500.0
    burst: float = 1000.0
    connections: int = 1000
    uploads: str | None = None
    upload_bytes: int = 0


class Hub:
    """Send the same events to all pages that listen: what was committed is collected, and sent ten times a second."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._pending: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many pages listen."""
        return len(self._queues)

    def publish(self, news: dict[str, Any]) -> None:
        """Take what a commit has changed, from any thread."""
        with self._lock:
            pending = self._pending or {"assets": {}, "changes": []}
            pending["commit"] = news["commit"]
            pending["assets"] |= {
                name: [each["row"], each["time"], each["score"], each["threshold"]]
                for name, each in news["assets"].items()
            }
            pending["changes"] += news["changes"]
            self._pending = pending

    async def run(self) -> None:
        """Send until cancelled."""
        silent = 0.0
        while True:
            await asyncio.sleep(_TICK)
            with self._lock:
                pending, self._pending = self._pending, {}
            silent += _TICK
            if pending:
                if len(pending["changes"]) > _MOST_CHANGES:
                    pending |= {"changes": [], "reload": True}
                self._send(f"id: {pending['commit']}\nevent: news\ndata: {json.dumps(pending)}\n\n".encode())
            elif silent >= _HEARTBEAT:
                self._send(b": still here\n\n")
            else:
                continue
            silent = 0.0

    def close(self) -> None:
        """End all connections."""
        for queue in list(self._queues):
            self._queues.discard(queue)
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)

    def _send(self, data: bytes) -> None:
        for queue in list(self._queues):
            try:
                queue.put_nowait(data)
            except asyncio.QueueFull:  # it does not read: it may come again
                self._queues.discard(queue)

    def answer(self) -> Response:
        """Return an answer that does not end: events."""
        if len(self._queues) >= _MOST_LISTENERS:
            raise RefusedError("Too many pages listen.", 503)
        headers = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
        return StreamingResponse(self._events(), headers=headers)

    async def _events(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(100)
        self._queues.add(queue)
        try:
            data: bytes | None = b"event: hello\ndata: {}\n\n"
            while data is not None:
                yield data
                is_sent = queue not in self._queues and queue.empty()
                data = None if is_sent else await queue.get()
        finally:
            self._queues.discard(queue)


class Guard:
    """Check each request before anything else sees it: size, host, token, rate; and set the headers of answers."""

    def __init__(self, app: ASGIApp, tokens: Tokens, options: ServeOptions, limits: Limits) -> None:
        self._app, self._tokens, self._limits = app, tokens, limits
        self._most = int(options.max_body * 1e6)
        self._local, self._public = is_loopback(options.host), options.public_origin
        self._hosts = {"localhost", "127.0.0.1", "[::1]", options.host.lower(), _host_of(self._public or "//localhost")}
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
        except RefusedError as error:
            await error_response(error, scope)(scope, receive, guarded_send)
            return
        await self._app(scope, self._limited(scope, receive), guarded_send)

    def _check(self, scope: Scope) -> None:
        sent = sum(len(name) + len(value) for name, value in scope["headers"])
        if sent + len(scope["raw_path"]) + len(scope["query_string"]) > self._limits.header_bytes:
            raise RefusedError(f"Address and headers may have {self._limits.header_bytes:,} bytes at most.", 431)
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = _host_of(f"//{host}")
        if self._local and name not in self._hosts:
            raise RefusedError("This name is not one of this service.", 421)
        self._authenticate(scope, headers)
        # A valid token has an allowance of its own: whoever shares its address (a proxy) cannot use it up.
        user, address = scope["user"], (scope["client"] or ("?", 0))[0]
        self._check_rate(("user", user) if user else ("address", address))
        if headers.get("authorization") is not None and scope["role"] is None:
            raise RefusedError("The token is not valid.", 401, **{"www-authenticate": "Bearer"})
        length = headers.get("content-length")
        most = self._most_of(scope)[0]
        if length is not None and (not length.isdigit() or int(length) > most):
            raise RefusedError(f"The body may have {most:,} bytes at most.", 413)
        if scope["method"] not in ("GET", "HEAD"):
            origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
            is_public = self._public is not None and name == _host_of(self._public)
            own = self._public if is_public else f"{scope['scheme']}://{host}"
            if origin not in (None, own, self._public) or site not in ("same-origin", "none"):
                raise RefusedError("Requests from other sites are not accepted (--public-url names this one).", 403)

    def _authenticate(self, scope: Scope, headers: Headers) -> None:
        """Find the user of a request; without tokens, every user of this machine has all rights.

        Nobody is locked out for wrong tokens: one of 256 random bits is not guessed at any rate.
        """
        tokens = self._tokens()
        if not tokens and self._local and self._public is None:
            scope["user"], scope["role"] = "", "engineer"
            return
        kind, _, token = headers.get("authorization", "").partition(" ")
        found = find_token(token.strip(), tokens) if kind.lower() == "bearer" else None
        scope["user"], scope["role"] = found or ("", None)  # what needs a role says so

    def _check_rate(self, whose: tuple[str, str]) -> None:
        now = time.monotonic()
        burst = self._limits.burst
        left, at = self._buckets.pop(whose, (burst, now))
        left = min(burst, left + (now - at) * self._limits.rate) - 1
        self._buckets[whose] = (max(left, -1.0), now)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        if left < 0:
            raise RefusedError("Too many requests.", 429)

    def _most_of(self, scope: Scope) -> tuple[int, bool]:
        """Return how many bytes a body may have, and whether it is an upload."""
        begin = self._limits.uploads
        is_upload = begin is not None and scope["path"].startswith(begin)
        return (self._limits.upload_bytes, True) if is_upload else (self._most, False)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return a `receive` that ends with an error for a body that is too long or takes too long."""
        read, end = 0, time.monotonic() + self._limits.body_seconds
        reading = scope["method"] not in ("GET", "HEAD")
        most, is_upload = self._most_of(scope)

        async def limited() -> Message:
            nonlocal read, reading, end
            if not reading:
                return await receive()
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise RefusedError("The body did not come in time.", 408) from None
            read += len(message.get("body", b""))
            reading = message.get("more_body", False)
            if is_upload:
                end = time.monotonic() + self._limits.body_seconds
            if read > most:
                raise RefusedError(f"The body may have {most:,} bytes at most.", 413)
            return message

        return limited


def error_response(error: Exception, scope: Scope) -> Response:
    """Return the answer to an error; what is not expected is logged, and nothing of it is shown."""
    status, text, headers = 500, "The service could not do this; see its log.", dict[str, str]()
    if isinstance(error, RefusedError):
        status, text, headers = error.status, str(error), dict(error.headers)
        headers |= {"retry-after": "1"} if status in (429, 503, 507) else {}
    elif isinstance(error, LookupError):
        status, text = 404, str(error).strip("'\"")
    elif isinstance(error, StorageError):
        log.error("A request failed: %s", error)
        text = str(error)
    elif isinstance(error, ClientDisconnect):
        status, text = 400, "The client has gone."
    else:
        log.error("A request failed: %s %s", scope["method"], scope["path"], exc_info=error)
    if status in (401, 408, 413, 429, 431):
        headers["connection"] = "close"  # what it still sends is not read
    return PlainJson({"error": text}, status, headers)


def as_response(answer: Any) -> Response:
    """Return an answer as it is sent: plain data as JSON."""
    return answer if isinstance(answer, Response) else PlainJson(answer)


def create_app(api: Api, options: ServeOptions, limits: Limits) -> ASGIApp:
    """Return the web application on a service."""

    def endpoint(each: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def run(request: Request) -> Any:
            role = request.scope["role"]
            try:
                if each.role is not None and role is None:
                    raise RefusedError("A token is needed.", 401, **{"www-authenticate": "Bearer"})
                if each.role is not None and role not in MAY[each.role]:
                    raise RefusedError(f"This needs the role {each.role}; the token has the role {role}.", 403)
                if each.fields and COMMAND_HEADER not in request.headers:
                    raise RefusedError("A command needs the header Penstock-Command: 1.", 403)
                size = int(request.headers.get("content-length") or 0) if each.fields else 0
                with api.service.claim("", size):
                    request.scope["given"] = await each.given(request)
                    if inspect.iscoroutinefunction(each.run):
                        return as_response(await each.run(api, request))
                    async with api.few if each.is_long else nullcontext():
                        return await run_in_threadpool(lambda: as_response(each.run(api, request)))
            except Exception as error:
                return error_response(error, request.scope)

        return run

    async def page(request: Request) -> Response:
        name, kind = _PAGE[request.scope["path"]]
        content = await run_in_threadpool((resources.files("penstock") / name).read_bytes)
        return Response(content, media_type=kind)

    async def missing(request: Request, error: Exception) -> Response:
        headers = getattr(error, "headers", None)  # of 405: the methods that there are
        return PlainJson({"error": "There is nothing here."}, getattr(error, "status_code", 404), headers)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        api.service.listeners.append(api.hub.publish)
        sending = asyncio.create_task(api.hub.run())
        yield
        sending.cancel()
        api.service.listeners.remove(api.hub.publish)

    routes = [Route(each.path, endpoint(each), methods=[each.method]) for each in ENDPOINTS]
    routes += [Route(path, page) for path in _PAGE]
    inner = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: missing, 405: missing})
    inner.router.redirect_slashes = False
    return Guard(inner, api.tokens, options, limits)


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Protocol(H11Protocol):
    """HTTP, with limits to the time of a request to arrive and of its answer to leave, and to connections.

    Uvicorn has none of them.

    Its `limit_concurrency` answers a request with 503; a client that sends none would keep its connection.
    """

    header_seconds, most, answer_seconds = Limits.header_seconds, Limits.connections, Limits.answer_seconds
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\r\n")
            transport.abort()  # what could not be written at once is not waited for
        else:
            self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._deadline, self._unread):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        """Start the clock when much of an answer waits to be read."""
        super().pause_writing()
        self._await_reading(math.inf)

    def resume_writing(self) -> None:
        """Stop it when little does."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _await_reading(self, before: float) -> None:
        """Cut off a client that reads too slowly: what waits for it is in memory."""
        waiting = self.transport.get_write_buffer_size()
        if before - waiting < _SLOWEST_READER * self.answer_seconds:
            self.transport.abort()
            return
        self._unread = self.loop.call_later(self.answer_seconds, self._await_reading, waiting)

    def _await_request(self) -> None:
        """Start the clock when a request begins to arrive, and stop it when its headers are there."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.header_seconds, self.transport.abort)


class WebServer(uvicorn.Server):
    """Uvicorn, which ends the events before it waits for requests to end.

    stopped : whether a signal came before it was there to take it.
    signal : the last one that it took.
    """

    hub: Hub | None = None
    stopped: Callable[[], bool] = staticmethod(lambda: False)
    signal = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.should_exit = self.should_exit or self.stopped()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.hub is not None:
            self.hub.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End; the process ends some seconds later whatever its threads do: what is committed is on the disk."""
        super().handle_exit(sig, frame)
        self.signal = sig
        last = threading.Timer(_END_SECONDS, os._exit, (128 + sig,))
        last.daemon = True
        last.start()


def make_server(app: ASGIApp, options: ServeOptions, limits: Limits) -> WebServer:
    """Return the web server of an application, with all limits; `run` it with a socket of `bound_socket`."""
    for name in ("uvicorn.error", "asyncio"):  # it would log each malformed request
        logging.getLogger(name).setLevel(logging.CRITICAL)
    most = _allowed_connections(limits.connections, _OWN_FILES + _ASSET_FILES * len(options.assets))
    seconds = {name: getattr(limits, name) for name in ("header_seconds", "answer_seconds")}
    return WebServer(
        uvicorn.Config(
            app,
            http=type("Protocol", (_Protocol,), {**seconds, "most": most}),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=limits.header_bytes,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            ssl_certfile=None if options.tls_certificate is None else str(options.tls_certificate),
            ssl_keyfile=None if options.tls_key is None else str(options.tls_key),
        )
    )


class LiveServer:
    """A service with its web server."""

    def __init__(self, options: ServeOptions, limits: Limits | None = None) -> None:
        options.check()
        limits = limits or Limits()
        self.options = options
        targets = make_targets(options)
        self._socket = bound_socket(options)
        try:
            self.service = Service(options, tuple(targets))
        except BaseException:
            self._socket.close()
            raise
        self.outbox = Outbox(self.service, targets)
        self.inputs: list[Input] = []
        self.api = Api(self.service, Hub())
        try:
            self.inputs = make_inputs(self.service)
            if not (is_loopback(options.host) and options.public_url is None) and not self.service.store.tokens():
                raise StorageError(
                    f"To be reached from other machines (at {options.public_url or options.host}), there must be a "
                    f"token: penstock serve --store {options.store} --add-token NAME:ROLE"
                )
        except BaseException:
            self._close()
            raise
        host = f"[{options.host}]" if ":" in options.host else options.host
        scheme = "http" if options.tls_certificate is None else "https"
        self.url = f"{scheme}://{host}:{self._socket.getsockname()[1]}/"
        self._server = make_server(create_app(self.api, options, limits), options, limits)
        self._server.hub = self.api.hub
        self._thread: threading.Thread | None = None

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Serve until a signal ends it; `stopped` says whether one came already."""
        sys.setswitchinterval(_TURN_SECONDS)
        gc.collect()
        gc.freeze()  # what is loaded stays: to look through all of it for garbage holds all threads for 0.2 s
        self._server.stopped = stopped
        self._start()
        try:
            self._server.run([self._socket])
        finally:
            self._close()
            if self.service.alive:  # in the middle of its work, which Python would wait for
                logging.shutdown()
                os._exit(128 + self._server.signal)

    def _start(self) -> None:
        self.service.start()
        self.outbox.start()
        for each in self.inputs:
            each.start()

    def __enter__(self) -> LiveServer:
        self._start()
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                self._close()
                raise RuntimeError("The web server did not start; see the log.")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join()
        self._close()

    def _close(self) -> None:
        workers = (*self.inputs, self.outbox)
        for worker in workers:
            worker.stopping.set()
        end = time.monotonic() + _STOP_SECONDS
        for worker in workers:
            worker.stop(max(0.0, end - time.monotonic()))
        self.service.stop(max(0.0, end - time.monotonic()))
        self._socket.close()


def _allowed_connections(wanted: int, others: int) -> int:
    """Return how many connections there may be, if `others` of the files that the process may open are not theirs.

    The limit of files is raised for that as far as the system lets a process raise it.
    """
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return wanted
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < wanted + others:
        files = wanted + others if most == resource.RLIM_INFINITY else min(wanted + others, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
        wanted = max(_FEWEST_CONNECTIONS, min(wanted, files - others))
        log.info("%d connections at once, because the process may open %d files", wanted, files)
    return wanted


def _host_of(origin: str) -> str:
    """Return the name in an origin, without its port; "" if it has none.

    >>> _host_of("https://plant.example:8443"), _host_of("//[::1]:8640")
    ('plant.example', '[::1]')
    """
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host


def bound_socket(options: ServeOptions) -> socket.socket:
    """Return a socket that is bound to the address; StorageError if that is not possible."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named: else asyncio sets no TCP_NODELAY
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((options.host, options.port))
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise StorageError(
            f"Cannot listen at {options.host}, port {options.port}: {error.strerror}. Choose another --port (0: any)."
        ) from None
    return bound
