"""The record that `detect` and `score` return: plain data, complete when it is returned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._messages import counted
from penstock._parameters import check_whole_number
from penstock._types import BoolArray, FloatArray
from penstock.columns import InputChoice
from penstock.detection._parts import Contributions, ScoredPart
from penstock.detection.data import DataSummary
from penstock.explain import Agreement, Events, Incident
from penstock.io import Note, Table

if TYPE_CHECKING:
    from penstock.detection._explaining import Explanation, ModeGroups
    from penstock.detection._shifts import Shift
    from penstock.detection.verdict import Verdict


@dataclass(frozen=True, eq=False)
class ScoredInputs:
    """The columns that were scored, what they read, and what was expected of them.

    Attributes
    ----------
    choice : InputChoice
        Which columns were used, encoded or left out.
    names, units : tuple of str, mapping
        Of the inputs; a unit is "" where it is unknown.
    values, expected : DataFrame
        The inputs and what they are compared with, both in the user's units. Expected is the mean of the usual rows
        most like a finding, NaN for other rows; of a method that rebuilds rows (`rebuilt`), what it rebuilds of each
        row; of one that scores sensors over time, what an input should read given the others of its row.
    ranges : (p,) array
        The widest range in which an input was fitted, 1 where it has none: what counts as one in a residual.
    rebuilt : bool
        Whether `expected` is what the method rebuilds of a row, as factorisations do.
    """

    choice: InputChoice
    names: tuple[str, ...]
    units: Mapping[str, str]
    values: pd.DataFrame
    expected: pd.DataFrame
    ranges: FloatArray
    rebuilt: bool


@dataclass(frozen=True, eq=False)
class RowDetails:
    """What is known of each row beside its score; arrays have one entry per row of the table.

    Attributes
    ----------
    modes : (n,) array of str
        The operating mode, "all" where no modes were given.
    seen : (n,) array
        The share of the inputs that the row has readings of.
    scored, fitted : (n,) arrays of bool
        Which rows have a score, and which were fitted to.
    evidence : (n, p) array or None
        Of methods that score sensors over time, how far each input is from what is usual, given the others and over
        time: 1 at its edge.
    contributions : Contributions or None
        Of findings of `penstock.Detector`, what makes up their scores.
    parts : tuple of ScoredPart
        The model of each mode, and where its rows are.
    grouped : Events
        Which rows belong to which event.
    days : DataFrame
        The days that findings fall on: rows, events and the highest score of each. Empty without time stamps.
    ranking : DataFrame
        One row per finding, the highest score first; see `Findings.top`.
    """

    modes: NDArray[np.str_]
    seen: FloatArray
    scored: BoolArray
    fitted: BoolArray
    evidence: FloatArray | None
    contributions: Contributions | None
    parts: tuple[ScoredPart, ...]
    grouped: Events
    days: pd.DataFrame
    ranking: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Explained:
    """Why events are events, and what the models look like.

    Attributes
    ----------
    events : mapping of int to Explanation
        Of the most severe events; `Findings.explain` gives those of the others.
    shares : (events, p) array or None
        What each input adds to the scores of an event's rows, as shares; NaN where that is not known.
    rule_tree : str
        A classification tree of all findings against the other scored rows, as text; "" where there are no others.
    groups : tuple of ModeGroups
        The latent groups of the detector of each mode that has such.
    """

    events: Mapping[int, Explanation] = field(default_factory=dict)
    shares: FloatArray | None = None
    rule_tree: str = ""
    groups: tuple[ModeGroups, ...] = ()


@dataclass(frozen=True, eq=False)
class Assessment:
    """How the rows were scored, and how far the findings can be believed.

    Attributes
    ----------
    method : str
        The class of the detector.
    by_sensor : bool
        Whether sensors were scored over time, so that events of one cause are put together as incidents.
    self_scored : bool
        Whether the rows scored are those fitted to.
    chance_unknown : str
        Why it is not known how many as high would be expected by chance; "" where it is known.
    threshold_expected : float
        How many episodes or rows above the threshold would be expected by chance; NaN where that is not known.
    shifts : tuple of Shift
        Tags that differ from the good period throughout the later rows: the model no longer fits, as a note says. What
        lasts as long is no incident.
    stretches : DataFrame
        The stretches with the highest scores that are no incidents, as more than one as high would be expected by
        chance, or nothing stands out: columns as of `Findings.incident_table`.
    agreement : Agreement or None
        How the findings compare with a label column, if there is one.
    """

    method: str
    by_sensor: bool
    self_scored: bool
    chance_unknown: str
    threshold_expected: float
    shifts: tuple[Shift, ...]
    stretches: pd.DataFrame
    agreement: Agreement | None


@dataclass(frozen=True, eq=False)
class Findings:
    """Scored rows, the flagged ones, the events that these make up, and why.

    Arrays have one entry per row of `table`, in order of time; where the table has groups, group by group. A report, a
    terminal summary and the output files only format these fields.

    Attributes
    ----------
    table : Table
        As it was read.
    data : DataSummary
        What was understood of the data, as `penstock.look` returns it: time, tags, doubts, what was left out and why.
    inputs : ScoredInputs
        The columns that were scored: names, units, values, expected values.
    scores : (n,) array
        High is anomalous; NaN where a row was not scored. With several modes in units of the mode's usual score; those
        of `penstock.Detector` stay what they are: 0 is usual in every mode, and less is possible.
    flags : (n,) array of bool
        Which rows are findings.
    threshold : float
        Scores above it are findings. Of a list of the top N: midway between the last one and the next; if these are
        equal it is their score, and of the rows with that score the earlier ones are findings.
    rows : RowDetails
        What else is known of each row: mode, evidence of each sensor, event.
    events : DataFrame
        One row per event, in order of the rows, with the same columns for all methods: start, end, duration, rows,
        peak, peak_row, peak_score, mean_score, expected_by_chance, rank; of a table with groups also `group`. Without
        time, start, end and peak are row numbers of the source. `expected_by_chance` is how many episodes as high a
        normal period of this length has, of methods that score rows one by one how many rows as high a normal table of
        this size has; NaN where `assessment.chance_unknown` says why.
    incidents, incident_table : tuple of Incident, DataFrame
        Of methods that score sensors over time: events of one cause put together, with the sensors behind each, the
        one to look at first in front, when each left its range, and similar earlier incidents. `penstock.explain`
        describes both. Empty for methods that score rows one by one, and where nothing stands out.
    explained : Explained
        Why the most severe events are events, and what the models look like.
    verdict : Verdict
        Whether anything stands out, how sure that is, and the same as a sentence.
    assessment : Assessment
        How the rows were scored, and how far the findings can be believed.
    notes : tuple of Note
        Everything that was changed, left out or odd, in the order in which it came up.
    settings : mapping
        What was asked for and what it ran on, to repeat it.

    Examples
    --------
    >>> import penstock
    >>> findings = penstock.detect(penstock.datasets.load_plant().table)
    >>> len(findings.scores) == len(findings.flags) == len(findings.table.values)
    True
    >>> bool(findings.scores[findings.flags].min() > findings.threshold)
    True
    >>> findings.incident_table["first_sensor"].tolist()[0]
    'unit2_guide_vane_opening'
    """

    table: Table
    data: DataSummary
    inputs: ScoredInputs
    scores: FloatArray
    flags: BoolArray
    threshold: float
    rows: RowDetails
    events: pd.DataFrame
    incidents: tuple[Incident, ...]
    incident_table: pd.DataFrame
    explained: Explained
    verdict: Verdict
    assessment: Assessment
    notes: tuple[Note, ...]
    settings: Mapping[str, Any]

    def top(self, n: int | None = None) -> pd.DataFrame:
        """Return the n findings with the highest scores, best first.

        Parameters
        ----------
        n : int, optional
            All findings if None.

        Returns
        -------
        DataFrame
            The index is the row as in the source, from 0; columns are `rank` (from 1), `score`, as of `top` of a
            detector, then time and group (if there are such), expected_by_chance (as in `events`), event, mode, seen,
            and the variables with the largest residuals (or the largest part of the score, where that is known),
            without settings.

        Examples
        --------
        >>> import penstock
        >>> plant = penstock.datasets.load_plant()
        >>> best = penstock.detect(plant.table).top(3)
        >>> best.columns[:3].tolist(), best["rank"].tolist()
        (['rank', 'score', 'time'], [1, 2, 3])
        >>> bool((plant.table.index[best.index] == best["time"]).all())
        True
        """
        if n is not None:
            check_whole_number("n", n, least=1)
        return self.rows.ranking if n is None else self.rows.ranking.head(n)

    def explain(self, event: int) -> Explanation:
        """Return why an event is one: the variables behind it, the nearest normal rows, and a rule.

        The most severe events are explained already (`explained.events`); others are explained at each call.

        Parameters
        ----------
        event : int
            Its number in `events`; a KeyError if there is none.
        """
        from penstock.detection._explaining import Explainer

        known = self.explained.events.get(event)
        return Explainer(self).explain(event) if known is None else known

    def to_html(self, path: str | os.PathLike[str], *, overwrite: bool = False, title: str | None = None) -> None:
        """Write the report: one HTML page that needs nothing else.

        Parameters
        ----------
        path : path
            Of the new file, which is written wholly or not at all.
        overwrite : bool, default False
            Whether a file that is there may be replaced; else it is a FileExistsError.
        title : str, optional
            The heading; names the source if None.
        """
        from penstock.report import write_html

        write_html(self, path, overwrite=overwrite, title=title)

    def to_csv(self, path: str | os.PathLike[str], *, overwrite: bool = False, incidents: bool = False) -> None:
        """Write one line per finding to a .csv or .csv.gz file, the highest score first, or one line per incident.

        Parameters
        ----------
        path, overwrite : as in `to_html`
            See `penstock.report.write_findings`, which also writes JSON and Parquet.
        incidents : bool, default False
            Incidents instead of findings, the most severe first; events where the method has no incidents.
        """
        from penstock.report import check_ending, write_findings, write_incidents

        check_ending(path, (".csv", ".csv.gz"))
        (write_incidents if incidents else write_findings)(self, path, overwrite=overwrite)

    def to_excel(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write an .xlsx file with the sheets incidents (else events), findings, sensors and settings (extra `excel`).

        Parameters
        ----------
        path, overwrite : as in `to_html`
            See `penstock.report.write_findings`.
        """
        from penstock.report import check_ending, write_findings

        check_ending(path, (".xlsx",))
        write_findings(self, path, overwrite=overwrite)

    def plot(self, number: int | None = None) -> Any:
        """Draw the scores over time, or the sensors of one incident, with matplotlib (extra `plots`).

        Parameters
        ----------
        number : int, optional
            Of an incident, or of an event where the method has no incidents; a KeyError if there is none. All scores
            with the threshold and the incidents if None.

        Returns
        -------
        matplotlib Figure
        """
        from penstock.report.figures import plot_case, plot_scores

        return plot_scores(self).figure if number is None else plot_case(self, number)

    def __repr__(self) -> str:
        rows = f"{int(self.flags.sum()):,} of {int(self.rows.scored.sum()):,} rows flagged"
        found = f"{rows}, {counted(len(self.events), 'event')}, {counted(len(self.incidents), 'incident')}"
        return f"<Findings in {self.table.source}: {found}, by {self.assessment.method}. {self.verdict.sentence}>"

    def _repr_html_(self) -> str:
        from penstock.report import notebook_html

        return notebook_html(self)
