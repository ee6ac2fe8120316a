"""The report in a real browser: it draws, answers, stays closed to the outside, and fits a phone."""

from __future__ import annotations

import re

import pytest
from browser_pages import opened_page
from report_tables import ALL, plant_findings, series_findings

from penstock.report import write_html

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, findings in ALL.items():
        write_html(findings(), folder / f"{name}.html")
    return folder


def opened(browser, path, fragment="", **options):
    own = path.as_uri()
    return opened_page(browser, own + fragment, lambda url: url.split("#")[0] == own, **options)


def view_of(page):
    return page.evaluate("[...'ft'].map((k) => Number(timeline.dataset[k === 'f' ? 'from' : 'to']))")


FEW = ["plant", "hostile", "views", "series", "hostile series"]
SOME = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL if name not in FEW)]


def opened_number(page):
    """The incident that is open: its article is the only one to be seen."""
    (number,) = page.evaluate("[...document.querySelectorAll('article.case:not([hidden])')].map((a) => a.dataset.case)")
    return int(number)


def painted(page, selector):
    """How many pixels of a canvas are not empty."""
    return page.evaluate(
        """(selector) => { const c = document.querySelector(selector);
          const all = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
          return all.filter((value, i) => i % 4 === 3 && value).length; }""",
        selector,
    )


@pytest.mark.parametrize("name", SOME)
def test_it_draws_without_a_word_of_trouble(browser, files, name):
    with opened(browser, files / f"{name}.html") as page:
        assert painted(page, "#timeline canvas") > 1000
        assert painted(page, "#explorer-charts canvas") > 500
        for link in page.locator("#case-table a").all()[:3]:
            link.click()
        for summary in page.locator("#data-section > details > summary").all():
            summary.click()
            assert summary.locator("xpath=..").inner_text().strip() != summary.inner_text().strip()


def test_the_first_screen_has_the_verdict_the_incidents_and_the_plant(browser, files):
    with opened(browser, files / "series.html") as page:
        assert page.locator(".verdict").inner_text() == series_findings().verdict.sentence
        for part in (".verdict", "#case-table tbody tr >> nth=2", "#timeline"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] < 900, part


@pytest.mark.parametrize("name", ["plant", "rows", "series"])
def test_opening_an_incident_shows_its_charts_and_all_values_at_a_time(browser, files, name):
    word, number = ("incident", 2) if name == "series" else ("event", 1)
    with opened(browser, files / f"{name}.html", reduced_motion="reduce") as page:
        page.locator(f'#case-table a[href="#{word}={number}"]').press("Enter")
        assert opened_number(page) == number
        assert f"#{word}={number}" in page.evaluate("location.hash")
        article = page.locator(f'[id="{word}={number}"]')
        assert page.evaluate("document.activeElement.tagName") == "H3"
        charts = article.locator("li.sensor .plot")
        assert charts.count() >= 2
        before = article.locator(".reading").all_inner_texts()
        charts.first.hover()
        page.wait_for_function("() => document.querySelector('article:not([hidden]) .cursor-time').textContent")
        after = article.locator(".reading").all_inner_texts()
        assert all("·" in text for text in after[: charts.count()])
        page.mouse.move(2, 2)
        page.wait_for_function("() => !document.querySelector('article:not([hidden]) .cursor-time').textContent")
        assert article.locator(".reading").all_inner_texts() == before
        article.locator("button[data-step='1']").click()
        assert opened_number(page) != number


def test_a_band_opens_its_incident_and_tells_what_it_is(browser, files):
    with opened(browser, files / "plant.html", reduced_motion="reduce") as page:
        place = page.evaluate("JSON.parse(data.textContent).overview.cases.find((c) => c[0] === 3)[1]")
        low, high = view_of(page)
        box = page.locator("#timeline").bounding_box()
        x = box["x"] + 84 + (place - low) / (high - low) * (box["width"] - 94)
        page.mouse.move(x, box["y"] + 80)
        text = page.locator("#tip").inner_text()
        assert "May 2024" in text
        assert "score" in text
        assert "event 3: click to open it" in text
        page.mouse.click(x, box["y"] + 80)
        assert opened_number(page) == 3


