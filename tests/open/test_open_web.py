"""What comes over HTTP to the page of a project, from strangers too: uploads, names, other sites, hostile bodies."""

from __future__ import annotations

import http.client
import io
import json
import os
import random
import threading
import zipfile
from contextlib import closing

import pytest
from open_cases import plant_frame

from penstock.live.runtime import RefusedError
from penstock.project import Project, UploadLimits
from penstock.project.uploads import safe_name, unpack
from penstock.project.web import OpenOptions, ProjectServer


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    path = tmp_path_factory.mktemp("plant") / "plant.csv"
    plant_frame().to_csv(path, index=False)
    return path


# Uploads.


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/plant.csv", "plant.csv"),
        ("/etc/cron.d/x.csv", "x.csv"),
        ("..\\..\\win.csv", "win.csv"),
        ("a\x00b\n.csv", "a_b_.csv"),
        ("nul.csv", "_nul.csv"),
        ("<img src=x onerror=alert(1)>.csv", "_img src=x onerror=alert(1)_.csv"),
        ("x" * 500 + ".csv", "x" * 150 + ".csv"),
        ("数" * 100 + ".csv.gz", "数" * 50 + ".csv.gz"),  # 255 bytes is what file systems take
        (".hidden.csv", "hidden.csv"),
    ],
)
def test_names_are_never_trusted(given, kept):
    assert safe_name(given) == kept


@pytest.mark.parametrize("name", ["", "..", "/", "plant.exe", "x.csv.sh", ".csv/..", "penstock.toml"])
def test_what_is_no_table_is_refused(name):
    with pytest.raises(RefusedError):
        safe_name(name)


