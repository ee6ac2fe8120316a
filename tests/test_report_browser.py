"""The report in a real browser: it draws, answers, stays closed to the outside, and fits a phone."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest
from report_tables import (
    hostile_findings,
    hostile_series_findings,
    modes_findings,
    plant_findings,
    quiet_findings,
    rows_findings,
    series_findings,
    views_findings,
    views_modes_findings,
)

from penstock.report import write_html

pytestmark = pytest.mark.browser
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ALL = {
    "plant": plant_findings,
    "rows": rows_findings,
    "modes": modes_findings,
    "quiet": quiet_findings,
    "hostile": hostile_findings,
    "views": views_findings,
    "views in modes": views_modes_findings,
    "series": series_findings,
    "hostile series": hostile_series_findings,
}


def missing(reason):
    if os.environ.get("PENSTOCK_REQUIRE_BROWSER") == "1":
        pytest.fail(f"PENSTOCK_REQUIRE_BROWSER is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        missing("there is no chromium on the path")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("the package playwright is not installed")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, findings in ALL.items():
        write_html(findings(), folder / f"{name}.html")
    return folder


@contextmanager
def opened(browser, path, width=1280, height=900, **options):
    """A page; at its end: no error, message or dialog, nothing refused by the policy, nothing asked of a network."""
    troubles = []
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(300_000)  # milliseconds: a busy machine is not an error
    page = context.new_page()
    page.on("console", lambda message: troubles.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("request", lambda request: troubles.append(request.url) if request.url != path.as_uri() else None)
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.add_init_script(
        "window.refused = [];"
        "document.addEventListener('securitypolicyviolation', (event) => refused.push(event.violatedDirective))"
    )
    try:
        page.goto(path.as_uri())
        yield page
        assert page.evaluate("window.refused") == []
    except Exception as error:
        error.add_note(f"troubles of the page: {troubles}")
        raise
    finally:
        context.close()
    assert troubles == []


def view_of(page):
    return page.evaluate("[...'ft'].map((k) => Number(timeline.dataset[k === 'f' ? 'from' : 'to']))")


FEW = ["plant", "hostile", "views", "series", "hostile series"]
SOME = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL if name not in FEW)]


@pytest.mark.parametrize("name", SOME)
def test_it_draws_without_a_word_of_trouble(browser, files, name):
    with opened(browser, files / f"{name}.html") as page:
        assert len(page.locator("#timeline .line-score").get_attribute("d")) > 100
        for tree in page.locator(".plot.tree").all():
            assert len(tree.locator(".tree-line").get_attribute("d")) > 100
        for opener in page.locator(".opener").all()[:3]:
            opener.click()


@pytest.mark.parametrize("name", ["plant", "rows"])
def test_opening_an_event_shows_its_charts(browser, files, name):
    with opened(browser, files / f"{name}.html") as page:
        opener, why = page.locator("#event-2 .opener"), page.locator("#why-2")
        assert opener.get_attribute("aria-expanded") == "false"
        assert not why.is_visible()
        assert page.locator("#why-2 svg.chart").count() == 0  # drawn when they are seen
        opener.press("Enter")
        assert opener.get_attribute("aria-expanded") == "true"
        assert why.is_visible()
        charts = page.locator("#why-2 .small")
        assert charts.count() >= 3
        for curve in ("line-actual", "line-expected", "band-event", "dots-finding"):
            assert charts.first.locator(f"svg.chart > .{curve}").last.bounding_box()["width"] > 2, curve
        assert page.locator("#why-2 .small >> nth=0").get_by_text("°C", exact=True).count() == 1
        charts.first.locator(".plot").hover()
        assert "rebuilt" in page.locator("#tip").inner_text()
        assert "°C" in page.locator("#tip").inner_text()
        opener.press("Space")
        assert not why.is_visible()


def numbers(page):
    return page.evaluate("[...document.querySelectorAll('tbody.event')].map((body) => Number(body.id.slice(6)))")


def test_the_table_is_sorted(browser, files):
    with opened(browser, files / "plant.html") as page:
        assert numbers(page) == [1, 2, 3]
        rank = page.locator("#event-table thead button", has_text="Rank")
        rank.click()
        ranked = plant_findings().events.sort_values("rank").index.tolist()
        assert numbers(page) == ranked
        assert rank.locator("xpath=..").get_attribute("aria-sort") == "ascending"
        rank.press("Enter")
        assert numbers(page) == ranked[::-1]
        page.locator("#event-table thead button", has_text="Event").click()
        assert numbers(page) == [1, 2, 3]
        assert page.locator("#event-table thead [aria-sort]").count() == 1


def test_pointing_at_a_row_tells_time_score_and_event(browser, files):
    with opened(browser, files / "plant.html") as page:
        page.locator("#timeline").scroll_into_view_if_needed()
        at = page.locator("#timeline .band-event").nth(0).bounding_box()
        page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
        text = page.locator("#tip").inner_text()
        assert "May 2024" in text
        assert "score" in text
        assert "finding, event" in text
        page.mouse.move(5, 5)
        assert not page.locator("#tip").is_visible()


def test_zoom_by_drag_wheel_buttons_and_keys_and_back(browser, files):
    with opened(browser, files / "plant.html") as page:
        page.locator("#timeline").scroll_into_view_if_needed()
        whole, box = view_of(page), page.locator("#timeline").bounding_box()
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.3, y)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
        page.mouse.up()
        dragged = view_of(page)
        share = (dragged[1] - dragged[0]) / (whole[1] - whole[0])
        assert share == pytest.approx(0.3, abs=0.04)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -120)
        page.wait_for_function("([a, b]) => timeline.dataset.to - timeline.dataset.from < (b - a) * 0.9", arg=dragged)
        page.keyboard.up("Control")
        page.locator("#zoom-reset").click()
        assert view_of(page) == whole
        assert page.locator("#zoom-reset").is_disabled()
        page.locator("#timeline").press("+")
        zoomed = view_of(page)
        assert zoomed[1] - zoomed[0] < whole[1] - whole[0]
        page.locator("#timeline").press("ArrowRight")
        assert view_of(page)[0] > zoomed[0]
        page.locator("#timeline").press("0")
        assert view_of(page) == whole


def test_the_wheel_alone_scrolls_the_page_and_does_not_zoom(browser, files):
    with opened(browser, files / "plant.html") as page:
        page.locator("#timeline").scroll_into_view_if_needed()
        whole, before, box = view_of(page), page.evaluate("scrollY"), page.locator("#timeline").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.wheel(0, 120)
        page.wait_for_function("(before) => scrollY > before", arg=before)
        assert view_of(page) == whole


def test_pinching_zooms(browser, files):
    with opened(browser, files / "plant.html", width=390, height=844, has_touch=True) as page:
        page.locator("#timeline").scroll_into_view_if_needed()
        whole = view_of(page)
        page.evaluate(
            """() => {
              const box = timeline.getBoundingClientRect(), y = box.top + 100;
              const send = (type, id, share) => timeline.dispatchEvent(new PointerEvent(type, {
                pointerId: id, pointerType: "touch", clientX: box.left + box.width * share, clientY: y, bubbles: true,
              }));
              send("pointerdown", 1, 0.5); send("pointerdown", 2, 0.6);
              send("pointermove", 1, 0.3); send("pointermove", 2, 0.8);
              send("pointerup", 1, 0.3); send("pointerup", 2, 0.8);
            }"""
        )
        pinched = view_of(page)
        assert pinched[1] - pinched[0] < 0.4 * (whole[1] - whole[0])


@pytest.mark.parametrize("name", SOME)
def test_a_phone_needs_no_sideways_scrolling(browser, files, name):
    with opened(browser, files / f"{name}.html", width=375, height=700) as page:
        for opener in page.locator(".opener").all()[:4]:
            opener.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize("name", ["hostile", "hostile series"])
def test_hostile_names_are_shown_and_do_nothing(browser, files, name):
    with opened(browser, files / f"{name}.html") as page:
        for opener in page.locator(".opener").all():
            opener.click()
        page.locator("#heat canvas").hover(position={"x": 40, "y": 40})
        assert page.locator("#tip").is_visible()
        assert page.locator("main img, main script, main iframe, main u, .tip img").count() == 0
        assert page.evaluate("[...document.querySelectorAll('*')].some((e) => e.hasAttribute('onmouseover'))") is False
        assert page.title() == "Findings in the table"
        assert page.get_by_text("<script>alert(1)</script>").count() > 3


def test_incidents_are_on_the_first_screen_and_lead_to_their_events(browser, files):
    with opened(browser, files / "series.html", reduced_motion="reduce") as page:
        assert page.locator("#summary .verdict").inner_text() == series_findings().verdict.sentence
        first = page.locator("#incident-table tbody tr").first
        box = first.bounding_box()
        assert box["y"] + box["height"] < 900
        assert not page.locator("#why-2").is_visible()
        first.locator("a").click()
        assert page.locator("#why-2").is_visible()
        assert page.locator("#why-2 table.sensors tbody tr").count() == 5
        assert page.locator("#why-2 svg.chart").count() >= 3


def test_days_and_marks_lead_to_events(browser, files):
    with opened(browser, files / "plant.html", reduced_motion="reduce") as page:
        day = page.locator(".month a").nth(1)
        day.hover()
        assert "findings, event 2" in page.locator("#tip").inner_text()
        day.click()
        assert page.locator("#why-2").is_visible()
        page.locator("#timeline a[data-event='3']").click()
        assert page.locator("#why-3").is_visible()


def test_trees_and_cells_tell_what_they_are(browser, files):
    with opened(browser, files / "plant.html") as page:
        page.locator(".plot.tree").scroll_into_view_if_needed()
        at = page.locator(".tree-finding").first.bounding_box()
        page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
        assert "finding, event" in page.locator("#tip").inner_text()
        page.locator("#heat canvas").hover(position={"x": 60, "y": 30})
        assert "from rebuilt" in page.locator("#tip").inner_text()


def test_a_cell_without_an_expected_value_has_a_reading(browser, files):
    with opened(browser, files / "views.html") as page:
        page.locator("#heat canvas").hover(position={"x": 2, "y": 30})  # before the first event
        assert "no expected value here" in page.locator("#tip").inner_text()
        assert "below expected" in page.locator("#heat-key").inner_text()


def test_the_mark_of_an_event_is_above_its_start(browser, files):
    with opened(browser, files / "plant.html") as page:
        marks, bands = page.locator("#timeline .mark-event"), page.locator("#timeline .band-event")
        for place in range(3):
            mark, band = marks.nth(place).bounding_box(), bands.nth(place).bounding_box()
            assert abs(mark["x"] + mark["width"] / 2 - band["x"]) < 2
        assert bands.nth(0).bounding_box()["width"] > 2


def test_paper_has_the_most_severe_events_open_and_no_dark_ground(browser, files):
    with opened(browser, files / "plant.html", color_scheme="dark") as page:
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#why-2").is_visible()
        assert page.locator("#why-2 svg.chart").count() >= 3
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark, light) == ("rgb(20, 24, 28)", "rgb(255, 255, 255)")
        assert len(page.pdf(format="A4")) > 20_000


def test_without_its_script_the_tables_are_open(browser, files):
    with opened(browser, files / "plant.html", java_script_enabled=False) as page:
        assert page.locator("#why-2 table.variables").is_visible()
        assert page.locator("#why-2 .rule").is_visible()


@pytest.mark.parametrize("name", ["views", "views in modes"])
def test_scores_below_0_are_inside_the_picture(browser, files, name):
    findings = ALL[name]()
    with opened(browser, files / f"{name}.html") as page:
        inside = page.evaluate(
            """() => {
              const base = document.querySelector("#timeline path.base").getBoundingClientRect();
              const line = document.querySelector("#timeline path.line-score").getBoundingClientRect();
              const limit = document.querySelector("#timeline path.line-threshold").getBoundingClientRect();
              const ticks = [...document.querySelectorAll("#timeline text.tick")];
              const zero = ticks.find((tick) => tick.textContent === "0").getBoundingClientRect();
              return [line.bottom <= base.bottom, limit.bottom < base.bottom, zero.bottom < base.top];
            }"""
        )
        assert inside == [True, True, True]
        assert findings.scores[findings.judged].min() < 0