def test_zoom_by_drag_wheel_buttons_and_keys_and_back(browser, files):
    with opened(browser, files / "plant.html") as page:
        whole, box = view_of(page), page.locator("#timeline").bounding_box()
        left, wide = box["x"] + 84, box["width"] - 94
        page.mouse.move(left + wide * 0.3, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(left + wide * 0.6, box["y"] + 60, steps=4)
        page.mouse.up()
        page.wait_for_function("([a, b]) => timeline.dataset.to - timeline.dataset.from < (b - a) * 0.9", arg=whole)
        dragged = view_of(page)
        assert (dragged[1] - dragged[0]) / (whole[1] - whole[0]) == pytest.approx(0.3, abs=0.02)
        assert page.evaluate("document.querySelector('#explorer-charts .plot').dataset.from == timeline.dataset.from")
        assert page.locator(".month .framed").count() > 0
        page.wait_for_function("() => location.hash.includes('from=2024-05-02T')")
        page.keyboard.down("Control")
        page.mouse.wheel(0, -120)
        page.wait_for_function("([a, b]) => timeline.dataset.to - timeline.dataset.from < (b - a) * 0.9", arg=dragged)
        page.keyboard.up("Control")
        reset = page.locator("#plant [data-zoom=all]")
        reset.click()
        page.wait_for_function("([a, b]) => timeline.dataset.from == a && timeline.dataset.to == b", arg=whole)
        assert reset.is_disabled()
        assert page.locator(".month .framed").count() == 0
        page.locator("#timeline").press("+")
        page.wait_for_function("([a, b]) => timeline.dataset.to - timeline.dataset.from < (b - a) * 0.9", arg=whole)
        zoomed = view_of(page)
        page.locator("#timeline").press("ArrowRight")
        page.wait_for_function("(a) => Number(timeline.dataset.from) > a", arg=zoomed[0])
        page.locator("#timeline").press("0")
        page.wait_for_function("([a, b]) => timeline.dataset.from == a && timeline.dataset.to == b", arg=whole)


def test_the_wheel_alone_scrolls_the_page_and_does_not_zoom(browser, files):
    with opened(browser, files / "plant.html") as page:
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
        page.wait_for_function("([a, b]) => timeline.dataset.to - timeline.dataset.from < 0.5 * (b - a)", arg=whole)


def test_filters_leave_the_incidents_that_are_asked_for(browser, files):
    shown = "[...document.querySelectorAll('#case-table tbody tr:not([hidden])')].map((r) => Number(r.dataset.case))"
    with opened(browser, files / "plant.html") as page:
        everything = page.evaluate(shown)
        page.locator("#filters [name=day]").fill("2024-05-03")
        assert page.evaluate(shown) == [2]
        assert page.locator("#filtered").inner_text() == "1 of 3"
        page.locator("#filters button").click()
        assert page.evaluate(shown) == everything
        page.locator("#filters [name=sensor]").fill("no such")
        assert page.evaluate(shown) == []
    with opened(browser, files / "series.html") as page:
        page.locator("#filters [name=sure]").select_option("others")
        assert page.evaluate(shown) == []


def names_of(page):
    return page.locator("#chosen .name").all_inner_texts()


def test_sensors_are_found_added_laid_out_and_removed_by_keyboard(browser, files):
    with opened(browser, files / "plant.html") as page:
        before = names_of(page)
        for chosen in page.locator("#chosen button").all()[::-1]:
            chosen.press("Enter")
        assert names_of(page) == []
        search = page.locator("#sensor-search")
        search.fill("lo")
        assert page.locator("#sensor-list li").all_inner_texts() == ["flow [m³/s]", "load [MW]"]
        search.press("ArrowDown")
        search.press("Enter")
        search.fill("bear")
        search.press("Enter")
        assert names_of(page) == ["load [MW]", "bearing [°C]"]
        assert len(before) == 3
        assert page.locator("#explorer-charts .strip").count() == 3  # with the score
        page.locator("input[name=layout][value=overlay]").check()
        assert page.locator("#explorer-charts .strip").count() == 2
        assert "each in % of its own range" in page.locator("#explorer-charts").inner_text()
        assert "sensors=load%20%5BMW%5D,bearing" in page.evaluate("location.hash")
        assert "layout=overlay" in page.evaluate("location.hash")


def test_a_link_restores_the_view(browser, files):
    asked = "#event=3&sensors=oil%20%5B%C2%B0C%5D,load%20%5BMW%5D,unknown&layout=overlay"
    asked += "&from=2024-05-02T00:00:00&to=2024-05-02T12:00:00"
    with opened(browser, files / "plant.html", fragment=asked) as page:
        assert opened_number(page) == 3
        assert names_of(page) == ["oil [°C]", "load [MW]"]
        assert page.locator("input[name=layout][value=overlay]").is_checked()
        day = 86_400_000
        assert view_of(page) == [pytest.approx(day, abs=1000), pytest.approx(1.5 * day, abs=1000)]
        kept = page.evaluate("location.hash")
    with opened(browser, files / "plant.html", fragment=kept) as page:
        assert page.evaluate("location.hash") == kept
        assert names_of(page) == ["oil [°C]", "load [MW]"]


@pytest.mark.parametrize("fragment", ["#event=99&sensors=&from=x&to=y", "#%E0%A4%A", "#event=<script>", "#summary"])
def test_an_odd_link_does_no_harm(browser, files, fragment):
    with opened(browser, files / "plant.html", fragment=fragment) as page:
        assert opened_number(page) == plant_findings().events["rank"].idxmin()


def test_what_is_in_view_is_copied_as_csv_and_as_a_picture(browser, files):
    allowed = ["clipboard-read", "clipboard-write"]
    with opened(browser, files / "hostile.html", permissions=allowed) as page:
        page.locator("#sensor-search").fill("=cmd")
        page.locator("#sensor-search").press("Enter")
        page.locator("#copy-csv").click()
        page.wait_for_function("() => copied.textContent")
        lines = page.evaluate("navigator.clipboard.readText()").replace("\r\n", "\n").splitlines()
        assert len(lines) == 241
        assert lines[0].startswith("time,score,")
        assert ",'=cmd()" in lines[0]  # no formula
        assert lines[1].startswith("2024-03-30T20:00:00,")
        page.locator("#copy-picture").click()
        page.wait_for_function("() => copied.textContent.includes('picture')")
        kinds = page.evaluate("navigator.clipboard.read().then((items) => items[0].types)")
        assert kinds == ["image/png"]


def test_without_a_clipboard_it_is_saved_as_a_file(browser, files, tmp_path):
    with opened(browser, files / "plant.html") as page:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        with page.expect_download() as waiting:
            page.locator("#copy-csv").click()
        waiting.value.save_as(tmp_path / "copied.csv")
        assert len((tmp_path / "copied.csv").read_text(encoding="utf-8").splitlines()) == 561
        assert page.locator("#copied").inner_text() == "Saved as penstock.csv."


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if "series" in name else pytest.mark.slow) for name in ALL]
)
def test_a_phone_needs_no_sideways_scrolling(browser, files, name):
    with opened(browser, files / f"{name}.html", width=375, height=700) as page:
        for link in page.locator("#case-table a").all()[:4]:
            link.click()
        for summary in page.locator("details:visible > summary").all():
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_phone_shows_a_chart_with_each_incident(browser, files):
    with opened(browser, files / "series.html", width=390, height=844) as page:
        page.wait_for_function("() => document.querySelectorAll('#case-table .spark canvas').length >= 2")
        assert painted(page, "#case-table .spark canvas") > 300


