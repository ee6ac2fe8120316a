"""A small web server on this machine, which can misbehave on request, and archives like those of the collection."""

from __future__ import annotations

import gzip
import io
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Server:
    """What it holds, how it behaves, and what it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)  # bytes to send of each next answer before the connection ends
    redirect: str | None = None
    requests: list[dict[str, str]] = field(default_factory=list)
    home: str = ""


@contextmanager
def serving() -> Iterator[Server]:
    """A server on a free port of the loopback, in a thread."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, server)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.home = f"http://127.0.0.1:{listening.server_address[1]}/input/"
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def answer(handler: BaseHTTPRequestHandler, server: Server) -> None:
    server.requests.append({"path": handler.path, **{key.lower(): value for key, value in handler.headers.items()}})
    if server.redirect is not None:
        handler.send_response(302)
        handler.send_header("Location", server.redirect)
        handler.end_headers()
        return
    content = server.files.get(handler.path.rpartition("/")[2])
    if content is None:
        handler.send_error(404)
        return
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: server.cuts.pop(0)] if server.cuts else content)
    handler.close_connection = True


def arff(n: int, p: int, anomalies: int) -> str:
    """A file as the collection has them; its last attribute is constant, and the others are from 0 to n - 1."""
    head = "".join(f"@ATTRIBUTE 'att {number}' real\n" for number in range(p))
    lines = [
        ",".join(str((row * (number + 3)) % n) for number in range(p - 1))
        + f",7.5,{row + 1},'{'yes' if row < anomalies else 'no'}'\n"
        for row in range(n)
    ]
    tail = "@ATTRIBUTE 'id' real\n@ATTRIBUTE 'outlier' {'yes','no'}\n\n@DATA\n"
    return f"% a remark\n@RELATION 'made up'\n\n{head}{tail}{''.join(lines)}"


def archive(files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> bytes:
    """A .tar.gz with these files, and symbolic links."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
