"""Options of a monitored stream, declared once for Python, the command line, TOML files and saved settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from penstock._parameters import ParameterError, check_choice, check_number
from penstock.options import DayFirst, Option, TimeFormat, Timezone

if TYPE_CHECKING:
    from penstock.io import TableOptions

_in, _out, _state, _alarm = (partial(Option, panel) for panel in ("Input", "Output", "State", "Alarms"))
_TIME_HELP = (
    "The time column, passed through; else one called time, timestamp, date, datetime or t, or a first column that is "
    "not numbers."
)
_MODEL_HELP = "A model of 'penstock fit', or a saved detector; else an OnlineNSNMF learns from the first rows."
_THRESHOLD_HELP = (
    "fixed:0.8 | deviation | quantile | peaks | drifting-peaks | conformal | top, with parameters as in "
    "quantile:rate=0.01,window=1000; with --model also auto, or a share of normal rows."
)
_THRESHOLD_DEFAULT = "conformal:rate=0.01, or the model's own"
_ASSET_NAME = re.compile(r"[^\W/][\w. -]{0,39}(/[^\W/][\w. -]{0,39})?")
_PARTS_OF_ASSETS = ("series", "verdicts", "export", "models", "quarantine")  # of their addresses in the API
OPCUA_POLICIES = ("Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss")
DIGESTS = ("daily", "weekly")
_PORTS = {"http": ":80", "https": ":443"}  # which browsers leave out of an origin
_WARMUP_HELP = "Samples to learn from before the first score."
_WARMUP_DEFAULT = "200 or, if larger or without scaling, the buffer"


def _model(flags: str, text: str, default: str | None = None) -> Option:
    return Option("Model", flags, text, default=default)


@dataclass(frozen=True)
class AlarmRules:
    """When verdicts become an alarm, when it ends, and how it is notified: docs/alarms.md.

    Durations are texts such as "5min", or seconds, and in the data's time. The defaults are for rows every 1 to 10
    minutes; an alarm always takes two rows, however far apart.

    Examples
    --------
    >>> AlarmRules(on_delay="30s", off_delay=120).seconds("on_delay")
    30.0
    """

    on_delay: Annotated[Any, _alarm("--on-delay", "Above the threshold for so long before an alarm is raised.")] = (
        "5min"
    )
    off_delay: Annotated[Any, _alarm("--off-delay", "Below it for so long before an alarm ends.")] = "30min"
    dead_band: Annotated[float, _alarm("--dead-band", "Below means: by this share of the threshold.")] = 0.1
    min_duration: Annotated[Any, _alarm("--min-duration", "An alarm stays active for so long at least.")] = "10min"
    rejoin: Annotated[Any, _alarm("--rejoin", "Within so long after its end, the same cause is the same alarm.")] = "6h"
    re_alarm: Annotated[
        Any, _alarm("--re-alarm", "Active so long after it was acknowledged: shown again; 0s never.")
    ] = "24h"
    latching: Annotated[bool, _alarm("--latching", "An alarm stays until it is reset by hand.")] = False
    confirm: Annotated[bool, _alarm("--confirm", "An alarm stays until it is confirmed by hand.")] = False
    no_data: Annotated[Any, _alarm("--no-data", "No row for so long, or three usual steps, is an alarm; 0s never.")] = (
        "1h"
    )
    stale_model: Annotated[
        Any, _alarm("--stale-model", "An alarm active for so long means that the model is stale; 0s never.")
    ] = "7d"
    keep: Annotated[
        Any, _alarm("--keep-alarms", "An alarm that is not acknowledged is closed so long after its end.")
    ] = "30d"
    group_wait: Annotated[Any, _alarm("--group-wait", "Wait so long for more before a notification.")] = "30s"
    group_interval: Annotated[Any, _alarm("--group-interval", "So long at least between notifications of a group.")] = (
        "5min"
    )
    repeat: Annotated[Any, _alarm("--repeat", "Notify again after so long what is not acknowledged; 0s never.")] = "4h"
    inhibit: Annotated[
        tuple[str, ...], _alarm("--inhibit", "grid>pump1: no notification of pump1 while grid has an alarm; a>b,c>d")
    ] = ()

    def seconds(self, name: str) -> float:
        """Return a duration in seconds; a `ParameterError` if it is none."""
        return _seconds(name, getattr(self, name))

    def check(self) -> None:
        """Raise a `ParameterError` for a value out of bounds."""
        for each in fields(self):
            if isinstance(each.default, str):
                self.seconds(each.name)
        if not 0 <= self.dead_band < 1:
            raise ParameterError("dead_band", f" must be a number from 0 and below 1; got {self.dead_band!r}.")
        for pair in self.inhibit:
            if len([name for name in pair.split(">") if name.strip()]) != 2:
                raise ParameterError("inhibit", f" must be two assets such as grid>pump1; got {pair!r:.100}.")


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """How rows of a stream are read, and with which model they are scored: of `watch`, and of each asset of `serve`."""

    time: Annotated[str | None, _in("--time", _TIME_HELP)] = None
    timezone: Timezone = None
    day_first: DayFirst = None
    time_format: TimeFormat = None
    max_ahead: Annotated[
        Any, _in("--max-ahead", "A row may be dated so long after all before it; else it is malformed.")
    ] = "1day"
    step: Annotated[
        Any, _in("--step", "Rows are readings of single tags: put them on a clock with this step, such as 1min.")
    ] = None
    hold: Annotated[
        Any, _in("--hold", "For how long a reading stands where a step has none; else as is usual for its tag.")
    ] = None
    late: Annotated[Any, _in("--late", "For how long a reading may come after the end of its step.")] = "30s"
    delimiter: Annotated[str | None, _in("--delimiter", "Between fields of CSV; else by the header: , ; tab |")] = None
    model: Annotated[Path | None, _model("--model", _MODEL_HELP)] = None
    threshold: Annotated[Any, _model("--threshold", _THRESHOLD_HELP, _THRESHOLD_DEFAULT)] = None


@dataclass(frozen=True)
class WatchOptions(StreamOptions):
    """What to monitor, with which model, and where verdicts and snapshots go.

    The fields are the options of `penstock watch` (`docs/watch.md`): `n_variables` is `--explain`, `n_components`
    `--components` and `random_state` `--seed`. Parameters of `OnlineNSNMF` that are None have its defaults, except
    that `similarity` is "binary", `scale` "minmax", `warmup` 200 or the buffer, and `threshold` "conformal:rate=0.01".

    Examples
    --------
    >>> WatchOptions(input="plant.csv", model="unit1.penstock", threshold="0.001").model
    'unit1.penstock'
    """

    input: Annotated[str | Path, _in("", "CSV or JSON lines, also packed (.gz); - is standard input.")] = "-"
    follow: Annotated[bool, _in("--follow -f", "Wait for more, also through rotation.")] = False
    format: Annotated[str | None, _in("--format", "csv or jsonl; else by the first line.")] = None
    columns: Annotated[tuple[str, ...], _in("--columns", "Measure only these: a,b,c")] = ()
    exclude: Annotated[tuple[str, ...], _in("--exclude", "Leave out these, such as labels: a,b")] = ()
    strict: Annotated[bool, _in("--strict", "End at the first malformed line.")] = False
    output: Annotated[Path | None, _out("--output -o", "A file; else standard output.")] = None
    overwrite: Annotated[bool, _out("--overwrite", "Replace an output that is there.")] = False
    alarms: Annotated[Path | None, _out("--alarms", "A file for alarms: one line of JSON per change.")] = None
    labels: Annotated[
        Path | None, _out("--labels", "What people said of earlier alarms: those like them are known.")
    ] = None
    n_variables: Annotated[int, _out("--explain", "How many variables are named for each sample.")] = 3
    state: Annotated[Path | None, _state("--state", "A folder for a store, to go on from after any end.")] = None
    snapshot_every: Annotated[int, _state("--snapshot-every", "Samples from one snapshot to the next.")] = 50_000
    snapshot_seconds: Annotated[float, _state("--snapshot-seconds", "Or seconds, if those come first.")] = 10.0
    n_components: Annotated[int | None, _model("--components", "Latent groups, K.", "5")] = None
    alpha: Annotated[float | None, _model("--alpha", "Weight of attributes against structure.", "0.8")] = None
    gamma: Annotated[float | None, _model("--gamma", "Weight of the ridge term in the warm-up.", "0.2")] = None
    buffer_size: Annotated[
        int | None, _model("--buffer-size", "Samples the tree reaches back, at most 2,000.", "20")
    ] = None
    similarity: Annotated[
        str | None, _model("--similarity", "How lengths become similarities; inverse is the paper's.", "binary")
    ] = None
    duplicates: Annotated[
        str | None, _model("--duplicates", "What an edge of length 0 is worth: join or zero.", "join")
    ] = None
    max_iter: Annotated[int | None, _model("--max-iter", "Most steps for one sample.", "50")] = None
    tol: Annotated[float | None, _model("--tol", "Relative change that ends them.", "0.001")] = None
    forgetting: Annotated[float | None, _model("--forgetting", "What is left of the past per sample.", "1.0")] = None
    refresh_every: Annotated[int | None, _model("--refresh-every", "Profiles move at every so many-th.", "1")] = None
    learn_flagged: Annotated[
        bool | None, _model("--learn-flagged/--no-learn-flagged", "Learn anomalies too.", "True")
    ] = None
    scale: Annotated[
        str | None, _model("--scale", "minmax, auto (minmax unless all is within 0 to 1) or none.", "minmax")
    ] = None
    warmup: Annotated[int | None, _model("--warmup", _WARMUP_HELP, _WARMUP_DEFAULT)] = None
    random_state: Annotated[int | None, _model("--seed", "For the warm-up.", "0")] = None

    def check(self) -> None:
        """Raise a `ParameterError` for a value out of bounds."""
        wrong = {
            "format": self.format not in (None, "csv", "jsonl") and "must be csv or jsonl",
            "delimiter": not _is_delimiter(self.delimiter) and "must be one character, or tab",
            "n_variables": self.n_variables < 0 and "must be a whole number ≥ 0",
            "snapshot_every": self.snapshot_every < 1 and "must be a whole number ≥ 1",
            "snapshot_seconds": not self.snapshot_seconds > 0 and "must be a number > 0",
            "random_state": not 0 <= (self.random_state or 0) < 2**32 and "must be a whole number from 0 to 4294967295",
        }
        for name, problem in wrong.items():
            if problem:
                raise ParameterError(name, f" {problem}; got {getattr(self, name)!r}.")
        _ = self.seconds("max_ahead"), self.seconds("late"), self.step_and_hold, self.table

    @property
    def separator(self) -> str | None:
        """The delimiter as a character; None: by the header."""
        return "\t" if self.delimiter in ("tab", "\\t") else self.delimiter

    def seconds(self, name: str) -> float:
        """Return a duration in seconds; a `ParameterError` if it is none."""
        return _seconds(name, getattr(self, name))

    @property
    def step_and_hold(self) -> tuple[float | None, float | None]:
        """The step of the clock that readings are put on, and for how long one stands, in seconds; None: not given."""
        step, hold = (None if getattr(self, name) is None else self.seconds(name) for name in ("step", "hold"))
        if step is not None and not step > 0:
            raise ParameterError("step", " must be longer than 0.")
        return step, hold

    @property
    def table(self) -> TableOptions:
        """How the stream is read."""
        from penstock.io import TableOptions, TimeOptions, as_zone

        try:
            zone = as_zone(self.timezone)
        except ValueError as error:
            raise ParameterError("timezone", f": {error}") from None
        try:
            times = TimeOptions((), zone, self.day_first, self.time_format)
        except ValueError as error:
            raise ParameterError("time_format", f": {error}") from None
        return TableOptions(self.format, self.separator, self.time, self.columns, self.exclude, times=times)

    def online_parameters(self) -> dict[str, Any]:
        """Return the parameters of `OnlineNSNMF` that are not None."""
        names = [each.name for each in fields(self)]
        chosen = {name: getattr(self, name) for name in names[names.index("n_components") :]}
        return {name: value for name, value in chosen.items() if value is not None}


_serve, _keep, _safe, _notify = (
    partial(Option, panel) for panel in ("Service", "Retention", "Security", "Notifications")
)
_ASSET_HELP = "What the watched unit is called, such as plant1/pump3; else as the input's or the model's file."
_PUBLIC_HELP = "How browsers reach it through a proxy, such as https://plant.example; links in messages begin so."


@dataclass(frozen=True, kw_only=True)
class AssetOptions(StreamOptions):
    """One asset of `penstock serve`: its model and its inputs. Rows can be posted to every asset (HTTP).

    Examples
    --------
    >>> AssetOptions(model=Path("unit1.penstock"), input=Path("unit1.csv")).input
    PosixPath('unit1.csv')
    """

    input: Annotated[
        Path | None, _in("--input", "A file that grows, CSV or JSON lines, or a folder of them, by name.")
    ] = None
    mqtt: Annotated[str | None, _in("--mqtt", "Subscribe to rows: mqtt://[USER:PASSWORD@]HOST:PORT/TOPIC")] = None
    kafka: Annotated[str | None, _in("--kafka", "Read rows of a topic: kafka://HOST:PORT/TOPIC")] = None
    opcua: Annotated[str | None, _in("--opcua", "Read values of an OPC UA server: opc.tcp://HOST:4840")] = None
    opcua_nodes: Annotated[tuple[str, ...], _in("--opcua-nodes", "Which: 'flow=ns=2;s=Flow,head=ns=2;s=Head'")] = ()
    opcua_interval: Annotated[float, _in("--opcua-interval", "Seconds from row to row of OPC UA.")] = 1.0
    opcua_certificate: Annotated[
        Path | None, _in("--opcua-certificate", "To sign and encrypt: our certificate, PEM or DER, …")
    ] = None
    opcua_key: Annotated[Path | None, _in("--opcua-key", "… its key, …")] = None
    opcua_server_certificate: Annotated[
        Path | None, _in("--opcua-server-certificate", "… and that of the server: no other is talked to.")
    ] = None
    opcua_security: Annotated[str, _in("--opcua-security", f"With which policy: {', '.join(OPCUA_POLICIES)}.")] = (
        OPCUA_POLICIES[0]
    )

    def watch_options(self) -> WatchOptions:
        """Return the same as options of a monitored stream."""
        return WatchOptions(**{each.name: getattr(self, each.name) for each in fields(StreamOptions)})


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of `penstock serve`, apart from assets and rules of alarms (docs/serve.md).

    Examples
    --------
    >>> ServeOptions(assets={"unit1": AssetOptions(input=Path("unit1.csv"))}).host
    '127.0.0.1'
    """

    asset: Annotated[str | None, _serve("--asset", _ASSET_HELP)] = None
    store: Annotated[Path, _serve("--store", "The file that everything is kept in; made if it is not there.")] = Path(
        "penstock-live.db"
    )
    host: Annotated[str, _serve("--host", "Address to listen at; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, _serve("--port", "Port to listen at; 0 for any that is free.")] = 8640
    public_url: Annotated[str | None, _serve("--public-url", _PUBLIC_HELP)] = None
    keep_readings: Annotated[float, _keep("--keep-readings", "Days that readings are kept.")] = 30.0
    keep_verdicts: Annotated[float, _keep("--keep-verdicts", "Days that verdicts are kept; alarms are for ever.")] = (
        365.0
    )
    min_free: Annotated[float, _keep("--min-free", "Below so many MB of free disk nothing is accepted.")] = 100.0
    max_body: Annotated[float, _safe("--max-body", "Largest request, in MB.")] = 8.0
    max_waiting: Annotated[float, _safe("--max-waiting", "MB of rows that may wait; more are refused (429).")] = 64.0
    webhook: Annotated[
        tuple[str, ...],
        _notify("--webhook", "POST notifications as JSON to this address; may be repeated.", "repeated"),
    ] = ()
    alertmanager: Annotated[
        tuple[str, ...],
        _notify(
            "--alertmanager", "Send alerts to this Alertmanager, such as http://host:9093; may be repeated.", "repeated"
        ),
    ] = ()
    notify: Annotated[
        tuple[str, ...], _notify("--notify", "An address of Apprise, such as mailto://…; may be repeated.", "repeated")
    ] = ()
    digest: Annotated[
        str | None, _notify("--digest", "daily or weekly (on Monday): what was, what is open, what is stale.")
    ] = None
    digest_hour: Annotated[int, _notify("--digest-hour", "At this hour, in the zone that the page shows.")] = 7
    mqtt_out: Annotated[str | None, _notify("--mqtt-out", "Publish notifications: mqtt://HOST:PORT/TOPIC")] = None
    add_token: Annotated[
        str | None, _safe("--add-token", "NAME:ROLE (viewer, operator, engineer, source): print a new token, and end.")
    ] = None
    remove_token: Annotated[str | None, _safe("--remove-token", "Remove the token of a NAME, and end.")] = None
    tls_certificate: Annotated[Path | None, _safe("--tls-certificate", "For HTTPS: the certificate, PEM.")] = None
    tls_key: Annotated[Path | None, _safe("--tls-key", "And its key, if it is not in the same file.")] = None
    assets: Mapping[str, AssetOptions] = field(default_factory=dict)
    rules: AlarmRules = AlarmRules()

    @property
    def zone(self) -> str | None:
        """The one zone that times are shown in: that of the assets, if they have the same; None: UTC."""
        zones = {each.timezone for each in self.assets.values()}
        return next(iter(zones)) if len(zones) == 1 else None

    @property
    def public_origin(self) -> str | None:
        """The public address as browsers name it in `Origin`; a `ParameterError` if it is none."""
        if self.public_url is None:
            return None
        found = re.fullmatch(r"(https?)://[^\s/?#@]+/?", self.public_url.lower())
        if found is None:
            problem = " must be an address without a path, such as https://plant.example; got "
            raise ParameterError("public_url", f"{problem}{self.public_url!r:.100}.")
        return found[0].rstrip("/").removesuffix(_PORTS[found[1]])

    def check(self) -> None:
        """Raise a `ParameterError` for a value out of bounds."""
        _ = self.public_origin
        if not self.assets:
            raise ParameterError("input", " is missing: name an --input file, a --model, or assets in --config.")
        if not 0 <= self.port < 2**16:
            raise ParameterError("port", f" must be a whole number from 0 to 65535; got {self.port}.")
        if self.digest is not None:
            check_choice("digest", self.digest, DIGESTS)
        if not 0 <= self.digest_hour < 24:
            raise ParameterError("digest_hour", f" must be a whole number from 0 to 23; got {self.digest_hour}.")
        for name in ("keep_readings", "keep_verdicts", "min_free"):
            check_number(name, getattr(self, name), least=0)
        for name in ("max_body", "max_waiting"):
            check_number(name, getattr(self, name), least=0, above=True)
        for name, asset in self.assets.items():
            if not _ASSET_NAME.fullmatch(name):
                allowed = "1 to 40 letters, digits, blanks, - or _, also after a group and /"
                raise ParameterError("asset", f" must be {allowed}; got {name!r:.100}.")
            if name.rpartition("/")[2] in _PARTS_OF_ASSETS and "/" in name:
                raise ParameterError("asset", f" {name!r} is the address of a part of {name.partition('/')[0]!r}.")
            asset.watch_options().check()
        self.rules.check()


def _seconds(name: str, value: Any) -> float:
    """Return a duration, a text or seconds, in seconds; a `ParameterError` if it is none."""
    if isinstance(value, str):
        from penstock.io import parse_duration

        try:
            return parse_duration(value).total_seconds()
        except ValueError as error:
            raise ParameterError(name, f": {error}") from None
    check_number(name, value, least=0)
    return float(value)


def _is_delimiter(text: str | None) -> bool:
    return text in (None, "tab", "\\t") or (len(text) == 1 and text.isascii() and text not in '"\n\r')
