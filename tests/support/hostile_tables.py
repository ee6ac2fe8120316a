"""Tables that somebody made to do harm, that something broke, or that are merely odd.

Each must be read sensibly or refused with a TableError, in bounded time and memory; no other exception may come out.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
import struct
import zipfile
from collections.abc import Callable

from odd_times import ODD_TIMES

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
ENCODINGS = {
    "utf-8": "utf-8",
    "bom": "utf-8-sig",
    "utf-16": "utf-16",
    "utf-16-be": "utf-16-be",
    "utf-32": "utf-32",
    "cp1252": "cp1252",
}
LINE_ENDS = {"unix": "\n", "windows": "\r\n", "mac": "\r"}
ROWS = 30
FLOWS = [round(3.5 + 0.25 * row, 2) for row in range(ROWS)]
LEVELS = [row % 7 for row in range(ROWS)]


def stamp(row: int) -> str:
    return f"2024-03-{1 + row // 24:02d} {row % 24:02d}:00:00"


def written(separator: str, decimal: str = ".", quote: str = "", line_end: str = "\n") -> str:
    """A sound table of time, Füllstand and flow in this dress."""
    lines = [["time", "Füllstand", "flow"]]
    lines += [[stamp(row), str(LEVELS[row]), str(FLOWS[row]).replace(".", decimal)] for row in range(ROWS)]
    return line_end.join(separator.join(quote + field + quote for field in line) for line in lines) + line_end


def dressed() -> dict[str, Callable[[], bytes]]:
    """The same sound table in every dress: separators × encodings × line ends, quoted or not, packed or not."""
    tables: dict[str, Callable[[], bytes]] = {}
    for (sep, separator), (enc, encoding), (end, line_end) in itertools.product(
        SEPARATORS.items(), ENCODINGS.items(), LINE_ENDS.items()
    ):
        decimal = "," if separator in ";\t" and end == "windows" else "."
        quote = '"' if end == "unix" else ""
        text = written(separator, decimal, quote, line_end)
        tables[f"{sep}, {enc}, {end}"] = lambda text=text, encoding=encoding: text.encode(encoding)  # type: ignore[misc]
    for sep, separator in SEPARATORS.items():
        packed = written(separator, "," if separator == ";" else ".").encode()
        tables[f"{sep}, gzip"] = lambda packed=packed: gzip.compress(packed)  # type: ignore[misc]
    return tables


def remarks() -> dict[str, Callable[[], bytes]]:
    """Tables with lines that begin with #, as programs write them, and rows that do."""
    rows = "2024-01-01,1.5,2\n2024-01-02,2.5,3\n2024-01-03,3.5,5\n"
    numbered = "".join(f"#{number},{row}\n" for number, row in enumerate(rows.split()))
    influx = "#group,false,true,true\n#datatype,string,double,double\n,when,flow,level\n"
    texts = {
        "Ignition": f'"#NAMES"\n"t_stamp","flow","level"\n"#TYPES"\n"date","R8","I4"\n"#ROWS","3"\n{rows}',
        "InfluxDB": influx + "".join(f",{row}\n" for row in rows.split()),
        "a header with #": f"# made today\n# when,flow,level\n{rows}",
        "a title, and a header with #": f"Plant 7\n#when,flow,level\n{rows}",
        "remarks above": f"# made today, by X\nwhen,flow,level\n{rows}",
        "rows with #": f"number,when,flow,level\n{numbered}",
    }
    return {name: lambda text=text: text.encode() for name, text in texts.items()}  # type: ignore[misc]


def with_times(*times: str, name: str = "time") -> bytes:
    lines = [f'"{time}";{number}.5' for number, time in enumerate(times)]
    return f"{name};flow\n".encode() + "\n".join(lines).encode()


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


_SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def workbook(rows: str, before: str = "", strings: tuple[str, ...] = (), sheets: int = 1, styles: int = 0) -> bytes:
    """A workbook with one sheet of these rows, written by hand as no program would; `strings` are its shared texts.

    sheets, styles : how often it lists that sheet, and the plain format of a cell.
    """
    listed = "".join(f'<sheet name="s{number}" sheetId="{number + 1}" r:id="r1"/>' for number in range(sheets))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}content-types">'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_SHEET}sheet.main+xml"/>'
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_SHEET}sharedStrings+xml"/></Types>',
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_LINKS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}relationships"><Relationship Id="r1" '
        f'Type="{_LINKS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {_MAIN}>{before}<sheetData>{rows}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f"<sst {_MAIN}>{''.join(f'<si><t>{text}</t></si>' for text in strings)}</sst>",
    }
    if styles:
        parts["xl/styles.xml"] = f"<styleSheet {_MAIN}><cellXfs>{'<xf/>' * styles}</cellXfs></styleSheet>"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def noise(seed: int, count: int) -> bytes:
    return random.Random(seed).randbytes(count)


def shuffled(seed: int) -> bytes:
    """Signs that mean something to parsers, in any order."""
    signs = [b",", b";", b"\t", b'"', b"'", b"\n", b"\r", b"\r\n", b" ", b"1", b"2.5", b"x", b"-", b"\\", b"#", b"\xe4"]
    chosen = random.Random(seed)
    return b"".join(chosen.choice(signs) for _ in range(400))


ODD_FIELDS = (
    "1", "2.5", "-3", "1e5", "1,5", "1.234,5", "1 234", "", " ", "NaN", "null", "inf", "-Inf", "1e999", "x", "on",
    "TRUE", "0x1F", "1_0", "½", "٣", "\u2212 5", "5%", "$7", "2024-01-01", "31.12.2024 13:45", "12/31/24 1:45 PM",
    "25:61", "1704067200", "20241231", "1704067200000", "45292.5", "2024-01-01T00:00:00+01:00", "Jan 5, 2024",
    '"a""b"', '"1,5"', "'1'", "#REF!", "9" * 30, "\u200b1", "a\x0bb", "=1+1", "None", "<NA>", "--", "€", "time", "flow",
)  # fmt: skip


def patchwork(seed: int) -> bytes:
    """A table of the right shape from fields that make no sense together, column by column from a few of them."""
    chosen = random.Random(seed)
    separator = chosen.choice(list(SEPARATORS.values()))
    width = chosen.randint(1, 6)
    header = chosen.sample(["time", "date", "t", "flow", "a b", "", "1", "2024", "Zeit [UTC]", "größe"], width)
    pools = [chosen.sample(ODD_FIELDS, chosen.randint(1, 4)) for _ in range(width)]
    lines = [separator.join(chosen.choice(pool) for pool in pools) for _ in range(chosen.choice((1, 2, 3, 30, 300)))]
    text = chosen.choice(("\n", "\r\n", "\r")).join([separator.join(header), *lines])
    return text.encode(chosen.choice(("utf-8", "utf-8-sig", "utf-16")))


def damaged(seed: int) -> bytes:
    """A sound table with some bytes overwritten."""
    chosen = random.Random(seed)
    content = bytearray(written(chosen.choice(list(SEPARATORS.values()))).encode())
    for _ in range(chosen.randint(1, 8)):
        content[chosen.randrange(len(content))] = chosen.randrange(256)
    return bytes(content)


WORDS_FOR_MISSING = (
    "n/a", "N/A", "NA", "#N/A", "#NA", "<NA>", "NULL", "null", "None", "NaN", "nan", "-nan", "-", "--", "---", "?", ".",
    "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "n.a.",
)  # fmt: skip


def plain(header: str, *lines: str) -> Callable[[], bytes]:
    return lambda: "\n".join((header, *lines)).encode()


