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
    ALL,
    HOSTILE,
    hostile_findings,
    hostile_series_findings,
    plant,
    plant_findings,
    quiet_findings,
    series_findings,
    views_findings,
    with_reasons,
)

from penstock.certainty import about_figure
from penstock.detection import detect
from penstock.report import chart_data, to_html, write_html
from penstock.report.document import document_pieces
from penstock.report.words import by_chance, duration, when

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


@pytest.fixture(scope="module", params=ALL)
def page(request):
    return to_html(ALL[request.param]())


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
    assert set(json.loads(text)) == {
        *("axis", "word", "expected", "by_evidence", "overview", "filters", "cases", "explorer")
    }


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
    first, last = page.index('<table class="cases"'), page.index('<figure class="card" id="plant"')
    leading, articles = page[first:last], page[last:]
    assert leading.count("<tr data-case=") == len(findings.incidents) > 1
    assert "&lt;script&gt;alert(1)&lt;/<wbr>script&gt;" in leading
    swapped = "possibly swapped with &#34;&gt;&lt;img src=x onerror=alert(2)&gt;"
    assert swapped in leading
    assert swapped in articles
    for text in (leading, findings._repr_html_()):
        assert not re.search(r"<(script|img)", text)


def article_of(page, number):
    article = page[page.index(f'id="incident={number}"') :]
    return article[: article.index("</article>")]


def words_of(page):
    return " ".join(" ".join(read(page).texts).split())


def test_the_page_leads_with_the_verdict_and_the_incidents_by_severity():
    findings = series_findings()
    page = to_html(findings)
    text = words_of(page)
    assert text.index(findings.verdict.sentence) < text.index("Look at first") < text.index("The plant over time")
    ranked = findings.incident_table.sort_values("rank").index
    leading = page[page.index('<table class="cases"') : page.index('<figure class="card" id="plant"')]
    assert re.findall(r'data-case="(\d+)"', leading) == [str(number) for number in ranked]
    assert re.findall(r'href="#incident=(\d+)"', leading) == [str(number) for number in ranked]
    assert leading.count("near certain") == len(ranked) == 3
    for expected in findings.incident_table["expected_by_chance"]:
        assert by_chance(expected) in leading
    for row in findings.incident_table.to_dict("records"):
        assert when(row["start"]) in leading
        assert (duration(row["duration"]) if row["start"] < row["end"] else "one row") in leading
    assert "outside its range" in leading
    assert f"above {findings.threshold:.4g}, {by_chance(findings.assessment.threshold_expected)}" in text
    assert "Sensors are scored by each other over time (method sensors)" in text


def test_an_incident_names_what_moved_first_and_what_followed():
    findings = series_findings()
    known = findings.incidents[1]
    assert len(known.sensors) == 5
    later = [replace(sensor, onset=known.start + 4 - place) for place, sensor in enumerate(known.sensors)]
    never = replace(later[0], onset=-1)  # at the front by its evidence, but it did not leave its range
    incident = replace(known, sensors=(never, *later[1:]), moved_first=(later[-1].column,))
    page = to_html(replace(findings, incidents=(findings.incidents[0], incident, findings.incidents[2])))
    article = article_of(page, 2)
    shown = re.findall(r'<p class="who"><bdi class="name">(\w+) .*?<p class="what">(?:<time>(.*?)</time>)?', article)
    assert [name for name, _ in shown] == [sensor.name.split()[0] for sensor in later[:0:-1]]
    assert [after for _, after in shown] == ["", "+10 min", "+20 min", "+30 min"]
    assert "Moved first, 3 May 2024, 02:00" in article
    assert article.index("<h4>Moved first") < article.index("<h4>Then followed")
    assert incident.reason.replace("'", "&#39;") in article


def test_a_sensor_that_moved_early_is_shown_whatever_its_rank():
    """As in a process whose first mover is soon exceeded by what follows from it."""
    findings = series_findings()
    known = findings.incidents[1]
    base = known.sensors[0]
    strong = [
        replace(base, column=j, name=findings.inputs.names[j], onset=known.start + 3, mean_evidence=9.0)
        for j in range(4)
    ]
    weak = replace(base, column=4, name=findings.inputs.names[4], onset=known.start, mean_evidence=4.0)
    many = (*strong, *strong, *strong, weak)  # more than there are charts
    page = to_html(
        replace(
            findings,
            incidents=(findings.incidents[0], replace(known, sensors=many, moved_first=(4,)), findings.incidents[2]),
        )
    )
    article = article_of(page, 2)
    first = re.search(r'<p class="who"><bdi class="name">(.*?)</bdi>', article)[1]
    assert first == findings.inputs.names[4]
    assert "Earlier: " in article


def test_similar_incidents_are_linked_both_ways():
    findings = series_findings()
    one, two, three = findings.incidents
    page = to_html(replace(findings, incidents=(replace(one, similar=()), two, replace(three, similar=((1, 0.9),)))))
    for number, other in ((1, 3), (3, 1)):
        assert f'<a href="#incident={other}">incident {other}</a>' in article_of(page, number)


