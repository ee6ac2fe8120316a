"""One file over HTTP, continued where an earlier attempt stopped."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from pathlib import Path
from ssl import SSLError
from typing import IO, Any
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

Progress = Callable[[int, int | None], None]

_CHUNK = 1 << 16
_ATTEMPTS = 3
_MOST_BYTES = 2**28  # the largest archives of these sets have some 25 megabytes


class DownloadError(OSError):
    """A data set could not be downloaded; the message says what was not reached or is wrong, and what to do."""


class _CutError(Exception):
    """The connection ended before the file did."""


def fetch(url: str, target: Path, *, progress: Progress | None = None, timeout: float = 30.0) -> None:
    """Write what is at an address to a file, through ``<target>.part``, which a later call continues.

    The validator of the part (ETag or Last-Modified) is kept beside it, so that a file which changed in between is
    fetched anew. Where the server does not continue, the file is fetched from its start. A connection that is cut is
    taken up again, a few times. Raises `DownloadError`; the part is left for the next call.
    """
    refuse_other_schemes(url)
    part = part_of(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _continue(url, part, progress, timeout)
            break
        except HTTPError as error:
            raise DownloadError(
                f"{url} answers {error.code} ({error.reason}), so it was not downloaded. The collection may have "
                f"moved: see whether the address opens in a browser."
            ) from None
        except (_CutError, http.client.HTTPException, ConnectionError, TimeoutError, SSLError, URLError) as error:
            received = part.stat().st_size if part.is_file() else 0
            if attempt == _ATTEMPTS or not received:
                raise _unreachable(url, error, received) from None
        except DownloadError:
            discard(target)  # too large: there is nothing to continue
            raise
    part.replace(target)
    _validator_of(part).unlink(missing_ok=True)


def refuse_other_schemes(url: str) -> None:
    """Raise for an address that is not http or https, such as a file of this machine."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"Data sets are downloaded from http and https addresses only; got {url!r}.")


def part_of(target: Path) -> Path:
    """Where a file is written until it is complete."""
    return target.with_name(f"{target.name}.part")


def discard(target: Path) -> None:
    """Remove a file that is no good, and what there is of its next download."""
    for path in (target, part_of(target), _validator_of(part_of(target))):
        path.unlink(missing_ok=True)


def _continue(url: str, part: Path, progress: Progress | None, timeout: float) -> None:
    """Fetch what is missing of a part; raise `_CutError` if it is not complete after that."""
    start = part.stat().st_size if part.is_file() else 0
    try:
        response = _open(url, part, start, timeout)
    except HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not start:
            raise
        if _numbers(r"bytes \*/(\d+)", error.headers) == [start]:
            return  # there is nothing left to fetch
        part.unlink()
        start, response = 0, _open(url, part, 0, timeout)
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT or not start:
            start = 0
        elif _numbers(r"bytes (\d+)-", response.headers) != [start]:
            part.unlink()
            raise _CutError("the server sent another part of the file than was asked for")
        _keep_validator(part, response)
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        with part.open("ab" if start else "wb") as file:
            received = _copy(response, file, start, total, progress)
    if total is not None and received != total:
        raise _CutError(f"the connection ended after {received:,} of {total:,} bytes")


def _copy(response: IO[bytes], file: IO[bytes], start: int, total: int | None, progress: Progress | None) -> int:
    received = start
    while chunk := response.read(_CHUNK):
        received += len(chunk)
        if received > _MOST_BYTES:
            raise DownloadError(
                f"The file is larger than {_MOST_BYTES:,} bytes, which no archive of the collection is."
            )
        file.write(chunk)
        if progress is not None:
            progress(received, total)
    return received


def _open(url: str, part: Path, start: int, timeout: float) -> Any:
    wanted = request.Request(url, headers={"User-Agent": "penstock"})
    if start:
        wanted.add_header("Range", f"bytes={start}-")
        validator = _validator_of(part)
        if validator.is_file():
            wanted.add_header("If-Range", validator.read_text(encoding="latin-1"))
    return _opener().open(wanted, timeout=timeout)


class _SafeRedirects(request.HTTPRedirectHandler):
    """Follows to http and https, and from https to https only."""

    def redirect_request(self, req: request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ({"https"} if req.type == "https" else {"http", "https"}):
            raise URLError(f"it is redirected to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> request.OpenerDirector:
    """One that knows no files, no FTP and no data addresses."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(), request.UnknownHandler(), request.HTTPHandler(), request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(), _SafeRedirects(), request.HTTPErrorProcessor(),
    ):  # fmt: skip
        opener.add_handler(handler)
    return opener


def _validator_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _keep_validator(part: Path, response: Any) -> None:
    """Write down by what the server knows this version of the file; a weak ETag is no such thing."""
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    if validator:
        _validator_of(part).write_text(validator, encoding="latin-1")
    else:
        _validator_of(part).unlink(missing_ok=True)


def _numbers(pattern: str, headers: Any) -> list[int]:
    found = re.match(pattern, headers.get("Content-Range", ""))
    return [int(number) for number in found.groups()] if found else []


def _unreachable(url: str, error: Exception, received: int) -> DownloadError:
    reason = getattr(error, "reason", None) or error
    kept = (
        f"{received:,} bytes are kept and the next download goes on from there"
        if received
        else "nothing was downloaded or changed"
    )
    return DownloadError(
        f"{url} could not be downloaded ({reason}): {kept}. Check the network and try again, or set PENSTOCK_DATA to a "
        f"folder that holds one <Name>.csv.gz per data set."
    )