@pytest.mark.parametrize("name", ["hostile", "hostile series"])
def test_hostile_names_are_shown_and_do_nothing(browser, files, name):
    with opened(browser, files / f"{name}.html") as page:
        for link in page.locator("#case-table a").all()[:4]:
            link.click()
        heat = page.locator("article:not([hidden]) .heat-map")
        heat.hover(position={"x": 40, "y": 10})
        assert page.locator("#tip").is_visible()
        page.locator("#sensor-search").fill("script")
        assert page.locator("#sensor-list li").count() >= 1
        assert page.locator("main img, main script, main iframe, main u, .tip img").count() == 0
        assert page.evaluate("[...document.querySelectorAll('*')].some((e) => e.hasAttribute('onmouseover'))") is False
        assert page.title() == "Findings in the table"
        assert page.get_by_text("<script>alert(1)</script>").count() > 3


def test_days_lead_to_incidents_and_zoom(browser, files):
    with opened(browser, files / "plant.html", reduced_motion="reduce") as page:
        day = page.locator(".month a").nth(1)
        day.hover()
        assert "findings, event 2" in page.locator("#tip").inner_text()
        day.click()
        assert opened_number(page) == 2
        page.wait_for_function("() => document.querySelectorAll('.month .framed').length === 1")


def test_cells_tell_what_they_are(browser, files):
    with opened(browser, files / "plant.html") as page:
        page.locator("article:not([hidden]) .heat-map").hover(position={"x": 700, "y": 10})
        assert "from rebuilt" in page.locator("#tip").inner_text()
        assert "of the sensor’s range" in page.locator("article:not([hidden]) .heat-key").inner_text()
    with opened(browser, files / "series.html") as page:
        page.locator("article:not([hidden]) .heat-map").hover(position={"x": 700, "y": 10})
        assert "× the usual limit" in page.locator("#tip").inner_text()