def test_every_part_is_there():
    text = to_html(plant_findings(), title="Plant 1")
    assert "<h1>Plant 1</h1>" in text
    for part in ("summary", "cases", "known", "explore", "days", "data-section"):
        assert f'<section id="{part}"' in text
    for part in ("columns", "situations", "rules", "settings"):
        assert f'<details class="more" id="{part}"' in text
    for words in ("P@N", "Warning time", "20 min after it began", "random_state=0", "numpy", "Grade A"):
        assert words in text


def test_without_findings_there_are_no_empty_parts():
    text = to_html(quiet_findings())
    assert quiet_findings().verdict.sentence in text
    for part in ("cases", "days", "rules"):
        assert f'id="{part}"' not in text
        assert f'href="#{part}"' not in text
    assert '<section id="explore"' in text


def test_tags_that_no_longer_fit_are_all_named_and_drawn_first():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(800, 1)) + rng.normal(scale=0.3, size=(800, 5)), columns=list("abcde"))
    table.loc[400:, "d"] += 20
    found = detect(table, ordered=True, train_until=399)
    assert [shift.name for shift in found.assessment.shifts] == ["d"]
    assert "shifts" in read(to_html(found)).ids
    assert chart_data(found)["explorer"]["order"][0] == list(table).index("d")


def test_of_very_many_the_most_severe_are_listed_and_some_of_them_can_be_opened(monkeypatch):
    monkeypatch.setattr("penstock.report.cases.MOST_LISTED", 5)
    monkeypatch.setattr("penstock.report.html._MOST_ARTICLES", 3)
    reader = read(to_html(hostile_findings()))
    text = " ".join(" ".join(reader.texts).split())
    assert "Listed are the 5 most severe of 11 events." in text
    assert "The 3 most severe can be opened." in text
    assert sum(attributes.get("class") == "case card" for _, attributes in reader.elements) == 3


def test_it_is_written_wholly_and_never_over_another(tmp_path):
    path = tmp_path / "report.html"
    write_html(plant_findings(), path, title="One")
    assert path.read_text(encoding="utf-8") == to_html(plant_findings(), title="One")
    with pytest.raises(FileExistsError):
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


@pytest.mark.parametrize("findings", [plant_findings, views_findings, series_findings])
def test_words_are_plain(findings):
    text = words_of(to_html(findings()))
    assert not re.search(r"gravest|\bkin\b|coarse \d|fine \d|\bnan\b", text)


def test_what_is_expected_by_chance_or_else_the_rank_is_told_in_plain_words():
    for findings, heading in ((views_findings(), "Expected by chance"), (plant_findings(), "Rank")):
        text = to_html(findings)
        assert f'<th scope="col">{heading}</th>' in text
        assert bool(findings.assessment.chance_unknown) == (heading == "Rank")
        for _, event in findings.events.iterrows():
            known = about_figure(event["expected_by_chance"]) if heading != "Rank" else f"rank {event['rank']}"
            assert f">{known}</td>" in text
        assert (findings.assessment.chance_unknown in text) == (
            heading == "Rank"
        ) or not findings.assessment.chance_unknown
        assert not re.search(r"1 in \d|normal rows? scores?|times the threshold", text)
    assert "Typical situations" not in to_html(views_findings())


def test_what_is_as_expected_is_shown():
    findings = views_findings()
    why = findings.explain(1)
    as_expected = why.variables.assign(expected=why.variables["actual"], difference=0.0, direction="")
    text = to_html(with_reasons(findings, {1: replace(why, variables=as_expected)}))
    assert "( expected)" not in text
    assert '<td class="num"> 0</td>' in text
    assert "Expected is their mean." in text
    for page in (text, to_html(series_findings())):
        assert "ebuilt" not in page.split("<script")[0]
    assert "Rebuilt is what the model makes of the row" in to_html(plant_findings())


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
    page = to_html(findings)
    assert page.count("unit &lt;B&gt;</bdi>: ") == 2  # the event, the known fault
    assert '<td data-label="unit"><bdi class="name">unit &lt;B&gt;</bdi></td>' in page
    assert "The plant over time" in page
    assert "Rows are shown group by group" in page
    assert '<li><bdi class="name">limit</bdi>: 5 → 9</li>' in page
    document = "".join(document_pieces(findings))
    event = json.loads(document)["events"][0]
    assert (event["group"], event["settings"][0]["before"], event["settings"][0]["after"]) == ("unit <B>", 5.0, 9.0)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(("step", "shown"), [("10min", False), ("250ms", True)])
def test_parts_of_a_second_are_shown_only_where_rows_need_them(step, shown, zone):
    table = plant(step=step, start="2024-10-25 00:00:07.617", tz=zone)  # clocks are changed on the 27th
    table["known"] = (table.index // 8 == 37).astype(int)
    page = to_html(detect(table, label="known", top=12, method="nsnmf", parameters={"similarity": "relative"}))
    times = re.findall(r"\d\d:\d\d:\d\d(?:\.\d+)?", page.partition('id="data-section"')[0].partition("<main")[2])
    assert len(times) > 10
    assert any("." in time for time in times) == shown
