"""Databases: SQLite for real, and PostgreSQL where PENSTOCK_TEST_POSTGRES is the address of a server to write to."""

import datetime as dt
import os
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import penstock
from penstock.cli import main
from penstock.io import TableError, read_table
from penstock.io.sql import check_query, public_address

sa = pytest.importorskip("sqlalchemy")

SECRET = "s3cr3t/w@rd"
POSTGRES = os.environ.get("PENSTOCK_TEST_POSTGRES", "")
needs_postgres = pytest.mark.skipif(not POSTGRES, reason="PENSTOCK_TEST_POSTGRES does not name a PostgreSQL server")


def written(path, n_rows=300, tables=("readings",)):
    random = np.random.default_rng(3)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in tables:
            connection.execute(f"create table {table} (stamp text, flow real, head real, running boolean, remark text)")
            level = random.normal(size=n_rows)
            rows = [
                (
                    str(dt.datetime(2024, 5, 1) + dt.timedelta(minutes=n)),
                    3 + level[n],
                    None if n == 7 else 2 * level[n],
                    n % 2,
                    None,
                )
                for n in range(n_rows)
            ]
            connection.executemany(f"insert into {table} values (?, ?, ?, ?, ?)", rows)
    connection.close()
    return f"sql:sqlite:///{path}"


@pytest.fixture
def address(tmp_path):
    return written(tmp_path / "plant.db")


def test_the_only_table_of_a_database_is_read(address):
    table = read_table(address)
    assert table.names == ("flow", "head", "running", "remark")
    assert table.time_name == "stamp"
    assert str(table.time[1]) == "2024-05-01 00:01:00"
    assert np.flatnonzero(table.values["head"].isna()).tolist() == [7]
    assert table.source == address.removeprefix("sql:")


def test_of_several_tables_a_query_says_which(tmp_path):
    address = written(tmp_path / "plant.db", tables=("pumps", "valves"))
    with pytest.raises(TableError, match="'pumps', 'valves'") as caught:
        read_table(address)
    assert caught.value.parameter == "query"
    table = read_table(address, query="select stamp, flow as pump_flow from pumps where flow > 3 order by stamp;")
    assert table.names == ("pump_flow",)
    assert (table.values["pump_flow"] > 3).all()


def test_detect_fit_and_score_take_a_database(address, tmp_path):
    query = "select stamp, flow, head from readings"
    findings = penstock.detect(address, query=query, method="knn")
    assert findings.table.names == ("flow", "head")
    assert findings.settings["query"] == query
    model = penstock.fit_model(address, query=query, method="knn")
    model.save(tmp_path / "model.penstock")
    loaded = penstock.load(tmp_path / "model.penstock")
    new = loaded.score(address, query=f"{query} where flow > 4")
    assert 0 < len(new.table.values) < 300
    assert loaded.reading.query is None


@pytest.mark.parametrize(
    "query",
    [
        "drop table readings",
        "select 1; drop table readings",
        "with gone as (delete from readings returning *) select * from gone",
        "select * into copied from readings",
        "insert into readings select * from readings",
        "pragma writable_schema = 1",
        "attach 'x.db' as x",
        "",
        "-- select\nupdate readings set flow = 0",
        "/* select */ vacuum",
    ],
)
def test_what_is_more_than_one_select_is_refused(query, address):
    with pytest.raises(TableError) as caught:
        read_table(address, query=query)
    assert caught.value.parameter == "query"
    assert len(read_table(address).values) == 300


@pytest.mark.parametrize(
    "query",
    [
        "select 'drop; delete' as words from t",
        'select "update" from t -- insert',
        "SELECT replace(a, 'x', 'y') FROM t;",
        "with recent as (select * from t) select * from recent",
        "\n select * from t /* ; */ ",
    ],
)
def test_words_in_quotes_and_remarks_do_not_count(query):
    assert check_query(query).startswith(query.strip()[:20])


