"""The chart modules by themselves, in a browser: no peak is lost, charts move together, times and ticks are right."""

from __future__ import annotations

from importlib import resources

import pytest

pytestmark = pytest.mark.browser
MODULES = ("format.js", "view.js", "chart.js", "heatmap.js")
BOXES = "<style>div { width: 600px }</style><div id=tip></div><div id=upper></div><div id=lower></div>"
RECORDER = """
  const path = { moves: 0, points: [], moveTo(x, y) { this.moves++; this.points.push([x, y]); },
                 lineTo(x, y) { this.points.push([x, y]); } };
"""


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.set_content(BOXES)
    folder = resources.files("penstock.report") / "templates"
    page.add_script_tag(content="\n".join((folder / name).read_text(encoding="utf-8") for name in MODULES))
    yield page
    page.close()


def test_of_a_million_points_a_few_per_pixel_are_drawn_and_the_peak_is(page):
    count, highest, lowest = page.evaluate(
        f"""() => {{ {RECORDER}
          const n = 1e6, places = Float64Array.from({{ length: n }}, (_, i) => i), values = new Float32Array(n);
          values[777777] = 9; values[123456] = -5;
          traceLine(path, places, values, [], 0, n, (x) => x / n * 600, (y) => y);
          const ys = path.points.map((point) => point[1]);
          return [path.points.length, Math.max(...ys), Math.min(...ys)]; }}"""
    )
    assert count < 4 * 1202
    assert (highest, lowest) == (9, -5)


def test_lines_stop_at_gaps_and_missing_values(page):
    moves, points = page.evaluate(
        f"""() => {{ {RECORDER}
          const values = Float32Array.from([1, 2, NaN, 3, 4, 5]);
          traceLine(path, Float64Array.from([0, 1, 2, 3, 4, 5]), values, [4], 0, 6, (x) => 10 * x, (y) => y);
          return [path.moves, path.points.filter((point) => point[0] === 30).length]; }}"""
    )
    assert moves == 3
    assert points == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [("2024-05-01T00:30:00", 1_800_000), ("2024-05-02T00:30:00", 5_400_000), ("2024-05-01T12:00:00", 3_600_000)],
)
def test_a_clock_finds_times_back_across_a_gap_that_is_drawn_narrow(page, text, place):
    """One hour is recorded on each of two days; a time inside the gap is where the second begins."""
    clock = "new Clock({ origin: Date.UTC(2024, 4, 1), offsets: [[0, 0], [3600000, 82800000]] })"
    assert page.evaluate(f"{clock}.parse('{text}')") == place
    if place != 3_600_000:
        assert page.evaluate(f"{clock}.iso({place})") == text
    assert page.evaluate(f"Number.isNaN({clock}.parse('no time'))")


def test_ticks_are_round_and_name_each_day_once(page):
    ticks = page.evaluate("new Clock({ origin: Date.UTC(2024, 4, 1) }).ticks(0, 2 * 86400000, 8)")
    assert [tick["label"] for tick in ticks] == ["00:00", "06:00", "12:00", "18:00"] * 2 + ["00:00"]
    assert [tick["below"] for tick in ticks if tick["below"]] == ["1 May 2024", "2 May 2024", "3 May 2024"]
    assert page.evaluate("new Clock({}).ticks(0, 100, 5).map((tick) => tick.place)") == [0, 20, 40, 60, 80, 100]


def test_a_view_stays_inside_what_there_is_and_follows_new_data(page):
    ranges = page.evaluate(
        """() => { const view = new TimeView([0, 100], { least: 10 }), seen = [];
          for (const act of [() => view.show(-5, 20), () => view.show(50, 51), () => view.pan(9), () => view.zoom(4),
                             () => view.extend([0, 110]), () => view.reset(), () => view.extend([0, 120])]) {
            act(); seen.push(view.range);
          }
          return seen; }"""
    )
    assert ranges == [[0, 25], [45.5, 55.5], [90, 100], [60, 100], [70, 110], [0, 110], [0, 120]]


