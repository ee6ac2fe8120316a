"""The page as a whole: escaped, closed to the outside, small, and written wholly or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from report_tables import (
    HOSTILE,
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

from penstock.detection import detect
from penstock.report import (
    html,
    to_html,
    write_html,
)
from penstock.report.axis import make_axis
from penstock.report.document import document_pieces
from penstock.report.event_cards import event_window

ALL = [
    *(plant_findings, rows_findings, modes_findings, quiet_findings, hostile_findings),
    *(views_findings, views_modes_findings, series_findings, hostile_series_findings),
]
VOID = {"meta", "br", "wbr", "img", "input", "hr", "link"}


class Reader(HTMLParser):
    """Collects elements, and complains of what is not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.ids, self.texts = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "script" not in self.open and "style" not in self.open:
            self.texts.append(text)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module", params=ALL, ids=lambda findings: findings.__name__)
def page(request):
    return to_html(request.param())


def test_elements_are_closed_and_ids_are_unique(page):
    reader = read(page)
    assert len(reader.ids) == len(set(reader.ids))
    assert dict(reader.elements)["html"] == {"lang": "en"}
    targets = {attributes["href"][1:] for tag, attributes in reader.elements if tag == "a"}
    assert targets <= set(reader.ids)


def test_nothing_is_inline_and_nothing_is_loaded(page):
    for tag, attributes in read(page).elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "img", "form"}
        assert not [name for name in attributes if name == "style" or name.startswith("on") or name == "src"]
        assert all(value.startswith("#") for name, value in attributes.items() if name == "href")
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9]+\.[a-z]", page)