def test_sqlite_is_opened_for_reading_alone(address, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.io.sql.check_query", lambda query: query)
    with pytest.raises(TableError):
        read_table(address, query="delete from readings")
    assert len(read_table(address).values) == 300
    with pytest.raises(TableError):
        read_table(f"sql:sqlite:///{tmp_path}/other.db")
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("select * from nothing", None),
        ("select flow, head from readings", "time"),
        ("select * from readings where flow > 1000", "query"),
        ("select stamp, flow, flow from readings", None),
        ("select stamp from readings", None),
        ("selec", "query"),
    ],
)
def test_a_query_that_fails_or_returns_no_time_is_an_error(query, parameter, address, capsys):
    with pytest.raises(TableError) as caught:
        read_table(address, query=query)
    assert caught.value.parameter == parameter
    assert main(["detect", address, "--query", query]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_command_reads_a_database(address, capsys):
    assert main(["detect", address, "--query", "select stamp, flow, head from readings", "--method", "knn"]) == 0
    assert "300 rows" in capsys.readouterr().out
    assert main(["detect", "plant.csv", "--query", "select 1"]) == 2


def test_a_database_is_not_replaced_by_an_output(address, tmp_path, capsys):
    assert main(["fit", address, "--model", str(tmp_path / "plant.db"), "--overwrite"]) == 2
    assert len(read_table(address).values) == 300
    assert "plant.db" in capsys.readouterr().err


@pytest.mark.parametrize(
    "source",
    [
        f"sql:postgresql://reader:{SECRET}@127.0.0.1:1/plant",
        "sql:postgresql://reader:s3cr3t%2Fw%40rd@127.0.0.1:1/plant",
        f"sql:postgresql+pg8000://reader:{SECRET}@127.0.0.1:1/plant?password={SECRET}",
        f"sql:nothing://reader:{SECRET}@host/plant",
        f"sql:postgresql://reader:{SECRET}@host:port/plant",
        f"sql:oracle://reader:{SECRET}@host/plant",
        f"sql:sqlite+pysqlcipher://:{SECRET}@/plant.db",
    ],
)
def test_passwords_are_in_no_message(source, capsys):
    assert main(["detect", source, "--query", "select 1"]) == 2
    said = capsys.readouterr()
    for part in (SECRET, "s3cr3t", "w@rd", "s3cr3t%2Fw%40rd"):
        assert part not in said.err + said.out + public_address(source)


def test_more_than_fits_is_refused_while_it_is_read(address):
    with pytest.raises(TableError, match="max_bytes"):
        read_table(address, max_bytes=8 * 500)


def test_a_query_needs_a_database(tmp_path):
    for source in (tmp_path, {"flow": [1.0, 2.0]}, [tmp_path, tmp_path]):
        with pytest.raises(TableError) as caught:
            read_table(source, query="select 1")
        assert caught.value.parameter == "query"


def test_missing_values_in_whole_chunks_keep_the_type(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.io.sql._CHUNK", 10)
    with closing(sqlite3.connect(tmp_path / "plant.db")) as connection, connection:
        connection.execute("create table t (stamp text, a integer, b text, c real)")
        rows = [
            (f"2024-05-01 00:{n:02}", n if n >= 20 else None, "on" if n < 10 else None, 0.5 * n if n % 2 else "Bad")
            for n in range(40)
        ]
        connection.executemany("insert into t values (?, ?, ?, ?)", rows)
    connection.close()
    table = read_table(f"sql:sqlite:///{tmp_path}/plant.db")
    assert table.values["a"].isna().sum() == 20
    assert table.values["a"].dtype == np.float64
    assert table.values["b"].notna().sum() == 10
    assert table.values["c"].sum() == sum(0.5 * n for n in range(1, 40, 2))


@needs_postgres
def test_postgresql_for_real():
    engine = sa.create_engine(POSTGRES, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execution_options(no_parameters=True)  # % is an operator here
        connection.exec_driver_sql("drop table if exists penstock_test")
        connection.exec_driver_sql(
            "create table penstock_test as select timestamptz '2024-03-30 20:00+01' + n * interval '1 min' as stamp, "
            "(n % 7)::numeric(10, 3) + 0.125 as level, case when n % 10 = 0 then null else n::float8 end as flow, "
            "n % 2 = 0 as running, interval '1 min' * n as age, 'ok'::text as state, n::bigint as count "
            "from generate_series(0, 29999) as n"
        )
    address = f"sql:{POSTGRES}"
    table = read_table(address, query="select * from penstock_test where state like '%k%' order by stamp")
    assert str(table.time.tz) == "UTC"
    assert table.time[0].isoformat() == "2024-03-30T19:00:00+00:00"
    assert table.values["level"].iloc[:2].tolist() == [0.125, 1.125]
    assert table.values["flow"].isna().sum() == 3000
    assert table.values["age"].iloc[2] == 120
    assert table.values["running"].tolist()[:2] == [1.0, 0.0]
    with pytest.raises(TableError):
        read_table(address, query="select * from penstock_test where nextval('none') > 0")
    with pytest.raises(TableError):
        read_table(address, query="select stamp, level from penstock_test", max_bytes=8 * 20_000)
    with engine.begin() as connection:
        connection.exec_driver_sql("drop table penstock_test")


@needs_postgres
def test_postgresql_may_not_write():
    engine = sa.create_engine(POSTGRES, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("create sequence if not exists penstock_test_numbers")
    with pytest.raises(TableError, match="read-only"):
        read_table(f"sql:{POSTGRES}", query="select now() as stamp, nextval('penstock_test_numbers') as a")
    with engine.begin() as connection:
        connection.exec_driver_sql("drop sequence penstock_test_numbers")
