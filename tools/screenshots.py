"""Make the pictures of the report in docs/images: simulates a plant, writes its report, and opens it in chromium.

    .venv/bin/python tools/screenshots.py [FOLDER]

Needs chromium and playwright, as the browser tests do.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import penstock
from penstock.simulate import simulate_hydropower, write_plant

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"


def main() -> None:
    """Write report-desktop.png, report-incident.png, report-explorer.png and report-phone.png."""
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
        browser.close()


if __name__ == "__main__":
    main()
