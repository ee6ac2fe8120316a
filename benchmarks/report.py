"""Measure the HTML report in chromium: its size, first paint, layout shift, and the script's time per frame.

    .venv/bin/python benchmarks/report.py [--long] [--keep FOLDER] [--axe FILE]

Tables: the simulated hydropower plant continued to 10,000 rows of 222 columns, and with --long one of 1,000,000 rows of
20 sensors. Limits: 1.5 MB and 6 MB, first paint below 1 s, less than 20 ms of script in a frame while zooming and
pointing with eight sensors shown, and no layout shift. --axe names a copy of axe.min.js (of the npm package axe-core,
which is not part of this repository) that checks the page for accessibility. Times by the clock are too long on a
loaded machine; the CPU time of the scripts is not.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd

import penstock
from penstock.report import write_html
from penstock.simulate import simulate_hydropower

BEFORE = """
  window.frames_ms = []; window.shift = 0;
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (act) => request((now) => {
    const start = performance.now(), last = window.frames_ms[window.frames_ms.length - 1];
    act(now);
    const spent = performance.now() - start;
    if (last && last[0] === now) last[1] += spent; else window.frames_ms.push([now, spent]); });
  new PerformanceObserver((list) => { for (const each of list.getEntries()) window.shift += each.value; })
    .observe({ type: "layout-shift", buffered: true });
"""
ACT = """async (kind) => {
  const chart = document.querySelector("#timeline"), box = chart.getBoundingClientRect(), sent = [];
  const frame = () => new Promise(requestAnimationFrame), began = performance.now();
  const act = {
    zoom: (i) => new WheelEvent("wheel", { clientX: box.left + box.width * 0.45, clientY: box.top + 60, bubbles: true,
      ctrlKey: true, cancelable: true, deltaY: i < 40 ? -120 : 120 }),
    hover: (i) => new PointerEvent("pointermove", { clientX: box.left + box.width * (0.1 + i / 100),
      clientY: box.top + 60, bubbles: true }),
  }[kind];
  await frame();
  frames_ms.length = 0;
  for (let i = 0; i < 80; i++) {
    const start = performance.now();
    chart.dispatchEvent(act(i));
    sent.push(performance.now() - start);
    await frame();
  }
  const ms = frames_ms.map(([, spent], i) => spent + (sent[i] || 0));
  return { ms, per_second: 80000 / (performance.now() - began) };
}"""
AXE = """() => axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }).then((result) =>
  result.violations.map((each) => [each.id, each.impact, each.nodes.length, each.nodes[0].html.slice(0, 120)]))"""


def make_tables(long: bool) -> Iterator[tuple[str, pd.DataFrame, float]]:
    """Yield a name, a table and the most megabytes of its page."""
    plant = simulate_hydropower(0).table
    more = plant.iloc[: 10_000 - len(plant)]
    more = more.set_index(plant.index[-1] + pd.to_timedelta(np.arange(1, len(more) + 1) * 10, "min"))
    yield "10,000 × 222", pd.concat([plant, more]).rename_axis("time").reset_index(), 1.5
    if long:
        rng = np.random.default_rng(0)
        n = 1_000_000
        load = np.sin(np.arange(n) / 5000)[:, None] + 0.3 * np.sin(np.arange(n) / 777)[:, None]
        values = 50 + load @ rng.normal(scale=5, size=(1, 20)) + rng.normal(scale=0.3, size=(n, 20))
        for start in range(50_000, n, 90_000):
            values[start : start + 200, rng.integers(20)] += 8
        table = pd.DataFrame(values.round(2)).add_prefix("sensor_")
        table.insert(0, "time", pd.date_range("2024-01-01", periods=n, freq="10s"))
        yield "1,000,000 × 20", table, 6.0


def script_seconds(metrics: Any) -> float:
    """Return the CPU time that the page's scripts have used."""
    found = metrics.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in found if each["name"] == "ScriptDuration")


def measure(path: Path, axe: Path | None) -> dict[str, Any]:
    """Open a page in chromium and return its figures."""
    from playwright.sync_api import sync_playwright

    arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=axe is not None)
        page = context.new_page()
        page.add_init_script(BEFORE)
        page.goto(path.as_uri())
        page.wait_for_timeout(500)
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        shift = page.evaluate("shift")
        names = page.evaluate("JSON.parse(data.textContent).explorer.order.slice(0, 8)")
        sensors = page.evaluate(
            "(some) => some.map((i) => JSON.parse(data.textContent).explorer.sensors[i].name)", names
        )
        page.evaluate("(names) => { location.hash = '#sensors=' + names.map(encodeURIComponent).join(','); }", sensors)
        page.wait_for_timeout(300)
        found: dict[str, Any] = {"paint": paint, "shift": shift}
        metrics = context.new_cdp_session(page)
        metrics.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time of the page's thread
        for act in ("zoom", "hover"):
            before = script_seconds(metrics)
            found[act] = page.evaluate(ACT, act)
            found[act]["cpu"] = 1000 * (script_seconds(metrics) - before) / len(found[act]["ms"])
        if axe is not None:
            page.add_script_tag(content=axe.read_text(encoding="utf-8"))
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            found["axe"] = page.evaluate(AXE)
        browser.close()
    return found


def main() -> None:
    """Print a line per table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="also 1,000,000 rows of 20 sensors, which takes minutes")
    parser.add_argument("--keep", type=Path, help="a folder for the pages")
    parser.add_argument("--axe", type=Path, help="axe.min.js of the npm package axe-core")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name, table, limit in make_tables(given.long):
            findings = penstock.detect(table)
            path = folder / f"{len(table)}.html"
            began, cpu = perf_counter(), process_time()
            write_html(findings, path.resolve(), overwrite=True)
            wall, cpu = perf_counter() - began, process_time() - cpu
            size = path.stat().st_size / 1e6
            found = measure(path.resolve(), given.axe)
            print(f"{name}: {size:.2f} MB (at most {limit}), written in {cpu:.1f} s of CPU ({wall:.1f} s)")
            print(f"    first paint {found['paint']:.0f} ms, layout shift {found['shift']:g}")
            for act in ("zoom", "hover"):
                spent = np.array(found[act]["ms"])
                print(
                    f"    {act}: {found[act]['cpu']:.1f} ms of CPU in scripts per frame; by the clock median "
                    f"{np.median(spent):.1f} ms, 95 % below {np.quantile(spent, 0.95):.1f}, most {spent.max():.1f}; "
                    f"{found[act]['per_second']:.0f} frames/s"
                )
            for violation in found.get("axe", []):
                print("    axe:", *violation)


if __name__ == "__main__":
    main()
