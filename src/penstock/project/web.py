"""The web server of `penstock open`: the page of one project, and what it can ask for.

It has the guard of `penstock serve`: hosts, origins, limits, and a token that is made anew at each start and needed for
everything but the page itself. Paths of this machine are taken only while it listens on this machine alone.
"""

from __future__ import annotations

import getpass
import logging
import secrets
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Self

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from penstock.columns import ROLES
from penstock.explain import REASONS
from penstock.io import is_address
from penstock.live.alarm_records import ALARM, RefusedError
from penstock.live.api import PlainJson
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.store import hash_token
from penstock.live.web import (
    COMMAND_HEADER,
    Guard,
    Limits,
    LiveServer,
    bound_socket,
    error_response,
    is_loopback,
    make_server,
)
from penstock.options import FitOptions, described
from penstock.project.folder import STORE, Project
from penstock.project.notebook import live_files
from penstock.project.results import label_document
from penstock.project.tasks import COMPARISON, EXPORTS
from penstock.project.uploads import ENDINGS, UploadLimits, receive
from penstock.project.worker import Task, Worker

_UPLOAD = "/api/upload"
_SCRIPT = "text/javascript"
_SHARED = ("format", "view", "chart", "unpack", "overview")  # of the report
_PAGE = {
    "/": ("project/templates/open.html", "text/html"),
    "/open.css": ("project/templates/open.css", "text/css"),
    "/open.js": ("project/templates/open.js", _SCRIPT),
    "/live.css": ("live/templates/live.css", "text/css"),
    **{f"/{name}.js": (f"report/templates/{name}.js", _SCRIPT) for name in _SHARED},
}
# The report has its script in it: it may run that, as its own policy names it, and has no origin to ask anything of.
_REPORT_HEADERS = {
    "content-security-policy": "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'",
    "cross-origin-opener-policy": "unsafe-none",
}
_MOST_TICKETS = 20
_CHANGED = {name for name, _, option in described(FitOptions) if option.kind is not Path and name != "query"}
_SOURCES = ("input", "mqtt", "kafka", "opcua")
_log = logging.getLogger("penstock.open")


@dataclass(frozen=True)
class OpenOptions:
    """Where the page of a project listens, and how much it takes."""

    host: str = "127.0.0.1"
    port: int = 0
    uploads: UploadLimits = field(default_factory=UploadLimits)


