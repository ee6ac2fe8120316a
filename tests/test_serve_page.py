"""The live page in a real browser: an operator works an alarm from first sight to label, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from browser_pages import opened_page
from live_service import Client, csv_of, options, rows

from penstock.live.web import LiveServer

pytestmark = pytest.mark.browser
ROWS = rows(n=900, fault=range(700, 850))  # the fault is still there at row 800


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with LiveServer(options(tmp_path_factory.mktemp("live"), names=("unit1",))) as running:
        assert Client(running.url).samples(csv_of(ROWS[600:800]))[0] == 200
        yield running


def opened(browser, url, **given):
    own = (url.partition("#")[0], "data:")
    return opened_page(browser, url, lambda asked: asked.startswith(own), timeout=60_000, **given)


def test_an_alarm_is_worked_from_first_sight_to_label(browser, server):
    with opened(browser, server.url) as page:
        row = page.locator("#alarm-rows tr").first
        row.wait_for()
        assert "oil high" in row.inner_text()
        assert "● active" in row.inner_text()
        row.click()
        page.locator("#alarm-sensors tr").first.wait_for()
        assert page.locator("#alarm-sensors tr").first.inner_text().startswith("oil")
        assert "expected" in page.locator("#alarm-words").inner_text()
        assert page.locator("#alarm-normal").inner_text().startswith("Nearest normal situation: ")
        page.locator("#alarm-chart canvas").first.wait_for()
        page.fill("#who", "Ada")
        page.select_option("#reason", "real defect")
        page.fill("#comment", "bearing <b>hot</b>")
        page.click("[data-action=acknowledge]")
        page.locator("#history li", has_text="acknowledged · by Ada · real defect").wait_for()
        assert "bearing <b>hot</b>" in page.locator("#history").inner_text()
        page.fill("#hours-aside", "2")
        page.click("[data-action=shelve]")
        page.locator("#alarm-state .chip", has_text="shelved").wait_for()
        page.click("[data-action=unshelve]")
        page.locator("#history li", has_text="unshelved").wait_for()
        page.click(".close button")
        assert not page.locator("#alarm").is_visible()
    labels = Client(server.url).get("labels")
    assert [(each["reason"], each["who"], each["comment"]) for each in labels] == [
        ("real defect", "Ada", "bearing <b>hot</b>")
    ]


def test_new_rows_appear_and_charts_are_drawn(browser, server):
    with opened(browser, server.url + "#assets=unit1") as page:
        page.locator("#charts canvas").first.wait_for()
        assert page.locator("#charts .plot").count() == 4
        page.select_option("#add-sensor", "power")
        page.locator("#charts .plot", has_text="power").wait_for()
        before = page.locator("#asset-state").inner_text()
        assert Client(server.url).samples(csv_of(ROWS[800:820]))[0] == 200
        page.wait_for_function("(text) => document.getElementById('asset-state').innerText !== text", arg=before)
        assert page.locator("#connection").inner_text() == "Live"


def test_keyboard(browser, server):
    with opened(browser, server.url) as page:
        page.select_option("#show", "all")
        page.locator("#alarm-rows tr").first.wait_for()
        page.locator("#main").focus()
        page.keyboard.press("c")
        page.locator("#alarm[open]").wait_for()
        page.wait_for_function("document.activeElement.id === 'comment'")
        page.keyboard.press("Escape")
        page.locator("#alarm[open]").wait_for(state="detached")
        page.keyboard.press("3")
        page.locator("#kpis .kpi div").first.wait_for()
        assert "per operator in 10 minutes" in page.locator("#kpis").inner_text()
        page.keyboard.press("4")
        page.locator("#inputs tr").first.wait_for()
        assert "Last commit" in page.locator("#status").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser, server, scheme):
    with opened(browser, server.url, color_scheme=scheme) as page:
        page.set_viewport_size({"width": 360, "height": 740})
        page.locator("#alarm-rows tr, #no-alarms:not([hidden])").first.wait_for()
        for hash in ("alarms", "assets", "load", "service"):
            page.evaluate(f"location.hash = '{hash}'")
            page.wait_for_timeout(100)
            wide = page.evaluate(
                "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > 361).length"
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, (hash, wide)


LENGTHEN = """(selector) => { for (const each of document.querySelectorAll(selector)) {
  each.firstChild.textContent = "unit2_turbine_guide_bearing_temperature_2"; } }"""
BROKEN = """[...document.querySelectorAll("#alarm th")].map((each) => each.innerText).filter((text, i) => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelectorAll("#alarm th")[i]);
  return range.getClientRects().length > text.split(" ").length; })"""


def test_a_phone_shows_long_names_whole_and_breaks_no_word(browser, server):
    with opened(browser, server.url) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        page.select_option("#show", "all")
        page.locator("#alarm-rows tr button").first.click()
        page.locator("#alarm-sensors tr").first.wait_for()
        page.locator("#alarm-chart canvas").first.wait_for()
        page.evaluate(LENGTHEN, "#alarm-title, #alarm-words, #alarm-sensors td:first-child, #alarm-chart h4")
        assert page.locator("#alarm").evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth")
        assert page.evaluate(BROKEN) == []
        page.keyboard.press("Escape")
        page.evaluate("location.hash = 'assets'")
        page.locator("#charts canvas").first.wait_for()
        page.evaluate(LENGTHEN, "#add-sensor option, #charts h4")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_figure_without_a_target_is_neither_good_nor_bad(browser, server):
    with opened(browser, f"{server.url}#load") as page:
        page.locator("#kpis .kpi div").first.wait_for()
        cards = page.locator("#kpis .kpi div").all_inner_texts()
        assert {("target" in text, "✓" in text or "▲" in text) for text in cards} == {(True, True), (False, False)}


def test_a_token_is_asked_for(browser, tmp_path):
    from penstock.live.store import Store

    store = Store(tmp_path / "live.db")
    token = store.add_token("Vera", "viewer", 0.0)
    store.close()
    with LiveServer(options(tmp_path)) as running:
        context = browser.new_context()
        page = context.new_page()
        page.goto(running.url)
        page.locator("#token").fill(token)
        page.click("#token-form button")
        page.locator("#connection", has_text="Live").wait_for()
        page.evaluate("location.hash = 'service'")
        page.locator("#status dd", has_text="Vera (viewer)").wait_for()
        context.close()