def test_the_policy_names_the_script_and_the_style_by_their_hash(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    for element, directive in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert "unsafe" not in policy


def test_the_data_are_json(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert not set(text) & set("<>&")
    assert set(json.loads(text)) == {"axis", "expected", "timeline", "events", "heat", "trees"}


@pytest.mark.parametrize("findings", [hostile_findings, hostile_series_findings])
def test_hostile_names_are_text(findings):
    page = to_html(findings(), title="<h1>&amp;</h1>")
    reader = read(page)
    tags = [tag for tag, _ in reader.elements]
    assert not {"img", "i", "u", "b"} & set(tags)
    assert tags.count("script") == 2
    assert tags.count("h1") == 1
    text = "".join(reader.texts)
    for name in HOSTILE:
        assert (name.strip() if len(name) < 90 else name[:90] + "…") in text
    assert "{{ 7 * 7 }}" in text
    assert "<h1>&amp;</h1>" in text


def test_hostile_names_are_text_in_incidents_too():
    findings = hostile_series_findings()
    page = to_html(findings)
    first, last = page.index('<table class="incidents"'), page.index('<dl class="figures"')
    leading, cards = page[first:last], page[last:]
    assert leading.count("<tr id=") == len(findings.incidents) > 1
    assert "&lt;script&gt;alert(1)&lt;/<wbr>script&gt;" in leading
    assert "&lt;/<wbr>script&gt;&lt;script&gt;document.<wbr>title = &#39;changed&#39;" in leading
    swapped = "possibly swapped with &#34;&gt;&lt;img src=x onerror=alert(2)&gt;"
    assert swapped in leading
    assert swapped in cards
    for text in (leading, findings._repr_html_()):
        assert not re.search(r"<(script|img)", text)


def test_the_page_leads_with_the_verdict_and_the_incidents():
    findings = series_findings()
    page = to_html(findings)
    reader = read(page)
    text = " ".join(" ".join(reader.texts).split())
    places = [
        text.index(part) for part in (findings.verdict.sentence, "Incidents, the most severe first", "rows judged")
    ]
    assert places == sorted(places)
    leading = page[page.index('<table class="incidents"') : page.index('<dl class="figures"')]
    ranked = findings.incident_table.sort_values("rank")
    assert re.findall(r'id="incident-(\d+)"', leading) == [str(number) for number in ranked.index]
    assert re.findall(r'href="#event-(\d+)"', leading) == [str(findings.grouped.of_row[row]) for row in peaks(findings)]
    assert leading.count("<strong>near certain</strong>") == len(ranked) == 3
    assert leading.count("expected by chance: fewer than 0.001") == 3
    assert "3 May 2024, 02:00 – 04:40" in leading
    assert "2 h 40 min" in leading
    assert "probably the machine" in leading
    assert "outside its range" in leading
    assert "The most severe event" not in page
    assert "A normal period of this length has about one episode as high." in text
    assert "Sensors are judged by each other over time (method sensors)" in text
    assert text.index("Expected by chance", places[2]) > 0  # a column of the events


def peaks(findings):
    return [incident.peak for incident in sorted(findings.incidents, key=lambda incident: incident.rank)]


def test_a_card_lists_the_sensors_of_its_incident_in_order_of_onset():
    findings = series_findings()
    known = findings.incidents[1]
    assert len(known.sensors) == 5
    later = [replace(sensor, onset=known.start + 4 - place) for place, sensor in enumerate(known.sensors)]
    never = replace(later[0], onset=-1)  # at the front by its evidence, but it did not leave its range
    incident = replace(known, sensors=(never, *later[1:]))
    page = to_html(replace(findings, incidents=(findings.incidents[0], incident, findings.incidents[2])))
    card = page[page.index('id="why-2"') : page.index('id="event-3"')]
    table = card[card.index('<table class="sensors">') :]
    table = table[: table.index("</table>")]
    shown = re.findall(r'<bdi class="name">(\w+) .*?<td class="nowrap">(.*?)</td>', table)
    assert [name for name, _ in shown] == [sensor.name.split()[0] for sensor in later[:0:-1]]
    assert [when for _, when in shown] == [f"3 May 2024, 02:{minute}0" for minute in range(4)]
    assert "Incident 2: 3 May 2024, 02:00 – 04:40" in card
    assert incident.reason.replace("'", "&#39;") in card


def test_only_the_most_severe_incidents_are_listed(monkeypatch):
    monkeypatch.setattr("penstock.report.summary._MOST_INCIDENTS", 2)
    page = to_html(series_findings())
    assert page.count('<tr id="incident-') == 2
    assert "Listed are the 2 most severe of 3;" in page


def test_an_incident_links_to_all_its_events():
    findings = series_findings()
    whole = replace(findings.incidents[0], rows=np.flatnonzero(findings.flags))
    table = findings.incident_table.iloc[:1]
    page = to_html(replace(findings, incidents=(whole,), incident_table=table))
    leading = page[page.index('<table class="incidents"') : page.index('<dl class="figures"')]
    assert re.findall(r'href="#event-(\d+)"', leading) == ["1", "2", "3"]
    assert page.count("Incident 1: 1 May 2024") == 3  # in each card


def test_every_part_is_there():
    text = to_html(plant_findings(), title="Plant 1")
    assert "<h1>Plant 1</h1>" in text
    for part in ("summary", "score", "days", "events", "variables", "situations", "neighbours", "rules", "columns"):
        assert f'<section id="{part}"' in text
    for words in ("P@N", "Warning time", "20 min after it began", "random_state=0", "numpy", "Grade A"):
        assert words in text


def test_without_findings_there_are_no_empty_parts():
    text = to_html(quiet_findings())
    assert "none stands out" in text
    for part in ("days", "events", "variables", "neighbours", "rules"):
        assert f'<section id="{part}"' not in text
        assert f'href="#{part}"' not in text


def test_one_row_events_without_any_variable(monkeypatch):
    monkeypatch.setattr(html, "MOST_LISTED", 5)
    findings = hostile_findings()
    ranks = findings.events["rank"]
    some = {event: why for event, why in findings.explanations.items() if ranks[event] <= 3}
    reader = read(to_html(replace(findings, explanations=some)))
    text = " ".join(" ".join(reader.texts).split())
    assert "Listed are the 5 most severe of 11 events. The 3 most severe can be opened." in text
    assert sum(attributes.get("class") == "opener" for _, attributes in reader.elements) == 3


def test_it_is_written_wholly_and_never_over_another(tmp_path):
    path = tmp_path / "report.html"
    write_html(plant_findings(), path, title="One")
    assert path.read_text(encoding="utf-8") == to_html(plant_findings(), title="One")
    with pytest.raises(FileExistsError, match=r"report\.html exists already\. Choose another name"):
        write_html(plant_findings(), path, title="Two")
    assert "One" in path.read_text(encoding="utf-8")
    write_html(plant_findings(), path, overwrite=True, title="Two")
    assert "<h1>Two</h1>" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_many_rows_and_columns_stay_small():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(2000, 120)) + 5).rename(columns=lambda j: f"variable_{j} [°C]")
    table.iloc[rng.choice(2000, 60, replace=False), :3] += 20
    table.insert(0, "time", pd.date_range("2024-01-01", periods=2000, freq="10min"))
    findings = detect(table, top=60, gap=0, method="nmf", parameters={"n_components": 3})
    assert len(findings.events) > 40
    assert len(to_html(findings)) < 1_500_000


