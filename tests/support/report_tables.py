"""Findings for the tests of the report: small, made once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from penstock.detection import Explanation, Findings, detect, fit_model, score
from penstock.thresholds import Fixed

HOSTILE = (
    "<script>alert(1)</script>",
    "=cmd()",
    '"><img src=x onerror=alert(2)>',
    "שלום עולם \u202e evil",
    "🌊 flow [m³/s]",
    "x" * 300,
    "",
    "</script><script>document.title = 'changed'</script>",
    "{{ 7 * 7 }}",
    "--><!--\u2028",
    "' onmouseover='alert(3)",
)


def plant(
    n: int = 600, step: str = "10min", start: str = "2024-05-01", tz: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """Load, temperatures and flow that follow each other, with a hole in the sampling and three faults."""
    rng = np.random.default_rng(seed)
    load = 50 + 10 * np.sin(np.arange(n) / 50)
    columns = {
        "load [MW]": load,
        "bearing [°C]": 30 + load / 2,
        "oil [°C]": 20 + load / 3,
        "flow [m³/s]": load / 5,
        "level [m]": 90 + load / 100,
    }
    table = pd.DataFrame(columns)
    table += rng.normal(scale=0.2, size=table.shape) * [1.0, 1.0, 1.0, 0.2, 0.01]
    table.iloc[100:103, 3] -= 4
    table.iloc[300:308, 1] += 12
    table.iloc[300:308, 2] += 6
    table.iloc[500, 0] += 25
    table.insert(0, "time", pd.date_range(start, periods=n, freq=step, tz=tz))
    return table.drop(index=range(400, 440)).reset_index(drop=True)


@cache
def plant_findings() -> Findings:
    table = plant()
    table["known"] = 0
    table.loc[298:306, "known"] = 1
    table.loc[40:44, "known"] = 1
    return detect(table, label="known", top=12, method="nsnmf", parameters={"similarity": "relative"})


@cache
def rows_findings() -> Findings:
    """Without time."""
    return detect(plant().drop(columns="time"), top=12, method="nsnmf", parameters={"similarity": "relative"})


@cache
def modes_findings() -> Findings:
    table = plant()
    table["state"] = np.where(table["load [MW]"] > 50, "<b>high</b>", "low")
    return detect(table, modes="state", top=12, method="nsnmf", parameters={"similarity": "relative"})


@cache
def views_findings() -> Findings:
    """By `Detector`: with scores below 0, views and rates, and without latent groups."""
    return detect(plant(), top=12, method="detector")


@cache
def views_modes_findings() -> Findings:
    """New rows, with a threshold below 0 in the picture."""
    table = plant()
    table["state"] = np.where(table["load [MW]"] > 50, "<b>high</b>", "low")
    return detect(table, modes="state", train_until="2024-05-02", threshold=Fixed(-0.2), method="detector")


@cache
def series_findings() -> Findings:
    """VerdictBlock in order of time: with a verdict that is known, evidence and incidents."""
    return detect(plant(3000, seed=3))


@cache
def quiet_findings() -> Findings:
    """Nothing found, in rows scored by a model of others."""
    table = plant().iloc[110:290]
    return score(
        fit_model(table, method="nsnmf", parameters={"similarity": "relative"}), table.iloc[40:80], threshold=1e-6
    )


def hostile_table() -> pd.DataFrame:
    n = 240
    rng = np.random.default_rng(1)
    base = 50 + 10 * np.sin(np.arange(n) / 20)
    columns = {name: base * (place + 1) / 5 + rng.normal(scale=0.3, size=n) for place, name in enumerate(HOSTILE)}
    table = pd.DataFrame(columns)
    for place in range(len(HOSTILE)):  # every name is behind some event
        table.iloc[10 + 20 * place : 12 + 20 * place, place] += 40
    table["<i>state</i>"] = np.where(base > 50, "<u>on</u>", "off & on")
    table.insert(0, "time <b>", pd.date_range("2024-03-30 20:00", periods=n, freq="7min", tz="Europe/Berlin"))
    return table


@cache
def hostile_findings() -> Findings:
    return detect(hostile_table(), top=22, method="nsnmf", parameters={"similarity": "relative"})


@cache
def hostile_series_findings() -> Findings:
    """The same as incidents, one of which has a sensor that is swapped with another of a hostile name."""
    findings = detect(hostile_table(), top=22)
    words = f"swapped with {HOSTILE[2]}"
    first = findings.incidents[0]
    sensor = replace(first.sensors[0], name=HOSTILE[0], onset=first.start, condition=words, certain=False)
    table = findings.incident_table.copy()
    table.loc[1, ["first_sensor", "first_out", "condition"]] = HOSTILE[0], HOSTILE[7], f"possibly {words}"
    return replace(
        findings,
        incidents=(replace(first, sensors=(sensor, *first.sensors[1:])), *findings.incidents[1:]),
        incident_table=table,
    )


def with_reasons(findings: Findings, reasons: dict[int, Explanation]) -> Findings:
    """The same with other explanations of some events."""
    events = {**findings.explained.events, **reasons}
    return replace(findings, explained=replace(findings.explained, events=events))


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
