"""Encodings of texts that are not UTF-8: names as they were written, or a note that says what is not certain."""

import pytest
from encoded_headers import encoded_tables

from penstock.io import TableError, read_table
from penstock.io._csv_rows import learn_layout
from penstock.io._encodings import TextEncoding, find_encoding, marked_encoding
from penstock.io._row_values import TableOptions
from penstock.io.table import ReadLog

TABLES = encoded_tables()
OF_STREAMS = [each for each in TABLES if not each[0].startswith("utf-16")]


def header_of(content):
    marked = marked_encoding(content[:4096])
    found = TextEncoding(marked) if marked else find_encoding([content])
    return content.decode(found.name, errors=found.errors).partition("\n")[0].lstrip("\ufeff"), found


@pytest.mark.parametrize(("encoding", "header", "content"), TABLES, ids=[f"{e}-{h[:25]}" for e, h, _ in TABLES])
def test_the_names_are_as_they_were_written(encoding, header, content):
    assert header_of(content)[0] == header


def test_most_encodings_are_sure_and_those_of_western_europe_always():
    found = [(encoding, header_of(content)[1]) for encoding, _, content in TABLES]
    assert sum(each.sure for _, each in found) > 0.9 * len(found)
    assert all(each.sure and each.name == "cp1252" for encoding, each in found if encoding == "cp1252")


def test_a_file_and_a_stream_find_the_same_names(tmp_path):
    path = tmp_path / "plant.csv"
    for _, header, content in OF_STREAMS[::4]:
        path.write_bytes(content)
        table = read_table(path)
        layout = learn_layout(content.splitlines(), TableOptions(), ReadLog("stream"), more=False)
        names = [" ".join(name.split()) for name in header.split(";" if ";" in header else ",")]
        assert [table.time_name, *table.names] == names == list(layout.columns.names)
        assert [note.kind for note in table.notes].count("encoding") == 1


def test_a_stream_notes_an_encoding_that_it_found():
    notebook = ReadLog("stream")
    lines = ["Время;Давление;Расход", "2024-01-01 00:00;1,5;2", "2024-01-01 00:01;1,6;2"]
    layout = learn_layout([line.encode("cp1251") for line in lines], TableOptions(), notebook, more=False)
    assert layout.encoding == "cp1251"
    assert [note.kind for note in notebook.notes] == ["encoding"]


def test_utf8_with_a_few_broken_bytes_stays_utf8(tmp_path):
    path = tmp_path / "plant.csv"
    lines = ["Zeit;Außentemperatur;Öldruck;Zustand", *[f"2024-01-01 00:{n:02};{n};{n};läuft" for n in range(40)]]
    content = "\n".join(lines).encode()
    path.write_bytes(content + b"\n2024-01-01 00:40;1;2;l\xe4uft\n")
    table = read_table(path)
    assert table.names == ("Außentemperatur", "Öldruck", "Zustand")
    assert table.values["Zustand"].tolist()[-1] == "l\ufffduft"
    note = table.about("encoding")
    assert "(encoding)" in note.message


def test_words_far_below_the_header_count_as_evidence(tmp_path):
    rows = [f"2024-01-01 {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02},{n},ok" for n in range(30_000)]
    rows += ["2024-01-02 00:00:00,1,остановлен", "2024-01-02 00:00:01,1,авария насоса"]
    path = tmp_path / "plant.csv"
    path.write_bytes("\n".join(["time,flow,state", *rows]).encode("cp1251"))
    assert read_table(path).values["state"].tolist()[-1] == "авария насоса"


def test_what_is_not_certain_is_said(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_bytes("เวลา,อุณหภูมิ,ความดัน\n2024-01-01,1,2\n2024-01-02,2,3\n".encode("cp874"))
    note = read_table(path).about("encoding")
    assert "not certain" in note.message


def test_an_encoding_that_is_given_is_used_or_refused(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_bytes("Время,Расход\n2024-01-01,1\n2024-01-02,2\n".encode("cp1251"))
    assert read_table(path, encoding="cp1251").names == ("Расход",)
    with pytest.raises(TableError) as caught:
        read_table(path, encoding="utf-8")
    assert caught.value.parameter == "encoding"


def test_a_text_without_line_ends_does_not_fill_the_memory():
    chunks = (b"\xe4" * 2**16 for _ in range(200))
    assert find_encoding(chunks).name
    assert sum(1 for _ in chunks) > 150  # the rest was not read