def test_views_and_rates_are_told_in_plain_words():
    findings = views_findings()
    text = to_html(findings)
    for event in findings.events.index:
        why = findings.explain(event)
        assert text.count(why.seen_as) == 2  # in the list of the most severe, and where the event is opened
        assert f"; {why.rarity}. " in text
        assert f"{why.rarity[0].upper()}{why.rarity[1:]}." in text
        assert f">{findings.events.loc[event, 'standing']}</td>" in text
    assert "Among the rows judged" in text
    assert not re.search(r"1 in \d|normal rows? scores?", text)
    assert "0 is usual, and lower is more normal" in text
    assert "times the threshold" not in text
    assert "Typical situations" not in text


def test_what_is_as_expected_and_what_is_extrapolated_is_shown():
    findings = views_findings()
    why = findings.explain(1)
    as_expected = why.variables.assign(expected=why.variables["actual"], difference=0.0, direction="")
    rare = "fewer than 1 in a million normal rows (extrapolated) score this high"
    text = to_html(
        replace(
            findings,
            explanations={**findings.explanations, 1: replace(why, variables=as_expected, rarity=rare)},
            rarity=findings.rarity.assign(figure="fewer than 1 in a million (extrapolated)"),
        )
    )
    assert "fewer than 1 in a million (extrapolated)</td>" in text
    assert "Fewer than 1 in a million normal rows (extrapolated) score this high." in text
    assert "( expected)" not in text
    assert "Expected is their mean." in text
    assert "ebuilt" not in text.split("<script")[0]
    assert "Rebuilt is what the model makes of the row" in to_html(plant_findings())
    page = to_html(series_findings())
    assert "Expected is what each sensor should read given the others of the same row" in page
    assert "Expected is their mean" not in page
    assert "ebuilt" not in page.split("<script")[0]
    assert '<td class="num"> 0</td>' in text


def test_groups_and_settings_are_shown():
    """Two units at the same times, of which the second has a limit that moved as its readings did."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["head", "flow", "oil"])
    table["limit"] = np.where(np.arange(200) >= 195, 9.0, 5.0)
    table.loc[195:, "flow"] += 40
    table["unit"] = np.repeat(["unit <A>", "unit <B>"], 100)
    table["fault"] = (np.arange(200) >= 195).astype(int)
    table["time"] = np.tile(pd.date_range("2024-05-01", periods=100, freq="h"), 2)
    findings = detect(table, group="unit", label="fault", top=5, method="mean")
    axis = make_axis(findings.table.time, 200, [rows.start for rows in findings.table.spans])
    assert np.flatnonzero(axis.begins).tolist() == [0, 100]
    assert axis.origin is None
    window = event_window(findings, axis, 1)
    assert (window.start, window.stop) == (177, 200)
    page = to_html(findings)
    assert page.count("unit &lt;B&gt;</bdi>: ") >= 3  # the event, its line in the summary, the known fault
    assert "Score of each row" in page
    assert "Rows are shown group by group" in page
    assert re.search(r"<li><bdi>setting limit: 5 → 9 \(\d+% of it\)</bdi></li>", page)
    document = "".join(document_pieces(findings))
    event = json.loads(document)["events"][0]
    assert (event["group"], event["settings"][0]["before"], event["settings"][0]["after"]) == ("unit <B>", 5.0, 9.0)
