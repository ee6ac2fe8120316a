"""The page of a project in a real browser, by clicks: from a file to a live alarm."""

from __future__ import annotations

import json
import shutil
import urllib.request

import pandas as pd
import pytest
from browser_pages import opened_page
from open_cases import plant_frame

from penstock.project import Project
from penstock.project.web import ProjectServer

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The server of all tests: the process that works for it takes seconds to start."""
    with ProjectServer(Project(tmp_path_factory.mktemp("served") / "unit1")) as server:
        yield server


@pytest.fixture
def server(running):
    """With an empty project."""
    yield running
    api = running.api
    api.stop_live()
    while task := api.worker.next:
        assert task.done.wait(300)
    api.last.clear()
    shutil.rmtree(api.project.folder)
    api.project = Project(api.project.folder)


def opened(browser, server, **given):
    own = (server.address, "data:", "blob:")
    return opened_page(browser, server.url, lambda asked: asked.startswith(own), **given)


def drop(page, path):
    page.locator("#drop").wait_for()
    page.set_input_files("#files", path)


def idle(page):
    page.wait_for_function("() => !document.getElementById('work').classList.contains('busy')")


def test_from_a_file_to_a_live_alarm(browser, server, tmp_path):
    path = tmp_path / "plant <b>1.csv"
    frame = plant_frame().rename(columns={"oil": "<img src=x onerror=alert(1)>"})
    frame.to_csv(path, index=False)
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr", has_text="<img src=x").wait_for()  # a name from the data is a text
        assert "900 rows of 4 tags" in page.inner_text("#look-lead")
        page.fill("#tag-search", "head")
        assert page.locator("#tags tr").count() == 1
        page.check("#choose-all")
        page.select_option("#role", "driver")
        page.locator("#tags tr", has_text="driver").wait_for()
        page.click("#find")
        page.locator("#incidents tr").first.wait_for()
        assert "1 incident stands out" in page.inner_text("#verdict")
        idle(page)
        box = page.locator("#score-chart").bounding_box()
        page.mouse.move(box["x"] + 90, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 90 + 0.55 * box["width"], box["y"] + 60, steps=4)
        page.mouse.up()
        assert page.input_value("#mark-from").startswith("2024-0")
        page.click("button[value=train_periods]")
        page.locator("#marks li", has_text="Learn from").wait_for()
        page.click("#again")
        page.locator("#again").wait_for(state="hidden")
        page.locator("#changed li").first.wait_for()
        idle(page)
        page.locator("#incidents button").first.click()
        page.locator("#reasons label", has_text="fault").click()
        page.fill("#label-comment", "<script>alert(1)</script>")
        page.click("#label-keep")
        page.locator("#incidents .chip", has_text="fault: <script>").wait_for()
        page.click("nav a[href='#live']")
        page.click("#fit")
        page.locator("#live-form").wait_for()
        page.click("#live-test")
        page.locator("#live-answer li").first.wait_for()
        page.click("#live-past")
        page.locator("#live-answer p", has_text="of them on your marks").wait_for()
        page.click("#live-form button.first")
        page.locator("#live-files").wait_for()
        assert "penstock serve --config live.toml" in page.inner_text("#live-command")
        page.locator("#live-lead", has_text="1 alarm to be worked on").wait_for()
    live = server.api.live
    with urllib.request.urlopen(live.url + "api/v1/alarms") as answer:
        (alarm,) = [each for each in json.loads(answer.read()) if each["about"] == "alarm"]
    assert "<img src=x" in alarm["cause"]


def test_a_reload_and_a_second_tab_lose_nothing(browser, server, tmp_path):
    path = tmp_path / "plant.csv"
    plant_frame().to_csv(path, index=False)
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr").nth(3).wait_for()
        page.click("#find")
        page.locator("#incidents tr").first.wait_for()
        with opened(browser, server) as other:
            other.click("nav a[href='#findings']")
            other.fill("#mark-from", "2.5.2024")  # as people write it
            other.fill("#mark-to", "2024-05-03")
            other.click("button[value=exclude_periods]")
            other.locator("#marks li").first.wait_for()
            page.fill("#mark-from", "2024-05-04")
            page.fill("#mark-to", "2024-05-04")
            page.click("button[value=exclude_periods]")
            page.locator("#marks li").nth(1).wait_for()
        page.reload()
        page.locator("#marks li").nth(1).wait_for()
        assert "2024-05-02 until 2024-05-03" in page.inner_text("#marks")
        page.locator("#marks li button").first.click()
        page.locator("#marks li").nth(1).wait_for(state="detached")
        log = b"start,end,text\n2024-05-05,2024-05-06,oil hot\n2024-05-01,2024-05-01,inspection\n"
        page.set_input_files("#failures-file", {"name": "log.csv", "mimeType": "text/csv", "buffer": log})
        page.locator("#failures-lead", has_text="Score again").wait_for()
        page.click("#again")
        page.locator("#failures tr", has_text="✓ found").wait_for()
        assert "oil hot" in page.inner_text("#failures")
        assert "✗ missed" in page.inner_text("#failures")


def test_a_long_table_with_quality(browser, server, tmp_path):
    frame = plant_frame(400, fault=range(0)).melt("time", var_name="tag", value_name="value")
    frame["quality"] = ["Bad" if n % 51 == 0 else "Good" for n in range(len(frame))]
    path = tmp_path / "readings.csv"
    frame.sort_values("time").to_csv(path, index=False)
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr").nth(3).wait_for()
        assert "400 rows of 4 tags" in page.inner_text("#look-lead")
        page.click("summary")
        assert "32 readings" in page.inner_text("#plan")
        assert "2.0 %" in page.inner_text("#tags")


def test_a_wrong_file_is_explained_where_the_user_looks(browser, server, tmp_path):
    path = tmp_path / "wrong.csv"
    path.write_bytes(b"\x00\x01\x02nothing")
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#look-problem .notice").wait_for()
        assert "wrong.csv" in page.inner_text("#look-problem")
        page.click("nav a[href='#data']")
        page.locator("#uploads li", has_text="wrong.csv").first.locator("button").click()
        page.wait_for_function("() => !document.querySelector('#uploads li')")


def test_the_sample_fits_a_phone_and_is_used_by_keyboard(browser, server):
    with opened(browser, server, width=360, height=740, color_scheme="dark") as page:
        page.locator("#sample").focus()
        page.keyboard.press("Enter")
        page.locator("#tags tr").nth(40).wait_for()
        page.locator("#find").focus()
        page.keyboard.press("Enter")
        page.locator("#incidents tr").first.wait_for()
        idle(page)
        for step in ("data", "understood", "findings", "compare", "live", "keep"):
            page.evaluate(f"location.hash = '{step}'")
            page.locator(f"#page-{step}").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, step
        page.locator("nav a", has_text="What is wrong").focus()
        page.keyboard.press("Enter")
        page.locator("#incidents button").first.focus()
        page.evaluate("refresh()")  # as it does every few seconds: the focus stays
        page.keyboard.press("Enter")
        page.locator("#label-dialog[open]").wait_for()
        page.keyboard.press("Escape")
        page.locator("#label-dialog[open]").wait_for(state="detached")


def test_everything_can_be_downloaded(browser, server, tmp_path):
    path = tmp_path / "plant.csv"
    plant_frame().to_csv(path, index=False)
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr").nth(3).wait_for()
        page.click("nav a[href='#keep']")
        for name in ("report.html", "findings.xlsx", "incidents.csv", "penstock.ipynb"):
            with page.expect_download() as got:
                page.click(f"text=Download {name}")
            assert got.value.suggested_filename == name
        with page.context.expect_page() as tab:
            page.click("text=Show it")
        tab.value.locator("h1").wait_for()
        tab.value.locator("canvas").first.wait_for()  # its own script runs


def test_periods_and_sister_units_are_compared(browser, server, tmp_path):
    one = plant_frame(600, range(0)).set_index("time")
    other = one + 0.01
    other.iloc[300:, 1] += 6
    path = tmp_path / "sisters.csv"
    one.add_prefix("unit1_").join(other.add_prefix("unit2_")).to_csv(path)
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr").nth(7).wait_for()
        page.click("nav a[href='#compare']")
        page.wait_for_function("() => document.getElementById('compare-first').value.startsWith('2024-05-01 00:00..')")
        page.fill("#compare-first", "2024-05-01..2024-05-02")
        page.fill("#compare-second", "2024-05-03 12:00..2024-05-04")
        page.click("#compare-form button")
        page.locator("#compared tr").nth(7).wait_for()
        assert "unit2_oil" in page.inner_text("#compare-lead")
        page.check("input[value=units]")
        assert page.input_value("#compare-second") == "unit2"
        page.click("#compare-form button")
        page.locator("#compared tr", has_text="2024-05-03 02:00").wait_for()
        assert page.inner_text("#compare-lead") == "1 of 4 tags differs: 'oil'."
        with page.expect_download() as got:
            page.click("#compare-csv")
        assert got.value.suggested_filename == "comparison.csv"


def test_a_german_export_and_every_kind_of_source(browser, server, tmp_path):
    frame = plant_frame()
    frame.columns = ["Zeitstempel", "Leistung [kW]", "Öltemperatur [°C]", "Durchfluss", "Fallhöhe [m]"]
    frame["Zeitstempel"] = pd.to_datetime(frame["Zeitstempel"]).dt.strftime("%d.%m.%Y %H:%M")
    path = tmp_path / "export_münchen.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr", has_text="Öltemperatur").wait_for()
        assert "from 2024-05-01 00:00 until 2024-05-07 05:50" in page.inner_text("#look-lead")
        page.click("nav a[href='#live']")
        page.click("#fit")
        page.locator("#live-form").wait_for()
        page.click("#live-test")
        page.locator("#live-answer", has_text="2024-05-01 00:00").wait_for()
        page.click("#fit")
        page.wait_for_function("() => document.getElementById('live-model').options.length === 2")
        idle(page)
        page.evaluate("refresh().then(draw)")
        assert page.input_value("#live-model") == "unit1-2.penstock"  # the newest
        page.select_option("#live-model", "unit1-1.penstock")
        page.evaluate("refresh().then(draw)")
        assert page.input_value("#live-model") == "unit1-1.penstock"
        page.select_option("#live-kind", "http")
        page.click("#live-test")
        page.locator("#live-answer li", has_text="Öltemperatur [°C]: 50").wait_for()
        page.select_option("#live-kind", "folder")
        page.fill("#live-place", "data")
        page.click("#live-test")
        page.locator("#live-answer", has_text="2024-05-01 00:00").wait_for()
        page.select_option("#live-kind", "http")
        page.click("#live-form button.first")
        page.locator("#live-answer pre", has_text="/samples").wait_for()


def test_a_file_with_nothing_wrong(browser, server, tmp_path):
    path = tmp_path / "healthy.csv"
    plant_frame(1500, fault=range(0)).to_csv(path, index=False)
    with opened(browser, server) as page:
        drop(page, path)
        page.locator("#tags tr").nth(3).wait_for()
        page.click("#find")
        page.locator("#verdict", has_text="Nothing stands out").wait_for()
        page.locator("#no-incidents").wait_for()
        assert not page.is_visible("#incident-table")


def test_areas_with_three_clocks(browser, server, tmp_path):
    frame, folder = plant_frame(), tmp_path / "export"
    times = pd.to_datetime(frame["time"])
    for name, columns, shift, every in (("a", ["load"], 0, 1), ("b", ["oil"], 180, 1), ("c", ["flow", "head"], 61, 2)):
        part = frame[columns].set_axis((times + pd.Timedelta(shift, "s")).rename("time"), axis=0)
        (folder / name).mkdir(parents=True)
        part.iloc[::every].to_csv(folder / name / "data.csv")
    (folder / "read me.docx").write_text("no table")
    with opened(browser, server) as page:
        page.locator("#drop").wait_for()
        page.set_input_files("#folder", folder)
        page.locator("#tags tr").nth(3).wait_for()
        assert [each["name"] for each in server.api.project.uploads] == [
            f"export_{name}_data.csv" for name in ("a", "b", "c")
        ]
        assert "3 files" in page.inner_text("#look-lead")
        page.click("nav a[href='#live']")
        page.click("#fit")
        page.locator("#live-form").wait_for()
        page.click("#live-past")
        page.locator("#live-answer", has_text="With these rules: 1 alarm").wait_for()
        page.click("#live-form button.first")  # of several files, none is known to grow
        page.locator("#live-problem", has_text="Say where rows will come from").wait_for()


def test_without_a_token_nothing_is_shown(browser, server):
    address = server.address
    with opened_page(browser, address, lambda asked: asked.startswith((address, "data:"))) as page:
        page.locator("#page-lost").wait_for()