@pytest.fixture
def charts(page):
    page.evaluate(
        """() => { window.view = new TimeView([0, 1000]); window.chosen = null;
          const places = Float64Array.from({ length: 1001 }, (_, i) => i), values = new Float32Array(1001).fill(1);
          window.charts = [upper, lower].map((box) => new TimeChart(box, view, {
            clock: new Clock({}), label: box.id, top: 24, onBand: (band) => { chosen = band.key; },
          }));
          const series = [{ places, values, color: "#000000" }];
          charts[0].set({ series, bands: [{ from: 400, to: 420, label: "7", key: 7 }] });
          charts[1].set({ series, lanes: [{ name: "mode",
            bands: [{ from: 0, to: 500, label: "low", color: "#ff0000" }] }] }); }"""
    )
    yield page
    page.evaluate("charts.forEach((chart) => chart.remove())")


def test_charts_of_one_view_move_together(charts):
    box = charts.locator("#upper").bounding_box()
    left, right = charts.evaluate("[charts[0].frame.left, charts[0].frame.right]")
    for share, act in ((0.25, charts.mouse.down), (0.75, charts.mouse.up)):
        charts.mouse.move(box["x"] + left + share * (right - left), box["y"] + 60, steps=3)
        act()
    charts.wait_for_function("() => lower.dataset.to < 800")
    assert float(charts.locator("#lower").get_attribute("data-from")) == pytest.approx(250, abs=3)
    charts.locator("#lower").press("0")
    charts.wait_for_function("() => upper.dataset.to == 1000")
    charts.mouse.move(box["x"] + left + 0.5 * (right - left), box["y"] + 60)
    assert charts.evaluate("view.cursor") == pytest.approx(500, abs=2)


def test_a_band_is_chosen_by_a_click(charts):
    box = charts.locator("#upper").bounding_box()
    charts.mouse.click(box["x"] + charts.evaluate("charts[0].frame.toX(410)"), box["y"] + 60)
    assert charts.evaluate("chosen") == 7


def test_lanes_and_lines_are_painted_where_they_belong(charts):
    pixel = """([chart, x, y]) => { const c = charts[chart], s = c.frame.scale;
      return [...c.base.getContext("2d").getImageData(x * s, y * s, 1, 1).data]; }"""
    at = charts.evaluate("[charts[1].frame.toX(250), charts[1].laneTop(0) + 9]")
    assert charts.evaluate(pixel, [1, *at]) == [255, 0, 0, 255]
    on_line = charts.evaluate("[charts[0].frame.toX(800), charts[0].frame.toY(1)]")
    assert charts.evaluate(pixel, [0, *on_line])[3] > 100


def test_a_heat_map_has_the_colours_of_its_legend(charts):
    colors = charts.evaluate(
        """() => { const colors = { below: "#0000ff", "heat-middle": "#ffffff", above: "#ff0000", missing: "#888888" };
          for (const name in colors) document.documentElement.style.setProperty("--" + name, colors[name]);
          forgetColors();
          const box = document.getElementById("lower"), s = devicePixelRatio;
          const map = new HeatMap(box, view, { clock: new Clock({}), full: 6, show: String });
          const edges = Float64Array.from([0, 500, 1000]), cells = Int8Array.from([126, -63, -128, 0]);
          map.set({ names: ["a", "b"], edges, cells });
          const context = map.canvas.getContext("2d");
          const read = (x, y) => [...context.getImageData(x * s, y * s, 1, 1).data];
          const found = [read(200, 8), read(500, 8), read(200, 26), read(500, 26)];
          map.remove();
          return found; }"""
    )
    assert [color[:3] for color in colors] == [[255, 0, 0], [128, 128, 255], [136, 136, 136], [255, 255, 255]]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("head", "m"), ("head [m]", ""), ("head (m)", ""), ("head / m", ""), ("[m] head", "m"), ("head [mm]", "m")],
)
def test_a_unit_that_the_name_says_is_not_written_after_a_value(page, name, shown):
    assert page.evaluate("(name) => unitBeside({ name, unit: 'm' })", name) == shown