class ProjectApi:
    """What the page can ask for; the same as methods of `Project`, and jobs of its worker."""

    def __init__(self, project: Project, options: OpenOptions) -> None:
        self.project, self.options = project, options
        self.worker = Worker(project)
        self.last: dict[str, Task] = {}
        self.live: LiveServer | None = None
        self._files: dict[str, str] = {}  # that run the live service for good
        self.tickets: list[str] = []  # that show the report without a token, as a new tab cannot send it
        self._live_lock = threading.Lock()

    @property
    def is_local(self) -> bool:
        """Whether this machine alone may ask: others must not read its files, nor make it connect to anything."""
        return is_loopback(self.options.host)

    def close(self) -> None:
        self.worker.close()
        self.stop_live()

    def state(self) -> dict[str, Any]:
        """All that is known, but for the large documents."""
        project, problem = self.project, None
        try:
            settings, key = project.settings, project.key
        except (ValueError, OSError) as error:
            settings, key, problem = {"source": []}, "", str(error)
        running = self.worker.next
        return {
            "folder": str(project.folder),
            "name": project.name,
            "key": key,
            "problem": problem,
            "settings": settings,
            "uploads": project.uploads,
            "failures": [vars(each) for each in project.failures],
            "models": [each.name for each in project.models],
            "work": running
            and {"what": running.what, "stage": running.stage, "seconds": time.time() - running.started},
            "ended": {name: {"error": task.error} for name, task in self.last.items() if task.done.is_set()},
            "results": {name: project.stamp_of(name) for name in ("look", "findings")},
            "live": self._live_state(),
            "roles": list(ROLES),
            "endings": ENDINGS,
            "reasons": list(REASONS),
            "user": _user(),
            "paths": self.is_local,
        }

    def run(self, what: str, **given: Any) -> Task:
        """Start a job, and keep it as the last of its kind."""
        task = self.last[what] = self.worker.start(what, **given)
        return task

    def _live_state(self) -> dict[str, Any] | None:
        live = self.live
        if live is None:
            return None
        states = live.service.asset_states()
        alarms = [each["about"] == ALARM for each in live.service.store.alarms(only_open=True)]
        problems = [each.text for each in list(live.service.problems.values())]
        rows = sum(each["row"] or 0 for each in states)
        counts = {"alarms": sum(alarms), "others": len(alarms) - sum(alarms)}
        return {"url": live.url, "rows": rows, **counts, "problems": problems, "files": self._files}

    def asset_options(self, given: Mapping[str, Any]) -> AssetOptions:
        """Return the model and the source of rows that the page says."""
        model = self.project.model(given.get("model"))
        source: dict[str, Any] = {key: str(given[key]).strip() for key in _SOURCES if given.get(key)}
        if "input" in source:
            source["input"] = path = self.project.folder / source["input"]
            if not (self.is_local or path.resolve().is_relative_to(self.project.folder)):
                raise RefusedError("Files outside the project are read only if the page is open to this machine alone.")
        elif source and not self.is_local:
            raise RefusedError("Addresses are taken only if the page is open to this machine alone.")
        if "opcua" in source:
            source["opcua_nodes"] = tuple(
                text for each in given.get("opcua_nodes") or () if (text := str(each).strip())
            )
        return AssetOptions(model=model, **source)

    def serve_options(self, given: Mapping[str, Any]) -> ServeOptions:
        """Return the options of a live service of this project, from what the page says."""
        name, rules = str(given.get("name", "")).strip(), AlarmRules(**given.get("rules", {}))
        assets = {name: self.asset_options(given)}
        store = self.project.folder / STORE
        options = ServeOptions(store=store, port=int(given.get("port") or 8640), assets=assets, rules=rules)
        options.check()
        return options

    def start_live(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Write live.toml, start the service in this process, and return how to run it for good."""
        with self._live_lock:
            options = self.serve_options(given)
            files = live_files(self.project, options)
            self._stop_live()
            live = LiveServer(replace(options, port=0 if given.get("port") is None else options.port))
            live.__enter__()
            self.live, self._files = live, files
        return files

    def stop_live(self) -> None:
        """End the live service; what it knows stays in live.db."""
        with self._live_lock:
            self._stop_live()

    def _stop_live(self) -> None:
        if self.live is not None:
            self.live.__exit__()
            self.live = None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in a container
        return "somebody"


async def _body(request: Request) -> dict[str, Any]:
    try:
        found = await request.json()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusedError("The body must be an object of JSON.")
    return found


def _keep_failures(project: Project, name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "failures.csv"
        path.write_bytes(content)
        try:
            project.set_failures(path)
        except ValueError as error:
            raise RefusedError(str(error).removeprefix("failures: ").replace(str(path), name[:100])) from None


Command = Callable[[ProjectApi, dict[str, Any]], Any]


def _use(api: ProjectApi, given: dict[str, Any]) -> None:
    path = str(given.get("path", "")).strip().strip("\"'")
    if not api.is_local:
        raise RefusedError("Paths are taken only from this machine: upload the file.")
    if not path:
        raise RefusedError("Give a path, such as /data/plant.csv, or a database, sql:sqlite:///plant.db.")
    api.project.use(path if is_address(path) else str(Path(path).expanduser()))
    api.run("look")


def _sample(api: ProjectApi, given: dict[str, Any]) -> None:
    api.run("sample")
    api.run("look")


def _uploaded(api: ProjectApi, given: dict[str, Any]) -> None:
    api.project.use_uploads()
    api.run("look")


def _remove(api: ProjectApi, given: dict[str, Any]) -> None:
    api.project.remove_upload(str(given.get("name")))
    if api.project.uploads:
        api.run("look")


def _change(api: ProjectApi, given: dict[str, Any]) -> None:
    for name in given:
        if name not in _CHANGED:
            raise RefusedError(f"{name!r:.60} is not changed here. Sources are chosen in the first step.")
    api.project.change(**given)
    api.run("look")


def _roles(api: ProjectApi, given: dict[str, Any]) -> None:
    names, role = given.get("names"), given.get("role")
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise RefusedError("names must be texts.")
    api.project.set_roles(names, None if role is None else str(role))
    api.run("look")


def _mark(api: ProjectApi, given: dict[str, Any]) -> None:
    change = api.project.remove_period if given.get("remove") else api.project.add_period
    change(str(given.get("kind")), str(given.get("period")))


def _set_label(api: ProjectApi, given: dict[str, Any]) -> None:
    document = api.project.read_json("findings") or {"incidents": []}
    number = given.get("incident")
    incident = next((each for each in document["incidents"] if each["incident"] == number), None)
    if incident is None or document.get("key") != given.get("key"):
        raise RefusedError("The incidents have changed meanwhile. Load the page again.", 409)
    made = api.project.label(
        incident, str(given.get("reason")), str(given.get("who") or _user()), str(given.get("comment", ""))
    )
    incident["label"] = label_document(made)
    api.project.write_json("findings", document)


def _take_back(api: ProjectApi, given: dict[str, Any]) -> None:
    identity = str(given.get("id"))
    api.project.take_back(identity, _user())
    document = api.project.read_json("findings") or {"incidents": []}
    for each in document["incidents"]:
        if each["label"] is not None and each["label"]["id"] == identity:
            each["label"] = None
            api.project.write_json("findings", document)


def _run(api: ProjectApi, given: dict[str, Any]) -> None:
    what = str(given.get("what"))
    if what not in ("look", "detect", "fit"):
        raise RefusedError("what must be look, detect or fit.")
    api.run(what)


def _wait(what: str) -> Command:
    """Return a command that waits for a job, and answers what it found."""

    def command(api: ProjectApi, given: dict[str, Any]) -> Any:
        task = api.run(what, **given)
        task.done.wait()
        if task.error is not None:
            raise RefusedError(task.error["message"], 422)
        return task.answer

    return command


def _test(api: ProjectApi, given: dict[str, Any]) -> Any:
    posted = given.get("posted")
    return _wait("test_input")(
        api, {"asset": api.asset_options(given), "posted": None if posted is None else str(posted)}
    )


def _show(api: ProjectApi, given: dict[str, Any]) -> dict[str, str]:
    _wait("export")(api, {"kind": "report"})
    ticket = secrets.token_urlsafe(32)
    api.tickets = [*api.tickets[1 - _MOST_TICKETS :], ticket]
    return {"address": f"/shown/{ticket}"}


_COMMANDS: dict[str, Command] = {
    "use": _use,
    "sample": _sample,
    "uploaded": _uploaded,
    "remove": _remove,
    "change": _change,
    "roles": _roles,
    "mark": _mark,
    "label": _set_label,
    "take-back": _take_back,
    "run": _run,
    "cancel": lambda api, given: api.worker.cancel(),
    "no-failures": lambda api, given: api.project.set_failures(None),
    "export": _wait("export"),
    "show": _show,
    "compare": _wait("compare"),
    "past": _wait("past"),
    "test": _test,
    "live": lambda api, given: api.start_live(given),
    "stop-live": lambda api, given: api.stop_live(),
}


def guarded(run: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that needs the token, and answers errors in words."""

    async def answer(request: Request) -> Response:
        try:
            if request.scope["role"] is None:
                raise RefusedError("A token is needed: open the address that 'penstock open' has shown.", 401)
            if request.method == "POST" and COMMAND_HEADER not in request.headers:
                raise RefusedError("A command needs the header Penstock-Command: 1.", 403)
            found = await run(request)
            return found if isinstance(found, Response) else PlainJson({} if found is None else found)
        except RefusedError as error:
            return error_response(error, request.scope)
        except (ValueError, OSError, TypeError, LookupError, OverflowError) as error:
            return error_response(RefusedError(str(error).strip("'\"")), request.scope)
        except Exception as error:
            return error_response(error, request.scope)

    return answer


def create_app(api: ProjectApi) -> Starlette:

    async def state(request: Request) -> Any:
        return await run_in_threadpool(api.state)

    async def document(request: Request) -> Any:
        name = request.path_params["name"]
        path = api.project.folder / "results" / f"{name}.json"
        if name not in ("look", "findings", "charts") or not path.exists():
            raise RefusedError("There is no such result yet.", 404)
        return FileResponse(path, media_type="application/json")

    async def command(request: Request) -> Any:
        name = request.path_params["name"]
        if name not in _COMMANDS:
            raise RefusedError("There is no such command.", 404)
        return await run_in_threadpool(_COMMANDS[name], api, await _body(request))

    async def upload(request: Request) -> Any:
        name, limits = request.query_params.get("name", ""), api.options.uploads
        return {"names": await receive(api.project.folder / "data", name, request.stream(), limits)}

    async def failures(request: Request) -> Any:
        name, content = request.query_params.get("name", "The log"), await request.body()
        await run_in_threadpool(_keep_failures, api.project, name, content)
        return {"failures": len(api.project.failures)}

    async def file(request: Request) -> Any:
        kind, name = request.path_params["kind"], request.path_params["name"]
        known = {"model": [each.name for each in api.project.models], "report": [*EXPORTS.values(), COMPARISON]}
        path = api.project.folder / f"{kind}s" / name
        if name not in known.get(kind, ()) or not path.exists():
            raise RefusedError("There is no such file.", 404)
        return FileResponse(path, filename=f"{api.project.name}-{name}" if kind == "report" else name)

    async def shown(request: Request) -> Response:
        if request.path_params["ticket"] not in api.tickets:
            return PlainJson({"error": "There is nothing here."}, 404)
        path = api.project.folder / "reports" / EXPORTS["report"]
        return FileResponse(path, media_type="text/html", headers=_REPORT_HEADERS)

    async def page(request: Request) -> Response:
        name, kind = _PAGE[request.url.path]
        content = await run_in_threadpool((resources.files("penstock") / name).read_bytes)
        return Response(content, media_type=kind)

    async def missing(request: Request, error: Exception) -> Response:
        return PlainJson({"error": "There is nothing here."}, getattr(error, "status_code", 404))

    routes = [Route(path, page) for path in _PAGE]
    routes += [
        Route("/api/state", guarded(state)),
        Route("/api/results/{name}", guarded(document)),
        Route("/api/do/{name}", guarded(command), methods=["POST"]),
        Route(_UPLOAD, guarded(upload), methods=["POST"]),
        Route("/api/failures", guarded(failures), methods=["POST"]),
        Route("/api/files/{kind}/{name}", guarded(file)),
        Route("/shown/{ticket}", shown),
    ]
    app = Starlette(routes=routes, exception_handlers={404: missing, 405: missing})
    app.router.redirect_slashes = False
    return app


class ProjectServer:
    """The page of a project.

    Parameters
    ----------
    project : Project
    options : OpenOptions, optional

    Examples
    --------
    >>> import tempfile, urllib.request
    >>> with ProjectServer(Project(tempfile.mkdtemp())) as server:
    ...     urllib.request.urlopen(server.address).status
    200
    """

    def __init__(self, project: Project, options: OpenOptions | None = None) -> None:
        self.options = options or OpenOptions()
        web = ServeOptions(host=self.options.host, port=self.options.port)
        self._socket = bound_socket(web)
        host = f"[{web.host}]" if ":" in web.host else web.host
        self.address = f"http://{host}:{self._socket.getsockname()[1]}/"
        self.token = secrets.token_urlsafe(32)
        self.api = ProjectApi(project, self.options)
        limits = Limits(uploads=_UPLOAD, upload_bytes=self.options.uploads.file_bytes)
        tokens = [("owner", "engineer", hash_token(self.token))]
        self._server = make_server(Guard(create_app(self.api), lambda: tokens, web, limits), web, limits)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address with the token: who has it can use the page."""
        return f"{self.address}#token={self.token}"

    def run(self, stopped: Callable[[], bool] = lambda: False, started: Callable[[], None] = lambda: None) -> None:
        """Serve until a signal ends it; `started` is called when it listens."""
        self._server.stopped = stopped
        self.api.worker.warm()
        started()
        try:
            self._server.run([self._socket])
        finally:
            self._close()

    def __enter__(self) -> Self:
        self.api.worker.warm()
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("The web server did not start; see the log.")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join()
        self._close()

    def _close(self) -> None:
        self.api.close()
        self._socket.close()
