"""Files that somebody made to do harm, or that something broke: each must be refused, quickly and in little memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

BLANK = "0" * 64
MARK = '"{\\"checksum\\":\\"' + BLANK + '"'
F64 = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
EMPTY = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}


class Bomb:
    """A pickle that would leave a trace."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


def forge(
    tensors: Any = (),
    data: bytes = b"",
    *,
    state: Any = None,
    entry: str | None = None,
    header: str | None = None,
    **parts: Any,
) -> bytes:
    """A file with a right checksum, whatever else is wrong with it."""
    whole = {"checksum": BLANK, "format": 1, "kind": "test", "penstock": "0", "state": {} if state is None else state}
    whole = {key: value for key, value in (whole | parts).items() if value is not ...}
    entry = json.dumps(whole, separators=(",", ":")) if entry is None else entry
    if header is None:
        header = json.dumps({"__metadata__": {"penstock": entry}, **dict(tensors)}, separators=(",", ":"))
    content = header.encode("utf-8", errors="surrogateescape")
    return seal(len(content).to_bytes(8, "little") + content + data)


def seal(unsealed: bytes) -> bytes:
    digest = hashlib.sha256(unsealed).hexdigest()
    return unsealed.replace(BLANK.encode(), digest.encode(), 1)


def entry_with(state: str) -> str:
    return f'{{"checksum":"{BLANK}","format":1,"kind":"test","penstock":"0","state":{state}}}'


def header_with(rest: str) -> str:
    return f'{{"__metadata__":{{"penstock":{json.dumps(entry_with("{}"))}}}{rest}}}'


def one_array(data: bytes = bytes(16), **changes: Any) -> bytes:
    return forge({"/x": F64 | changes}, data, state={"x": {"$array": "/x"}})


def two_arrays(first: list[int], second: list[int], size: int) -> bytes:
    tensors = {"/x": F64 | {"data_offsets": first}, "/y": F64 | {"data_offsets": second}}
    return forge(tensors, bytes(size), state={"x": {"$array": "/x"}, "y": {"$array": "/y"}})


def zip_bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model", bytes(10**7))
    return stream.getvalue()