def zipped(method=zipfile.ZIP_DEFLATED, /, **files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def test_a_zip_is_unpacked_inside_the_folder(tmp_path):
    path, data = tmp_path / "x.zip", tmp_path / "data"
    data.mkdir()
    path.write_bytes(zipped(**{"../../a.csv": "1", "deep/er/a.csv": "2", "readme.md": "3", "/b.csv": "4"}))
    assert unpack(path, data, UploadLimits()) == ["a.csv", "a (2).csv", "b.csv"]
    assert sorted(each.name for each in tmp_path.rglob("*") if each.is_file()) == [
        "a (2).csv",
        "a.csv",
        "b.csv",
        "x.zip",
    ]


DAMAGED = bytearray(zipped(**{"a.csv": "1234" * 1000}))
DAMAGED[35:38] = b"\xff\xff\xff"  # what is packed no longer unpacks


@pytest.mark.parametrize(
    ("content", "limits"),
    [
        (zipped(**{"bomb.csv": "0" * 5_000_000}), UploadLimits(unpacked_bytes=1_000_000)),
        (zipped(**{f"{n}.csv": "1" for n in range(30)}), UploadLimits(files=20)),
        (zipped(**{"readme.md": "1"}), UploadLimits()),
        (b"PK\x03\x04 broken", UploadLimits()),
        (zipped(**{"a.csv": "1" * 1000})[:-30], UploadLimits()),
        (bytes(DAMAGED), UploadLimits()),
        (zipped(zipfile.ZIP_LZMA, **{"a.csv": "1"}), UploadLimits()),
        (zipped(**{"plant.csv": "2", "bomb.csv": "0" * 5_000_000}), UploadLimits(unpacked_bytes=1_000_000)),
        (lambda: zipped(zipfile.ZIP_STORED, **{f"{n}": "" for n in range(25_000)}), UploadLimits(files=10**9)),
    ],
    ids=["bomb", "many", "no table", "broken", "cut off", "damaged", "memory", "half", "long list"],
)
def test_a_zip_that_cannot_be_used_leaves_all_as_it_was(tmp_path, content, limits):
    path, data = tmp_path / "x.zip", tmp_path / "data"
    data.mkdir()
    (data / "plant.csv").write_text("1")
    path.write_bytes(content if isinstance(content, bytes) else content())
    with pytest.raises(RefusedError):
        unpack(path, data, limits)
    assert [(each.name, each.read_text()) for each in data.iterdir()] == [("plant.csv", "1")]


# HTTP.


class Page:
    """What a browser would ask."""

    def __init__(self, server):
        self.server = server

    def ask(self, path, body=None, token=True, length=None, **headers):
        """Return status, content and headers; a `length` is said, and nothing is sent."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"Penstock-Command": "1", "Content-Length": length and str(length), **headers}
        if token:
            given["Authorization"] = f"Bearer {self.server.token if token is True else token}"
        given = {name: value for name, value in given.items() if value is not None}
        method = "GET" if data is None and length is None else "POST"
        with closing(http.client.HTTPConnection(self.server.address.split("/")[2], timeout=300)) as connection:
            connection.request(method, f"/{path}", data, given)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers

    def wait(self, what):
        assert self.server.api.last[what].done.wait(300)
        return json.loads(self.ask("api/state")[1])


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("served") / "unit1")
    limits = UploadLimits(file_bytes=2_000_000, unpacked_bytes=3_000_000)
    with ProjectServer(project, OpenOptions(uploads=limits)) as server:
        yield Page(server)


def test_a_token_is_needed_for_all_but_the_page(page):
    assert page.ask("", token=False)[0] == 200
    assert page.ask("open.js", token=False)[0] == 200
    for path in ("api/state", "api/results/look", "api/files/report/report.html"):
        assert page.ask(path, token=False)[0] == 401
        assert page.ask(path, token="wrong")[0] == 401
    assert page.ask("api/do/sample", {}, token=False)[0] == 401
    assert page.ask("shown/anything", token=False)[0] == 404


def test_other_sites_are_refused(page):
    assert page.ask("api/state", Host="evil.example")[0] == 421
    assert page.ask("api/do/cancel", {}, Origin="https://evil.example")[0] == 403
    assert page.ask("api/do/cancel", {}, **{"Penstock-Command": None})[0] == 403
    assert page.ask("api/do/cancel", {}, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    policy = page.ask("")[2]["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_files_are_taken_and_read(page, plant):
    status, content, _ = page.ask("api/upload?name=..%2F..%2Fplant.csv", plant.read_bytes())
    assert (status, json.loads(content)) == (200, {"names": ["plant.csv"]})
    folder = page.server.api.project.folder
    assert [each.name for each in (folder / "data").iterdir()] == ["plant.csv"]
    assert page.ask("api/do/uploaded", {})[0] == 200
    state = page.wait("look")
    assert state["settings"]["source"] == ["data/plant.csv"]
    assert json.loads(page.ask("api/results/look")[1])["rows"] == 900
    assert page.ask("api/do/roles", {"names": ["flow", "head"], "role": "driver"})[0] == 200
    assert page.ask("api/do/mark", {"kind": "exclude_periods", "period": "2024-05-01..2024-05-01"})[0] == 200
    assert page.ask("api/do/run", {"what": "detect"})[0] == 200
    page.wait("detect")
    findings = json.loads(page.ask("api/results/findings")[1])
    assert findings["incidents"][0]["first_sensor"] == "oil"
    body = {"key": findings["key"], "incident": 1, "reason": "fault", "who": "Ada", "comment": "<b>hot</b>"}
    assert page.ask("api/do/label", body)[0] == 200
    assert page.ask("api/do/label", {**body, "key": "old"})[0] == 409
    assert [each.comment for each in page.server.api.project.labels] == ["<b>hot</b>"]
    assert page.ask("api/failures?name=log.csv", b"start,end,text\n2024-05-05,2024-05-06,oil\n")[0] == 200
    assert page.ask("api/failures?name=log.csv", b"no log")[0] == 400
    assert json.loads(page.ask("api/state")[1])["failures"] == [
        {"start": "2024-05-05", "end": "2024-05-06", "text": "oil"}
    ]
    status, content, headers = page.ask("api/do/show", {})
    status, content, headers = page.ask(json.loads(content)["address"][1:], token=False)
    assert content.startswith(b"<!DOCTYPE html>")
    assert headers["content-security-policy"].startswith("sandbox allow-scripts")


def test_what_is_wrong_is_refused_in_words(page):
    for path, body, status in [
        ("api/do/nonsense", {}, 404),
        ("api/do/run", {"what": "rm"}, 400),
        ("api/do/run", b"[1]", 400),
        ("api/do/run", b"{", 400),
        ("api/do/run", b"[" * 100_000, 400),
        ("api/do/use", {"path": "/nowhere/at/all.csv"}, 400),
        ("api/do/change", {"nonsense": 1}, 400),
        ("api/do/change", {"source": ["/etc/passwd"]}, 400),
        ("api/do/remove", {"name": "../penstock.toml"}, 400),
        ("api/do/mark", {"kind": "x", "period": "y"}, 400),
        ("api/do/live", {"name": "a", "model": "../../x"}, 400),
        ("api/upload?name=x.exe", b"1", 400),
        ("api/upload?name=x.csv", b"", 400),
        ("api/upload?name=x.zip", zipped(**{"bomb.csv": "0" * 5_000_000}), 400),
        ("api/upload/other?name=x.csv", b"1", 404),
    ]:
        found, content, _ = page.ask(path, body)
        assert (found, bool(json.loads(content)["error"])) == (status, True), (path, content)
    for path in ("api/files/model/..%2Fpenstock.toml", "api/files/report/..%2F..%2Fx", "api/results/..%2Fpenstock"):
        assert page.ask(path)[0] == 404
    assert page.ask("api/upload?name=x.csv", length=2_000_001)[0] == 413
    names = {each.name for each in (page.server.api.project.folder / "data").iterdir()}
    assert names <= {"plant.csv"}


def test_from_elsewhere_no_paths_are_taken(tmp_path, plant):
    with ProjectServer(Project(tmp_path), OpenOptions(host="0.0.0.0")) as server:
        server.address = server.address.replace("0.0.0.0", "127.0.0.1")
        page = Page(server)
        assert page.ask("api/do/use", {"path": str(plant)})[0] == 400
        (server.api.project.folder / "models" / "x-1.penstock").write_bytes(b"")
        for command in ("test", "live"):
            status, answer, _ = page.ask(f"api/do/{command}", {"model": "x-1.penstock", "input": str(plant)})
            assert status == 400
            assert b"outside the project" in answer
            asked = {"model": "x-1.penstock", "mqtt": "mqtt://127.0.0.1:1/plant"}
            status, answer, _ = page.ask(f"api/do/{command}", asked)
            assert (status, b"Addresses are taken only" in answer) == (400, True)


# Strangers.


@pytest.mark.parametrize(
    "name", ["data", "models", "penstock.toml", "labels.jsonl", "live.db", "data/x.csv", "reports/report.html"]
)
def test_a_project_whose_files_are_links_is_refused(tmp_path, name):
    outside, folder = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(outside if "." not in name else outside / "secret")
    with pytest.raises(RefusedError, match="is a link"):
        Project(folder)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["source = 5", "source = [[1]]", "source = {a = 1}", "exclude = [[]]", "a" * 10**6, "x = " + "[" * 10**5]
)
def test_settings_of_a_stranger_are_refused_in_words(tmp_path, text):
    project = Project(tmp_path)
    (tmp_path / "penstock.toml").write_text(text)
    with pytest.raises(RefusedError, match=r"penstock\.toml"):
        _ = project.sources


def test_what_may_hold_a_password_is_for_its_owner_alone(tmp_path):
    project = Project(tmp_path)
    project.use("sql:postgresql://user:secret@host/plant")
    assert (tmp_path / "penstock.toml").stat().st_mode & 0o077 == 0


def test_every_answer_has_the_policy_and_no_token(page):
    asked = [
        (path, {})
        for path in ("", "open.js", "nothing", "api/state", "api/results/look", "shown/x", "?" + "x" * 40_000)
    ]
    asked += [("api/state", given) for given in ({"token": False}, {"Host": "evil.example"}, {"X": "x" * 40_000})]
    asked += [("api/do/x", {"body": {}}), ("api/upload?name=x.exe", {"body": b"1"})]
    for path, given in asked:
        status, content, headers = page.ask(path, **given)
        assert status < 500, path
        if headers.get("content-security-policy") is None:
            assert (status, content) == (400, b"Invalid HTTP request received.")  # not HTTP to the server
            continue
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert (headers["referrer-policy"], headers["x-content-type-options"]) == ("no-referrer", "nosniff"), path
        assert headers.get("access-control-allow-origin") is None
        assert page.server.token.encode() not in content
    assert page.server.token not in str(vars(page.server.api))


WORDS = [
    None, True, -1, 1e999, 10**400, "", "x" * 100_000, "../../etc/passwd", "<script>alert(1)</script>", "\x00",
    "\ud800", "=cmd|' /C calc'!A0", "2024-13-45..", "..", [], [[]], {}, {"a": {}}, ["a"] * 1000, "/dev/zero",
    "/proc/self/mem", "sql:x", "9" * 5000,
]  # fmt: skip
COMMANDS = [
    "use", "uploaded", "remove", "change", "roles", "mark", "label", "take-back", "run", "no-failures", "live",
    "stop-live", "test", "past", "compare", "export"
]  # fmt: skip
FIELDS = [
    "path", "name", "names", "role", "kind", "period", "remove", "incident", "key", "reason", "who", "comment",
    "id", "what", "periods", "units", "model", "rules", "input", "mqtt", "kafka", "opcua", "opcua_nodes", "posted",
    "port", "timezone", "step", "day_first", "exclude", "labels", "failures", "on_delay", "limit", "source",
    "query", "label", "roles", "max_bytes"
]  # fmt: skip


def test_nonsense_is_answered_in_words(tmp_path, plant):
    """Every command with texts, numbers and lists in every field: no error of the program, all else untouched."""
    rng = random.Random(1)
    with ProjectServer(Project(tmp_path / "unit1")) as server:
        page = Page(server)
        server.api.project.use(str(plant))
        outside = {path: path.read_bytes() for path in plant.parent.rglob("*")}
        for command in COMMANDS:
            for _ in range(12):
                body = {name: rng.choice(WORDS) for name in rng.sample(FIELDS, 8)}
                page.ask("api/do/cancel", {})
                status, content, _ = page.ask(f"api/do/{command}", json.dumps(body).encode())
                assert status < 500, (command, body, content)
                assert page.ask("api/state")[0] == 200, (command, body)
    assert {path: path.read_bytes() for path in plant.parent.rglob("*")} == outside
    assert {each.name for each in tmp_path.iterdir()} == {"unit1"}


def test_uploads_at_once_are_whole(page):
    """Twenty clients write the same name and others: each file is one that was sent, and nothing is left over."""
    folder, answers = page.server.api.project.folder / "data", []
    contents = [f"time,flow\n{n},".encode() + str(n).encode() * 200_000 for n in range(10)]

    def send(n):
        name = "same.csv" if n % 2 else f"own{n}.csv"
        answers.append(page.ask(f"api/upload?name={name}", contents[n])[0])

    threads = [threading.Thread(target=send, args=(n,)) for n in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert answers == [200] * 10
    assert (folder / "same.csv").read_bytes() in contents
    assert [path.name for path in folder.iterdir() if path.name[0] == "."] == []
    for path in [*folder.glob("own*.csv"), folder / "same.csv"]:
        assert path.read_bytes() in contents
        path.unlink()


def test_a_log_of_failures_cannot_fill_the_memory(page):
    assert page.ask("api/failures?name=log.csv", length=8_000_001)[0] == 413
    assert page.ask("api/do/cancel", length=8_000_001)[0] == 413
    said = json.loads(page.ask("api/failures?name=log.csv", b"no log")[1])["error"]
    assert said.startswith("log.csv")


def test_a_page_for_others_takes_no_option_that_is_a_path(page):
    for name in ("labels", "failures", "units", "query", "source"):
        status, content, _ = page.ask("api/do/change", {name: "/etc/passwd"})
        assert (status, b"is not changed here" in content) == (400, True), name


def test_a_user_without_a_name_has_a_page(page, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    status, content, _ = page.ask("api/state")
    assert (status, json.loads(content)["user"]) == (200, "somebody")
