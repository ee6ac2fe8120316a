"""The live page in a real browser: an operator works an alarm from first sight to label, by mouse and by keyboard."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from browser_pages import opened_page
from live_service import Client, csv_of, model, options, rows
from waiting import wait_for

from penstock import fit_model
from penstock.live.runtime import add_file
from penstock.live.store import Store
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
    return opened_page(browser, url, lambda asked: asked.startswith(own), **given)


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
        page.click("[data-action=acknowledge]")  # asks why, then who
        page.locator("#work-problem", has_text="Why?").wait_for()
        page.fill("#comment", "bearing <b>hot</b>")
        page.locator("#reasons label", has_text="fault").click()
        page.locator("#work-problem", has_text="Your name").wait_for()
        page.keyboard.type("Ada")
        page.keyboard.press("Enter")
        page.locator("#history li", has_text="acknowledged · by Ada · fault").wait_for()
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
        ("fault", "Ada", "bearing <b>hot</b>")
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
        page.wait_for_function("() => document.activeElement.id === 'comment'")
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
            page.locator(f"#page-{hash}:not([hidden])").wait_for()
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


def closed_alarm(folder):
    """A server with an alarm that has ended, was acknowledged, and is closed; and rows without a score."""
    running = LiveServer(options(folder, names=("unit1",)))
    running.__enter__()
    client, table = Client(running.url), rows(n=1200, fault=range(700, 750))
    assert client.samples(csv_of(table[600:900]))[0] == 200
    alarm = client.get("alarms")[0]["id"]
    assert client.command(f"alarms/{alarm}/acknowledge", name="Ada", reason="looked at")[0] == 200
    assert client.samples(csv_of(table[900:1000]))[0] == 200
    assert not client.get(f"alarms/{alarm}")["open"]
    return running, client, alarm


def test_an_alarm_is_labelled_before_it_is_acknowledged_and_the_label_is_taken_back(browser, tmp_path):
    with LiveServer(options(tmp_path)) as running, opened(browser, running.url) as page:
        client = Client(running.url)
        assert client.samples(csv_of(rows(n=1200, fault=range(700, 750))[600:730]))[0] == 200
        page.locator("#alarm-rows tr").first.click()
        page.fill("#who", "Bob")
        page.locator("#reasons label", has_text="maintenance").click()
        page.click("[data-action=label]")
        page.locator("#labels li", has_text="Label: maintenance · by Bob").wait_for()
        assert page.locator("[data-action=acknowledge]").is_visible()
        page.click("#labels button")
        page.locator("#labels li button").wait_for(state="detached")
        (alarm,) = client.get("alarms")
        assert "acknowledged" not in alarm["state"]
        assert [each["withdrawn_by"] for each in client.get("labels")] == ["Bob"]


def test_a_closed_alarm_is_labelled_changed_undone_and_commented(browser, tmp_path):
    running, client, alarm = closed_alarm(tmp_path)
    reasons = client.get("status")["reasons"]
    try:
        with opened(browser, f"{running.url}#alarms={alarm}") as page:  # the link of a message
            page.locator("#alarm[open]").wait_for()
            page.locator("#alarm-state", has_text="closed").wait_for()
            assert page.locator("[data-action=shelve]").count() == 0
            page.fill("#who", "Bob")
            page.locator("#alarm-title").focus()
            page.keyboard.press("l")
            page.keyboard.press("1")  # one key for each reason
            page.locator("#labels li", has_text=f"Label: {reasons[0]} · by Bob").wait_for()
            page.locator("#reasons label", has_text=reasons[1]).click()
            page.locator("[data-action=label]", has_text="Change the label").click()
            page.locator("#labels li", has_text=f"Label: {reasons[1]} · by Bob").wait_for()
            assert "taken back by Bob" in page.locator("#labels li", has_text=reasons[0]).inner_text()
            page.click("#labels button")  # the one that holds
            page.locator("#labels li button").wait_for(state="detached")
            page.fill("#comment", "the valve was exchanged")
            page.click("[data-action=comment]")
            page.locator("#history li", has_text="the valve was exchanged").wait_for()
            page.keyboard.press("Escape")
            page.wait_for_function("() => location.hash === '#alarms'")
            page.locator("#no-alarms", has_text="There are no open alarms.").wait_for()
            page.select_option("#show", "all")
            page.locator("#alarm-rows tr", has_text="closed").wait_for()
            page.fill("#words", "no such text")
            page.locator("#no-alarms", has_text="No alarm fits this filter, which hides 1.").wait_for()
        assert [each["withdrawn_by"] for each in client.get("labels")] == ["Bob", "Bob"]
        assert client.get("audit")[0]["action"] == "comment"
        assert client.get(f"alarms/{alarm}")["comment"] == "the valve was exchanged"
        assert not client.get(f"alarms/{alarm}")["open"]
    finally:
        running.__exit__(None, None, None)


def test_acknowledging_takes_two_keys(browser, tmp_path):
    with LiveServer(options(tmp_path)) as running:
        Client(running.url).samples(csv_of(ROWS[600:800]))
        reasons = Client(running.url).get("status")["reasons"]
        with opened(browser, running.url) as page:
            page.evaluate("localStorage.setItem('who', 'Ada')")
            page.reload()
            page.locator("#alarm-rows tr").first.wait_for()
            page.locator("#main").focus()
            page.keyboard.press("a")
            page.locator("#work-problem", has_text="Why?").wait_for()
            page.keyboard.press("3")
            page.locator("#history li", has_text=f"acknowledged · by Ada · {reasons[2]}").wait_for()


def test_one_clock_and_what_is_wrong_comes_first(browser, tmp_path):
    """All pages show times in the zone of the data; rows without a score and problems are at the top of the first."""
    given = options(tmp_path)
    given = replace(given, assets={"unit1": replace(given.assets["unit1"], timezone="Europe/Berlin")})
    with LiveServer(given) as running:
        client = Client(running.url)
        client.samples(csv_of(ROWS[600:800]))
        client.samples(csv_of(ROWS[800:803].assign(flow=None, head=None, power=None, oil=None)))
        alarm = client.get("alarms")[0]["id"]
        assert client.command(f"alarms/{alarm}/acknowledge", name="Ada", reason="looked at")[0] == 200
        running.service.enter_problem("mqtt of unit1", "no broker")
        with opened(browser, running.url) as page:
            page.locator("#problems p", has_text="unit1: 3 of the last 203 rows have no score").wait_for()
            page.locator("#problems p", has_text="mqtt of unit1: no broker").wait_for()
            assert page.locator("#zone").inner_text() == "Times in Europe/Berlin"
            page.locator("#alarm-rows tr", has_text="1 Jan 2026, 00:11:4").first.wait_for()
            page.keyboard.press("2")
            page.locator(".asset", has_text="does not fit (1 alarm), last row").wait_for()
            page.locator("#asset-state", has_text="the last of 1 Jan 2026, 00:13:22").wait_for()
            page.keyboard.press("4")
            page.locator("#audit tr", has_text="1 Jan 2026, 00:1").first.wait_for()


def test_the_state_of_an_asset_is_one_sentence(browser, tmp_path):
    with LiveServer(options(tmp_path, names=("unit1", "unit2"))) as running:
        Client(running.url).samples(csv_of(ROWS[600:650]))
        with opened(browser, f"{running.url}#assets") as page:
            page.set_viewport_size({"width": 2560, "height": 1440})  # a control room
            words = page.locator(".asset", has_text="unit1").inner_text
            page.locator(".asset", has_text="✓ fits, last row").wait_for()
            day = datetime.now(UTC)
            assert words().splitlines()[1].endswith(f", model v1 of {day.day} {day:%b}")
            assert "no rows yet" in page.locator(".asset", has_text="unit2").inner_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= 2560
            assert page.evaluate("getComputedStyle(document.body).fontSize") == "20px"


def test_a_phone_works_an_alarm(browser, tmp_path):
    with LiveServer(options(tmp_path)) as running:
        Client(running.url).samples(csv_of(ROWS[600:800]))
        with opened(browser, running.url) as page:
            page.set_viewport_size({"width": 360, "height": 740})
            page.locator("#alarm-rows tr button").first.click()
            page.locator("#alarm-chart canvas").first.wait_for()
            assert page.locator("#alarm").evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth")
            page.fill("#who", "Ada")
            page.locator("#reasons label").first.click()
            page.click("[data-action=acknowledge]")
            page.locator("#labels li", has_text="by Ada").wait_for()
            small = "[...document.querySelectorAll('#work button, #reasons label')].filter((e) => e.offsetHeight < 36)"
            assert page.evaluate(f"{small}.length") == 0  # a finger finds them


def test_an_engineer_switches_the_model_on_the_page(browser, tmp_path):
    with LiveServer(options(tmp_path)) as running:
        client = Client(running.url)
        client.samples(csv_of(ROWS[600:700]))
        fit_model(ROWS[:600], time="time", columns=["oil", "head"]).save(tmp_path / "few.penstock")
        store = Store(tmp_path / "live.db", exclusive=False)  # as another process opens it
        add_file(store, "unit1", tmp_path / "few.penstock", "few.penstock", "Ada", "<b>fewer</b> columns")
        assert add_file(store, "unit1", model(), "again", "Ada") == 1, "the same file is the same version"
        store.close()
        with opened(browser, f"{running.url}#assets=unit1") as page:
            page.locator("#models tr", has_text="● 1").wait_for()
            page.locator("#models tr", has_text="<b>fewer</b> columns").wait_for()
            page.click("[data-version='2']")
            page.locator("#model-problem", has_text="without flow, power").wait_for()
            page.click("[data-meant]")
            page.locator("#models tr", has_text="● 2").wait_for()
            page.locator("#asset-state", has_text="model v2").wait_for()
            page.goto(f"{running.url}#service")
            page.locator("#audit tr", has_text="use model").first.wait_for()
        client.samples(csv_of(ROWS[700:800]))
        assert client.get("assets")[0]["model"] == 2


def test_an_engineer_silences_and_has_a_file_read_anew_on_the_page(browser, tmp_path):
    file = tmp_path / "unit1.csv"
    file.write_text(csv_of(ROWS[600:700]))
    given = options(tmp_path, input=file, names=("unit1",))
    with LiveServer(given) as running, opened(browser, f"{running.url}#service") as page:
        client = Client(running.url)
        page.fill("#silence-pattern", "unit*")
        page.fill("#silence-reason", "<b>works</b>")
        page.click("#silence button")
        page.locator("#silences tr", has_text="<b>works</b>").wait_for()
        page.click("#silences button")
        page.locator("#silences tr").wait_for(state="detached")
        wait_for(lambda: client.get("assets")[0]["row"] == 100)
        (tmp_path / "new").write_text(csv_of(ROWS[700:750]).replace(",", ";"))
        (tmp_path / "new").replace(file)
        page.locator("#problems p", has_text="read anew").wait_for()
        page.evaluate("location.hash = 'assets=unit1'")
        page.click("#file-anew button")
        wait_for(lambda: client.get("assets")[0]["row"] == 150)
        page.locator("#problems p").wait_for(state="detached")


def test_what_is_known_as_normal_is_listed_as_such(browser, tmp_path):
    table = rows(n=1300, fault=[*range(700, 750), *range(1000, 1050)])
    with LiveServer(options(tmp_path)) as running:
        client = Client(running.url)
        client.samples(csv_of(table[600:900]))
        first = client.get("alarms")[0]["id"]
        assert (
            client.command(f"alarms/{first}/acknowledge", reason="rare but normal", comment="oil test", name="Ada")[0]
            == 200
        )
        client.samples(csv_of(table[900:1045]))
        with opened(browser, running.url) as page:
            page.locator("#no-alarms", has_text="rare but normal").wait_for()
            page.select_option("#show", "open")
            page.locator("#alarm-rows tr", has_text="◇ rare but normal, active").click()
            page.locator("#alarm-words", has_text="like what was rare but normal on").wait_for()
            page.locator("#alarm-words", has_text="oil test").wait_for()
            page.locator("#alarm-state", has_text="scored by version 1").wait_for()