BROKEN: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "one byte": lambda: b"x",
    "one newline": lambda: b"\n",
    "blank lines": lambda: b"\n \n\t\n" * 100,
    "bom alone": lambda: b"\xef\xbb\xbf",
    "utf-16 bom alone": lambda: b"\xff\xfe",
    "half a utf-16 sign": lambda: b"\xff\xfea\x00,\x00b",
    "header alone": plain("time,flow,level"),
    "header and blank lines": plain("time,flow,level", "", "", ""),
    "header twice": plain("time,flow", "time,flow", "2024-01-01,1", "2024-01-02,2"),
    "header in the middle": plain("time,flow", "2024-01-01,1", "2024-01-02,2", "time,flow", "2024-01-03,3"),
    "one row": plain("time,flow", "2024-01-01,1"),
    "one column": plain("flow", "1", "2", "", "3"),
    "one column of times": plain("time", "2024-01-01", "2024-01-02"),
    "no header": plain("2024-01-01,1,2", "2024-01-02,3,4"),
    "no header, numbers": plain("1.5,2.5", "3.5,4.5", "5.5,6.5"),
    "numbered header": plain(",0,1,2", "0,1.5,2,3", "1,2.5,3,4", "2,2.5,3,4"),
    "duplicate header": plain("time,flow,flow", "2024-01-01,1,2", "2024-01-02,1,2"),
    "duplicate header after trimming": plain("time,flow, flow ", "2024-01-01,1,2", "2024-01-02,1,2"),
    "duplicate by our own name": plain("column 2,,x", "1,2,3", "4,5,6"),
    "empty header": plain(",,", "1,2,3", "4,5,6"),
    "a name of a megabyte": lambda: b"time," + b"x" * 2**20 + b"\n2024-01-01,1\n2024-01-02,2\n",
    "names of control signs": plain("time,a\x01b,\x7f", "2024-01-01,1,2", "2024-01-02,3,4"),
    "too many fields": plain("a,b", "1,2", "3,4,5", "6,7"),
    "too few fields": plain("a,b,c", "1,2,3", "4,5", "6,7,8"),
    "first row too long": plain("a,b", "1,2,3", "4,5", "6,7"),
    "all rows too long": plain("a,b", "1,2,3", "4,5,6", "6,7,8"),
    "all rows too short": plain("a,b,c", "1,2", "4,5", "6,7"),
    "last row cut": plain("a,b,c", "1,2,3", "4,5,6", "7,8"),
    "last row cut in a quote": plain("a,b,c", "1,2,3", "4,5,6", '7,"8'),
    "separators too many at the end": plain("a;b;c", "1;2;3;", "4;5;6;"),
    "separators too many everywhere": plain("a;b;c;;;", "1;2;3;;;", "4;5;6;;;"),
    "only separators": lambda: b",,,,\n" * 50,
    "rows of separators": plain("time;a;b", "2024-01-01;1;2", ";;", ";;", "2024-01-02;3;4"),
    "a report above": plain("Plant report;;", "made by;X;", ";;", "time;a;b", "2024-01-01;1;2", "2024-01-02;3;4"),
    "words above": plain("Plant report of May", "", "time;a;b", "2024-01-01;1;2", "2024-01-02;3;4"),
    "units below": plain("time;a;b", ";m³/h;°C", "2024-01-01;1;2", "2024-01-02;3;4"),
    "words below": plain("time;a;b", "2024-01-01;1;2", "2024-01-02;3;4", "end of report"),
    "comments": plain("# time,a", "2024-01-01,1", "# a note", "2024-01-02,3"),
    "quote never closed": plain("time,a,b", '2024-01-01,"1,2', "2024-01-02,3,4", "2024-01-03,3,4"),
    "quote in the header never closed": plain('time,"a,b', "2024-01-01,1,2", "2024-01-02,3,4"),
    "quote inside a field": plain("time,a,b", '2024-01-01,5" pipe,2', "2024-01-02,x,4", '2024-01-03,y"z",4'),
    "quotes only": lambda: b'"' * 10_001,
    "pairs of quotes": lambda: b'"",""\n' * 1000,
    "line break in the header": plain('time,"flow\n(m³/h)"', "2024-01-01,1", "2024-01-02,2"),
    "line break in a field": plain("time,note,a", '2024-01-01,"x\ny",1', '2024-01-02,"x\ny",2'),
    "all text": plain("name,place", "pump,hall", "fan,roof", "gate,river"),
    "all missing": plain("time,a,b", "2024-01-01,,", "2024-01-02,NaN,NA"),
    "text and time": plain("time,state", "2024-01-01,on", "2024-01-02,off"),
    "all infinite": plain("time,a", "2024-01-01,inf", "2024-01-02,-inf"),
    "huge exponents": plain("time,a", "2024-01-01,1e999", "2024-01-02,-1e-999", "2024-01-03,1e999999999999"),
    "thousand digits": plain("time,a", "2024-01-01," + "9" * 1000, "2024-01-02,1", "2024-01-03,2"),
    "beyond int64": plain(
        "time,a", "2024-01-01,9223372036854775808", "2024-01-02,-9223372036854775809", "2024-01-03,1"
    ),
    "thousands": plain("time;a", "2024-01-01;1.234,5", "2024-01-02;2.345,5", "2024-01-03;12.345,5"),
    "thousands in quotes": plain("time,a", '2024-01-01,"1,234.5"', '2024-01-02,"2,345.5"', '2024-01-03,"7,777"'),
    "decimal comma in quotes": plain("time,a", '2024-01-01,"1,5"', '2024-01-02,"2,5"', '2024-01-03,"7,75"'),
    "decimal comma late": plain("time;a", *(f"2024-01-{day:02d};{day}" for day in range(1, 30)), "2024-01-30;1,5"),
    "percent": plain("time,a", "2024-01-01,5%", "2024-01-02,6%"),
    "units in fields": plain("time,a,b", "2024-01-01,5 bar,1", "2024-01-02,6 bar,1"),
    "underscores": plain("a,b", "1_000,2", "2_000,3"),
    "hexadecimal": plain("a,b", "0x10,2", "0x20,3"),
    "booleans": plain("time,a", "2024-01-01,True", "2024-01-02,FALSE", "2024-01-03,true"),
    "booleans with holes": plain("time,a,b", "2024-01-01,True,1", "2024-01-02,,1", "2024-01-03,False,1"),
    "bad values": plain("time,a", *(f"2024-01-{day:02d},{day}.5" for day in range(1, 29)), "2024-01-29,Bad"),
    "signs of other scripts": plain("time,a", "2024-01-01,١٢", "2024-01-02,１２", "2024-01-03,½"),
    "spaces": plain(" time ,  a", "2024-01-01 10:00, 1", " 2024-01-01 11:00 ,  2 ", "2024-01-01 12:00,3"),
    "nul": lambda: b"time,a\n2024-01-01,1\n2024-01-02,\x002\n",
    "nul at the end": lambda: b"time,a\n2024-01-01,1\n2024-01-02,2\n" + bytes(4096),
    "nul far away": lambda: b"a,b\n" + b"1,2\n" * 100_000 + b"1,\0\n",
    "all nul": lambda: bytes(10_000),
    "control signs": lambda: bytes(range(1, 32)) * 100,
    "all bytes": lambda: bytes(range(256)) * 40,
    "end of file of DOS": lambda: b"time,a\r\n2024-01-01,1\r\n2024-01-02,2\r\n\x1a",
    "invalid utf-8": lambda: b"time,a\n2024-01-01,1\n2024-01-02,\xff\xfe\n2024-01-03,2\n",
    "invalid utf-8 far away": lambda: b"a,b\n" + b"1,2\n" * 100_000 + b"1,\xff\n",
    "latin-1 alone": lambda: b"time,F\x81\x8dl\n2024-01-01,1\n2024-01-02,2\n",
    "utf-8 cut": lambda: "time,ä\n2024-01-01,1\n2024-01-02,ä".encode()[:-1],
    "surrogates": lambda: b"time,a\n2024-01-01,\xed\xa0\x80\n2024-01-02,1\n",
    "two boms": lambda: b"\xef\xbb\xbf\xef\xbb\xbftime,a\n2024-01-01,1\n2024-01-02,2\n",
    "utf-16 cut": lambda: written(",").encode("utf-16")[:-1],
    "utf-16 called utf-8": lambda: b"\xef\xbb\xbf" + written(",").encode("utf-16-le"),
    "form feeds": plain("a,b", "1,2\x0c", "3,4\x0b", "5,6\x85", "7,8\u2028"),
    "json": lambda: json.dumps([{"time": "2024-01-01", "a": 1}] * 5).encode(),
    "json lines": lambda: b'{"time": "2024-01-01", "a": 1}\n' * 5,
    "html": lambda: b"<html><table><tr><td>1,2</td></tr></table></html>",
    "xml": lambda: b"\xef\xbb\xbf  <?xml version='1.0'?><rows/>",
    "pdf": lambda: b"%PDF-1.7\n1 0 obj\n" + noise(1, 500),
    "png": lambda: b"\x89PNG\r\n\x1a\n" + noise(2, 500),
    "old excel": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + noise(3, 2000),
    "sqlite": lambda: b"SQLite format 3\0" + bytes(4000),
    "hdf5": lambda: b"\x89HDF\r\n\x1a\n" + bytes(500),
    "numpy": lambda: b"\x93NUMPY\x01\x00" + bytes(500),
    "feather": lambda: b"ARROW1\0\0" + bytes(500),
    "bzip2": lambda: b"BZh9" + noise(4, 500),
    "xz": lambda: b"\xfd7zXZ\0" + noise(5, 500),
    "zstd": lambda: b"\x28\xb5\x2f\xfd" + noise(6, 500),
    "zip of a table": lambda: zipped("plant.csv", written(",").encode()),
    "zip, empty": lambda: b"PK\x05\x06" + bytes(18),
    "zip, cut": lambda: zipped("plant.csv", written(",").encode())[:60],
    "excel in name": lambda: zipped("xl/workbook.xml", b"<workbook/>"),
    "zip bomb": lambda: zipped("xl/sheet.xml", bytes(10**7)),
    "parquet in name": lambda: b"PAR1" + noise(7, 500) + b"PAR1",
    "parquet, absurd footer": lambda: b"PAR1" + bytes(100) + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "parquet alone": lambda: b"PAR1",
    "gzip, cut": lambda: gzip.compress(written(",").encode() * 200)[:-500],
    "gzip, no end": lambda: gzip.compress(written(",").encode())[:-8],
    "gzip, wrong sum": lambda: gzip.compress(written(",").encode())[:-8] + bytes(8),
    "gzip, damaged": lambda: gzip.compress(noise(8, 3000))[:300] + noise(9, 300),
    "gzip, head alone": lambda: b"\x1f\x8b",
    "gzip of nothing": lambda: gzip.compress(b""),
    "gzip of gzip": lambda: gzip.compress(gzip.compress(written(",").encode())),
    "gzip of noise": lambda: gzip.compress(noise(10, 5000)),
    "gzip of two tables": lambda: gzip.compress(written(",").encode()) + gzip.compress(b"2024-04-01 00:00:00,1,2\n"),
    "gzip and rubbish": lambda: gzip.compress(written(",").encode()) + b"rubbish",
    "gzip bomb, one line": lambda: gzip.compress(b"1" * (80 * 2**20), 1),
    "line of 70 MB": lambda: b"a,b\n1,2\n" + b"3," * (35 * 2**20) + b"\n",
    "field of 10 MB": lambda: b"a,b\n1,2\n3," + b"x" * (10 * 2**20) + b"\n4,5\n",
    "quoted field of 10 MB": lambda: b'a,b\n1,2\n3,"' + b"x\n" * (5 * 2**20) + b'"\n4,5\n',
    "a million columns": lambda: b",".join(b"%d" % n for n in range(10**6)) + b"\n" + b"1," * (10**6 - 1) + b"1\n",
    "three thousand columns": lambda: (
        (b",".join(b"c%d" % n for n in range(3000)) + b"\n") + (b"1.5," * 2999 + b"1\n") * 3
    ),
    "many short rows": lambda: b"a,b\n" + b"1,2\n1\n" * 50_000,
    "a million commas": lambda: b"," * 10**6,
    "a million blank lines": lambda: b"a,b\n1,2\n" + b"\n" * 10**6 + b"3,4\n",
    "spaces for separators": plain("time a b", "1 2 3", "4 5 6"),
    "blanks, no header": plain("  1.5  2.5\t3", " 4.5 5.5  6 "),
    "blanks, a number in a name": plain("flow 1", "1.5", "2.5"),
    "no header, date and clock": plain("2024-01-01,10:00,1.5,2", "2024-01-01,10:10,2.5,3", "2024-01-01,10:20,3.5,4"),
    "no header, a word": plain("2024-01-01,on,1.5", "2024-01-02,off,2.5"),
    "words above, as many fields": plain("Report,", "time,flow", "2024-01-01,1", "2024-01-02,2"),
    "units with digits": plain("when;a;b", "-;m3/h;°C", "1.1.2024;1;2", "2.1.2024;3;4"),
    "tab and decimal comma": plain("time\ta", "2024-01-01\t1,5", "2024-01-02\t2,5"),
    "comma, then point": plain("time;a", "2024-01-01;999,5", "2024-01-02;2.345"),
    "words of another encoding": lambda: b"a,b\n" + b"1,2\n" * 30 + b"\xfc,3\n",
    "words for missing": plain(
        "time,a",
        *(f"2024-01-{day:02d},{day}.5" for day in range(1, 31)),
        *(f"2024-02-{day:02d},{word}" for day, word in enumerate(WORDS_FOR_MISSING, start=1)),
    ),
    "all separators at once": plain("a,b;c|d\te", "1,2;3|4\t5", "6,7;8|9\t0"),
    "backslashes": plain("a,b", "1\\,2", "3\\,4"),
    "formulas": plain("time,a", "2024-01-01,=1+1", "2024-01-02,=cmd|'/c calc'!A0"),
    "percent signs": plain("time,%s%d{0}", "2024-01-01,1", "2024-01-02,2"),
    "names like options": plain("time,columns,index,None,nan,True", "2024-01-01,1,2,3,4,5", "2024-01-02,1,2,3,4,5"),
    "two times": plain("time,timestamp,a", "2024-01-01,2024-02-01,1", "2024-01-02,2024-02-02,2"),
    "date and time apart": plain("Date;Time;a", "31.12.2024;10:00;1", "31.12.2024;10:01;2"),
    "date and time with a hole": plain("Date;Time;a", "31.12.2024;10:00;1", ";10:01;2", "1.1.2025;;3"),
    "the time is last": plain("a,b,when", "1,2,2024-01-01", "3,4,2024-01-02"),
    "time that is none": plain("time,a", "slow,1", "fast,2", "slow,3"),
    "time that is empty": plain("time,a", ",1", ",2", ",3"),
    "t is a temperature": plain("t,a", "21.5,1", "20.5,2", "22.5,3"),
    "text, then numbers": lambda: b"a,b\n" + b"x,1\n" * 3 + b"1,1\n" * 300_000,
    "numbers, then text": lambda: b"a,b\n" + b"1.50,1\n" * 300_000 + b"x,1\ny,1\nz,1\n" * 10_000,
}


def hostile() -> dict[str, Callable[[], bytes]]:
    """All of them, by name."""
    tables = dict(BROKEN)
    tables |= {f"times: {name}": lambda times=times: with_times(*times) for name, times in ODD_TIMES.items()}  # type: ignore[misc]
    tables |= {f"noise {seed}": lambda seed=seed: noise(seed, 3000) for seed in range(10)}  # type: ignore[misc]
    tables |= {f"shuffled {seed}": lambda seed=seed: shuffled(seed) for seed in range(30)}  # type: ignore[misc]
    tables |= {f"patchwork {seed}": lambda seed=seed: patchwork(seed) for seed in range(150)}  # type: ignore[misc]
    tables |= {f"damaged {seed}": lambda seed=seed: damaged(seed) for seed in range(60)}  # type: ignore[misc]
    return tables
