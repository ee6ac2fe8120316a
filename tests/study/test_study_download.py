from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from loopback import Server, archive, arff, serving

from studies.ahmed2021 import download as module
from studies.ahmed2021 import registry
from studies.ahmed2021.datasets import load
from studies.ahmed2021.download import DownloadError, download

MEMBER = "Parkinson/Parkinson_withoutdupl_norm_10_v01.arff"
PADDING = {"Parkinson/padding.bin": random.Random(0).randbytes(200_000)}  # that does not pack: many chunks to send
PARKINSON = archive({**PADDING, MEMBER: arff(53, 22, 5)})
HALF = len(PARKINSON) // 2


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no other folder of data, and no proxy between this machine and itself."""
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        started.files["Parkinson.tar.gz"] = PARKINSON
        yield started


def fetched(server: Server, name: str = "Parkinson") -> list[Path]:
    return download([name], home=server.home, timeout=60)


def left_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_a_fresh_download(server: Server, cache: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    (path,) = download(
        ["Parkinson"], home=server.home.rstrip("/"), progress=lambda done, total: steps.append((done, total))
    )
    assert path == cache / "dami" / "Parkinson.csv.gz"
    assert left_in(cache) == ["Parkinson.csv.gz", "Parkinson.tar.gz", "checksums.json"]
    data = load("Parkinson")
    assert (data.n, data.p, data.n_anomalies) == (53, 22, 5)
    assert [request["path"] for request in server.requests] == ["/input/Parkinson.tar.gz"]
    assert steps[-1] == (len(PARKINSON), len(PARKINSON))
    assert len(steps) > 2
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


def test_the_second_call_needs_no_network(server: Server, cache: Path) -> None:
    first = fetched(server)
    content = first[0].read_bytes()
    assert download(["Parkinson", "Parkinson"], home="http://127.0.0.1:1/") == [*first, *first]
    assert len(server.requests) == 1
    first[0].unlink()  # the archive is there still
    download(["Parkinson"], home="http://127.0.0.1:1/")
    assert first[0].read_bytes() == content


def test_a_variant_comes_from_the_same_archive(server: Server) -> None:
    server.files["WBC.tar.gz"] = archive(
        {"WBC/WBC_norm_v01.arff": arff(454, 9, 10), "WBC/WBC_withoutdupl_norm_v01.arff": arff(223, 9, 10)}
    )
    download(["WBC", "WBC_nodup"], home=server.home)
    assert (load("WBC").n, load("WBC_nodup").n) == (454, 223)
    assert len(server.requests) == 1


def test_a_cut_connection_leaves_nothing(server: Server, cache: Path) -> None:
    server.cuts = [HALF]
    with pytest.raises(DownloadError, match=rf"ended after {HALF:,} of .*nothing was downloaded"):
        fetched(server)
    assert left_in(cache) == []
    fetched(server)
    assert load("Parkinson").n == 53


def test_an_interrupt_while_writing_leaves_no_data_set(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetched(server)
    assert left_in(cache) == []
    fetched(server)
    assert load("Parkinson").n == 53


def test_a_server_that_does_not_answer_or_has_no_such_file(server: Server, cache: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(DownloadError, match=r"could not be downloaded \(.*timed out"):
            download(["Glass"], home=f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.05)
    with pytest.raises(DownloadError, match=r"Glass\.tar\.gz answers 404 \(Not Found\), so it was not downloaded"):
        fetched(server, "Glass")
    assert left_in(cache) == []


def test_the_published_checksum(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(registry.entry("Parkinson"), sha256=hashlib.sha256(PARKINSON).hexdigest())
    monkeypatch.setattr(module, "entry", lambda name: known)
    fetched(server)
    assert load("Parkinson").n == 53


def test_not_the_published_checksum(server: Server, cache: Path) -> None:
    server.files["Lymphography.tar.gz"] = archive(
        {"Lymphography/Lymphography_withoutdupl_norm_idf.arff": arff(148, 18, 6)}
    )
    with pytest.raises(
        DownloadError, match=r"Lymphography\.tar\.gz has the SHA-256 .*, not 1ecb8fc.* as published\. The"
    ):
        fetched(server, "Lymphography")
    assert left_in(cache) == []


def test_another_archive_than_at_the_first_download(server: Server, cache: Path) -> None:
    (path,) = fetched(server)
    path.unlink()
    (cache / "dami" / "Parkinson.tar.gz").unlink()
    server.files["Parkinson.tar.gz"] = archive({MEMBER: arff(53, 22, 5) + "\n"})
    with pytest.raises(DownloadError, match=r"as downloaded before \(.*checksums\.json\)"):
        fetched(server)
    assert left_in(cache) == ["checksums.json"]
    assert set(json.loads((cache / "checksums.json").read_text())) == {"Parkinson.csv.gz", "Parkinson.tar.gz"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>Not here</html>", r"Parkinson\.tar\.gz is no archive that can be read"),
        (b"", "is no archive that can be read"),
        (PARKINSON[:-500], "is no archive that can be read"),
        (gzip.compress(b"no tar at all" * 1000), "is no archive that can be read"),
        (archive({}), "has no file Parkinson_withoutdupl_norm_10_v01.arff; it has no ARFF files"),
        (archive({"a/other.arff": ""}), r"has no file Parkinson_.*; it has 'other\.arff'\. The archive was removed"),
        (archive({MEMBER: arff(52, 22, 5)}), "has 52 rows, 22 attributes and 5 anomalies, not 53 rows, 22"),
        (archive({MEMBER: arff(53, 22, 6)}), "22 attributes and 6 anomalies, not"),
        (archive({MEMBER: "nonsense"}), "has no line @DATA"),
        (archive({MEMBER: "@attribute a real\n@data\n1\n"}), "have no outlier among them"),
        (archive({MEMBER: arff(2, 2, 1) + "1,2\n"}), "not always yes or no"),
        (archive({MEMBER: arff(2, 2, 1) + "1,2,3,4,5\n"}), "rows of .* cannot be read"),
        (archive({MEMBER: arff(2, 2, 1).replace("'yes'", "'maybe'")}), "not always yes or no"),
        (archive({MEMBER: arff(2, 2, 1).replace("7.5", "?")}), "values that are no numbers, such as those of 'att 1'"),
        (archive({MEMBER: arff(2, 2, 1).split("@DATA")[0] + "@DATA\n"}), "rows of .* cannot be read"),
        (
            archive({MEMBER: arff(2, 2, 1).split("@DATA")[0] + "@DATA\n1,2,'no'\n"}),
            "4 attributes, but rows of 3 values",
        ),
    ],
    ids=lambda value: "archive" if isinstance(value, bytes) else value,  # an archive holds the time it was made
)
def test_an_archive_that_is_no_good_is_removed(server: Server, cache: Path, content: bytes, message: str) -> None:
    server.files["Parkinson.tar.gz"] = content
    with pytest.raises(DownloadError, match=message):
        fetched(server)
    assert left_in(cache) == []
    server.files["Parkinson.tar.gz"] = PARKINSON
    fetched(server)
    assert load("Parkinson").n == 53


def test_names_in_an_archive_are_no_paths(server: Server, tmp_path: Path, cache: Path) -> None:
    outside = tmp_path / "outside.arff"
    outside.write_text("secret")
    name = Path(MEMBER).name
    server.files["Parkinson.tar.gz"] = archive(
        {f"../../../{name}": arff(53, 22, 5), str(tmp_path / "evil.arff"): "x", "../../evil.arff": "x"},
        links={MEMBER: str(outside)},
    )
    fetched(server)
    assert load("Parkinson").n == 53
    assert left_in(tmp_path) == ["Parkinson.csv.gz", "Parkinson.tar.gz", "checksums.json", "outside.arff"]
    assert outside.read_text() == "secret"


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("_MOST_UNPACKED", 50_000, "unpacks to more than 50,000 bytes"),
        ("_LARGEST", 100, "more than any file of the collection"),
        ("_MOST_MEMBERS", 1, "holds more than 1 files"),
    ],
)
def test_bombs(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, message: str
) -> None:
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(DownloadError, match=message):
        fetched(server)
    assert left_in(cache) == []


def test_a_file_without_end(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    with pytest.raises(DownloadError, match="larger than 1,000 bytes"):
        fetched(server)
    assert left_in(cache) == []


def test_offline(cache: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        home = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(
            DownloadError,
            match=rf"{home}Glass\.tar\.gz could not be downloaded \(.*refused.*\): nothing was downloaded or changed\. "
            r"Check the network and try again, or set PENSTOCK_DATA to a folder",
        ):
            download(["Glass"], home=home)
    assert left_in(cache) == []


def test_other_kinds_of_addresses(server: Server, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "Parkinson.tar.gz").write_bytes(PARKINSON)
    for home in (tmp_path.as_uri(), "ftp://127.0.0.1/", str(tmp_path), "http:"):
        with pytest.raises(ValueError, match="http and https addresses only"):
            download(["Parkinson"], home=home)
    for target in (f"{tmp_path.as_uri()}/Parkinson.tar.gz", "ftp://127.0.0.1/Parkinson.tar.gz"):
        server.redirect = target
        with pytest.raises(DownloadError, match=r"Parkinson\.tar\.gz could not be downloaded|answers 302"):
            fetched(server)
    assert left_in(cache) == []


def test_a_redirect_to_another_server(server: Server) -> None:
    with serving() as other:
        other.files["Parkinson.tar.gz"] = PARKINSON
        server.redirect = f"{other.home}Parkinson.tar.gz"
        fetched(server)
    assert load("Parkinson").n == 53


def test_unknown_names_are_refused_before_anything_is_fetched(server: Server) -> None:
    with pytest.raises(ValueError, match=r"no data set 'glas'\. Did you mean Glass"):
        download(["Parkinson", "glas"], home=server.home)
    assert server.requests == []