def pages_of(pdf):
    return len(re.findall(rb"/Type */Page\b(?!s)", pdf))


def test_paper_has_two_pages_and_one_for_each_incident(browser, files):
    with opened(browser, files / "series.html", color_scheme="dark") as page:
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark, light) == ("rgb(20, 24, 28)", "rgb(255, 255, 255)")
        assert page.locator("article.case:visible").count() == 3
        for number in (1, 2, 3):
            assert painted(page, f'[id="incident={number}"] canvas') > 300
        assert page.locator("canvas + canvas:visible").count() == 0  # cleared for the cursor, it erases charts of a PDF
        assert pages_of(page.pdf(format="A4")) == 2 + 3


def test_without_its_script_the_tables_are_open(browser, files):
    with opened(browser, files / "plant.html", java_script_enabled=False) as page:
        assert page.locator('[id="event=2"] .lead').is_visible()
        assert page.locator('[id="event=2"] .rule').is_visible()
        assert page.locator("#case-table tbody tr").count() == 3
        assert not page.locator("#explore").is_visible()


SHIFTS = """new Promise((done) => new PerformanceObserver((list) => done(
  list.getEntries().reduce((sum, entry) => sum + entry.value, 0))).observe({ type: "layout-shift", buffered: true }))"""


@pytest.mark.parametrize("name", ["plant", "series"])
def test_nothing_moves_while_the_page_is_built(browser, files, name):
    with opened(browser, files / f"{name}.html") as page:
        shift = page.evaluate(f"Promise.race([{SHIFTS}, new Promise((done) => setTimeout(() => done(0), 300))])")
        assert shift == 0


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => { const c = v / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => { for (let at = e; at; at = at.parentElement) {
    const c = parse(getComputedStyle(at).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("script, style, [disabled], .sr")) continue;
    const style = getComputedStyle(e), a = light(parse(style.color).slice(0, 3)), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([e.tagName, e.className, ratio.toFixed(2), e.textContent.slice(0, 30)]);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["plant", "series"])
def test_words_have_enough_contrast(browser, files, name, scheme):
    with opened(browser, files / f"{name}.html", color_scheme=scheme) as page:
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.evaluate(CONTRAST) == []


def test_every_control_has_a_name_and_is_reached_by_the_tab_key(browser, files):
    with opened(browser, files / "series.html") as page:
        nameless = """() => [...document.querySelectorAll("a, button, input, select, [tabindex='0'], [role]")]
          .filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") ||
            e.textContent.trim() || (e.labels && e.labels.length) || e.getAttribute("role") === "status" ||
            e.getAttribute("role") === "option"))
          .map((e) => e.outerHTML.slice(0, 80))"""
        assert page.evaluate(nameless) == []
        wanted = page.evaluate(
            """() => { let n = 0;
              for (const e of document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']"))
              if (e.checkVisibility() && !e.disabled && !(e.type === "radio" && !e.checked)) e.dataset.wanted = n++;
              return n; }"""
        )
        for _ in range(3 * wanted + 20):
            page.keyboard.press("Tab")
            page.evaluate("delete document.activeElement.dataset.wanted")
            if not page.evaluate("document.querySelectorAll('[data-wanted]').length"):
                break
        assert (
            page.evaluate("[...document.querySelectorAll('[data-wanted]')].map((e) => e.outerHTML.slice(0, 90))") == []
        )
