"""Make the pictures of the report, of the live page and of `penstock open` in docs/images, in chromium.

    .venv/bin/python tools/screenshots.py [FOLDER]

Needs chromium and playwright, as the browser tests do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

import penstock
from penstock.live.options import AlarmRules, AssetOptions, ServeOptions
from penstock.live.web import LiveServer
from penstock.project import Project
from penstock.project.web import ProjectServer
from penstock.simulate import simulate_hydropower, write_plant

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
GOOD_UNTIL = "2015-09-12"


def main() -> None:
    """Write report-desktop, -incident, -explorer and -phone, live-alarm, open-understood and -findings."""
    from playwright.sync_api import sync_playwright

    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as driver:
        folder = Path(temporary)
        write_plant(simulate_hydropower(seed=0), folder)
        findings = penstock.detect(folder / "plant.csv", units=folder / "variables.csv")
        findings.to_html(folder / "report.html", title="Hydropower plant")
        address = (folder / "report.html").as_uri()
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(viewport={"width": 1280, "height": 840})
        page.goto(address)
        page.screenshot(path=images / "report-desktop.png")
        second = findings.incident_table.sort_values("rank").index[1]
        page.set_viewport_size({"width": 1280, "height": 920})
        page.locator(f'#case-table a[href="#incident={second}"]').click()
        page.wait_for_timeout(1000)  # until it is drawn and scrolled to
        box = page.locator(f'[id="incident={second}"]').bounding_box()
        assert box is not None
        page.screenshot(path=images / "report-incident.png", clip={**box, "height": 860.0}, full_page=False)
        page.locator(f'button[data-explore="{second}"]').click()
        page.wait_for_timeout(1000)
        page.locator("#explore").screenshot(path=images / "report-explorer.png")
        phone = browser.new_page(viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True)
        phone.goto(address)
        phone.wait_for_timeout(1000)
        phone.screenshot(path=images / "report-phone.png")
        picture_alarm(folder, browser, images)
        picture_project(folder, browser, images)
        browser.close()


def picture_alarm(folder: Path, browser: Any, images: Path) -> None:
    """Write live-alarm.png: of the months after the good ones, the alarm with the highest score, opened."""
    penstock.fit_model(folder / "plant.csv", until=GOOD_UNTIL).save(folder / "plant.penstock")
    table = pd.read_csv(folder / "plant.csv")
    later = table[table["time"] > f"{GOOD_UNTIL} 23:59"]
    later.to_csv(folder / "later.csv", index=False)
    assets = {"hydropower": AssetOptions(model=folder / "plant.penstock", input=folder / "later.csv")}
    rules = AlarmRules(no_data="0s", keep="365d")
    options = ServeOptions(store=folder / "live.db", port=0, keep_readings=1e5, assets=assets, rules=rules)
    with LiveServer(options) as server:
        while server.service.assets["hydropower"].record.rows < len(later):
            time.sleep(0.5)
        worst = max(server.service.store.alarms(), key=lambda alarm: alarm["score"] or 0.0)
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(server.url)
        page.locator(f'#alarm-rows tr[data-id="{worst["id"]}"] button').click()
        page.locator("#alarm-chart canvas").first.wait_for()
        page.wait_for_timeout(1000)  # until it is drawn
        page.screenshot(path=images / "live-alarm.png")


def picture_project(folder: Path, browser: Any, images: Path) -> None:
    """Write open-understood.png and open-findings.png: the sample plant, with a good period marked with the mouse."""
    with ProjectServer(Project(folder / "unit2")) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 760})
        page.set_default_timeout(600_000)
        page.goto(server.url)
        page.click("#sample")
        page.locator("#tags tr").nth(40).wait_for()
        page.evaluate("document.getElementById('project').textContent = '~/unit2'")
        page.screenshot(path=images / "open-understood.png")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.click("#find")
        page.locator("#incidents tr").first.wait_for()
        page.locator("#cancel").wait_for(state="hidden")
        box = page.locator("#score-chart").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 200, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 420, box["y"] + 60, steps=5)
        page.mouse.up()
        page.click("button[value=train_periods]")
        page.locator("#marks li").first.wait_for()
        page.mouse.move(0, 0)
        page.evaluate("document.getElementById('project').textContent = '~/unit2'")
        page.screenshot(path=images / "open-findings.png")


if __name__ == "__main__":
    main()