def huge_header(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write((300 * 2**20).to_bytes(8, "little") + b'{"__metadata__":{')
        stream.truncate(8 + 300 * 2**20)


DEEP = 4_000_000 // 2
CONTENTS: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "seven bytes": lambda: b"1234567",
    "text": lambda: b"time,flow\n2024-01-01,3.5\n" * 10,
    "pickle": lambda: pickle.dumps(Bomb()),
    "pickle after a header": lambda: forge(data=pickle.dumps(Bomb())),
    "zip bomb": zip_bomb,
    "gzip bomb": lambda: gzip.compress(bytes(10**8), 1),
    "other safetensors": lambda: save({"x": np.ones(3)}),
    "other metadata": lambda: save({"x": np.ones(3)}, metadata={"format": "pt"}),
    "two metadata": lambda: forge(header=header_with("")[:-2] + ',"more":"x"}}'),
    "metadata not text": lambda: forge(header='{"__metadata__":{"penstock":["{\\"checksum\\":\\"' + BLANK + '\\"}"]}}'),
    "entry not an object": lambda: forge(header=f'{{"__metadata__":{{"penstock":"[1]"}},{MARK}:0}}'),
    "checksum elsewhere": lambda: forge(entry="{}", header=f'{{"__metadata__":{{"penstock":"{{}}"}},{MARK}:0}}'),
    "length u64 max": lambda: b"\xff" * 8 + forge()[8:],
    "length i64 max": lambda: (2**63 - 1).to_bytes(8, "little") + forge()[8:],
    "length beyond the end": lambda: (len(forge()) - 7).to_bytes(8, "little") + forge()[8:],
    "length zero": lambda: bytes(8) + forge()[8:],
    "length too short": lambda: (100).to_bytes(8, "little") + forge()[8:],
    "header nested": lambda: forge(header=header_with(',"x":' + "[" * DEEP + "]" * 10)),
    "header nested in balance": lambda: forge(header=header_with(',"x":' + "[" * 10**6 + "]" * 10**6)),
    "header nested, hidden by text": lambda: forge(header=header_with(',"x":' + '["]",' * 700_000)),
    "header nested, hidden by escapes": lambda: forge(header=header_with(',"x":' + '["\\\\",[' * 400_000)),
    "state nested": lambda: forge(entry=entry_with('{"x":' + "[" * 10**6 + "]" * 10**6 + "}")),
    "state nested objects": lambda: forge(entry=entry_with('{"x":' * 300_000 + "0" + "}" * 300_000)),
    "million keys": lambda: forge({f"{i:x}": 0 for i in range(420_000)}),
    "million keys in the state": lambda: forge(entry=entry_with("{" + ",".join(f'"{i:x}":0' for i in range(300_000)))),
    "million empty objects": lambda: forge(entry=entry_with("[" + "{}," * 1_390_000 + "0]")),
    "million empty lists": lambda: forge(header=header_with(',"x":[' + "[]," * 1_390_000 + "0]")),
    "million numbers": lambda: forge(header=header_with(',"x":[' + "1," * 2_090_000 + "0]")),
    "million arrays": lambda: forge({f"/{i:x}": EMPTY for i in range(70_000)}),
    "as many objects as allowed": lambda: forge(entry=entry_with("[" + "{}," * 49_980 + "0]")),
    "as many keys as allowed": lambda: forge({f"{i:030x}": 0 for i in range(95_000)}),
    "as many arrays as allowed": lambda: forge({f"/{i}": EMPTY for i in range(14_000)}),
    "as long as allowed": lambda: forge(state={"x": ["\u00e9" * 500_000]}, format=0),
    "quotes only": lambda: forge(header=header_with(',"x":' + '""' * 2_000_000)),
    "backslashes only": lambda: forge(header=header_with(',"x":"' + "\\" * 4_000_000)),
    "a number of a million digits": lambda: forge(entry=entry_with('{"x":' + "9" * 10**6 + "}")),
    "digits in the shape": lambda: forge(header=header_with(',"x":' + "9" * 10**6)),
    "giant shape": lambda: one_array(shape=[10**12], data_offsets=[0, 8 * 10**12]),
    "giant shape, small offsets": lambda: one_array(shape=[10**12]),
    "overflowing shape": lambda: one_array(shape=[2**62, 2**62]),
    "shape that wraps around": lambda: one_array(shape=[2**61 + 2]),
    "empty but absurd shape": lambda: one_array(b"", shape=[0, 2**62, 2**62], data_offsets=[0, 0]),
    "beyond int64": lambda: one_array(b"", shape=[0, 2**70], data_offsets=[0, 0]),
    "negative shape": lambda: one_array(shape=[-2]),
    "two negative lengths": lambda: one_array(shape=[-1, -2]),
    "fractional shape": lambda: one_array(shape=[2.0]),
    "boolean shape": lambda: one_array(shape=[True, 2]),
    "shape of text": lambda: one_array(shape=["2"]),
    "shape is a number": lambda: one_array(shape=2),
    "thousand dimensions": lambda: one_array(shape=[1] * 1000 + [2]),
    "type lie": lambda: one_array(dtype="F32"),
    "unknown type": lambda: one_array(dtype="BF16"),
    "complex": lambda: one_array(dtype="C64"),
    "type is a number": lambda: one_array(dtype=64),
    "offsets past the end": lambda: one_array(data_offsets=[8, 24]),
    "offsets reversed": lambda: one_array(data_offsets=[16, 0]),
    "negative offsets": lambda: one_array(data_offsets=[-16, 0]),
    "three offsets": lambda: one_array(data_offsets=[0, 8, 16]),
    "offsets of text": lambda: one_array(data_offsets=["0", "16"]),
    "overlap": lambda: two_arrays([0, 16], [8, 24], 24),
    "same place": lambda: two_arrays([0, 16], [0, 16], 16),
    "hole": lambda: two_arrays([0, 16], [24, 40], 40),
    "hole at the start": lambda: one_array(bytes(24), data_offsets=[8, 24]),
    "bytes left over": lambda: one_array(bytes(24)),
    "bytes missing": lambda: one_array(bytes(8)),
    "field missing": lambda: forge({"/x": {"dtype": "F64", "shape": [2]}}, bytes(16)),
    "field too many": lambda: one_array(more=1),
    "array not an object": lambda: forge({"/x": [1]}),
    "array not in the state": lambda: forge({"/x": F64}, bytes(16)),
    "array not in the file": lambda: forge(state={"x": {"$array": "/x"}}),
    "array twice": lambda: forge({"/x": F64}, bytes(16), state={"x": {"$array": "/x"}, "y": {"$array": "/x"}}),
    "array name is a list": lambda: forge(state={"x": {"$array": ["/x"]}}),
    "strange float": lambda: forge(state={"x": {"$float": "nan"}}),
    "finite float in disguise": lambda: forge(state={"x": {"$float": "3ff0000000000000"}}),
    "unknown mark": lambda: forge(state={"x": {"$code": "import os"}}),
    "boolean of 7": lambda: one_array(b"\x01\x07", dtype="BOOL", data_offsets=[0, 2]),
    "same key twice": lambda: forge(header=header_with(f',"/x":{json.dumps(F64)}' * 2), data=bytes(16)),
    "same key twice in the state": lambda: forge(entry=entry_with('{"a":1,"a":2}')),
    "NaN in the header": lambda: forge(header=header_with(',"/x":NaN')),
    "NaN in the state": lambda: forge(entry=entry_with('{"a":NaN}')),
    "state is a list": lambda: forge(state=[1]),
    "state is an array": lambda: forge({"/x": F64}, bytes(16), state={"$array": "/x"}),
    "format is text": lambda: forge(format="1"),
    "format is NaN": lambda: forge(entry=entry_with("{}").replace('"format":1', '"format":NaN')),
    "format is True": lambda: forge(format=True),
    "format zero": lambda: forge(format=0),
    "format missing": lambda: forge(format=...),
    "newer format": lambda: forge(format=2),
    "kind is a number": lambda: forge(kind=3),
    "state missing": lambda: forge(state=...),
    "part too many": lambda: forge(more=1),
    "invalid UTF-8": lambda: forge(header=header_with(',"\udcff":0')),
    "text after the header": lambda: forge(header=header_with("") + "x"),
    "not JSON": lambda: forge(header=header_with(",x")),
    "wrong checksum": lambda: one_array()[:-1] + b"\x01",
}
PLACES: dict[str, Callable[[Path], None]] = {
    "folder": lambda path: path.mkdir(),
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "header of 300 MB": huge_header,
}


def make(name: str, path: Path) -> None:
    if name in PLACES:
        PLACES[name](path)
    else:
        path.write_bytes(CONTENTS[name]())
