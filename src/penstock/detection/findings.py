"""The record that `detect` and `score` return: plain data, complete when it is returned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock._parameters import check_whole_number
from penstock._types import BoolArray, FloatArray
from penstock.columns import InputChoice
from penstock.detection._parts import Contributions, JudgedPart
from penstock.detection.data import DataSummary
from penstock.explain import Agreement, Events, Incident, RuleTree
from penstock.io import Note, Table

if TYPE_CHECKING:
    from penstock.detection._explaining import Explanation, ModeGroups, ModeTree
    from penstock.detection._shifts import Shift
    from penstock.detection.verdict import Verdict


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
    inputs : InputChoice
        Which columns were used, encoded or left out.
    names, units : tuple of str, mapping
        Of the inputs; a unit is "" where it is unknown.
    values, expected : DataFrame
        The inputs and what they are compared with, both in the user's units. Expected is the mean of the usual rows
        most like a finding, NaN for other rows; of a method that rebuilds rows (`rebuilt`), what it rebuilds of each
        row that was judged; of one that judges series, what an input should read given the others of its row.
    ranges : (p,) array
        The widest range in which an input was learnt, 1 where it has none: what counts as one in a residual.
    scores : (n,) array
        High is anomalous; NaN where a row was not judged. With several modes in units of the mode's usual score; those
        of `penstock.Detector` stay what they are: 0 is usual in every mode, and less is possible.
    seen : (n,) array
        The share of the inputs that the row has readings of.
    modes : (n,) array of str
        The operating mode of each row, "all" where no modes were given.
    judged, trained, flags : (n,) arrays of bool
        Which rows have a score, were learnt from, and are findings.
    threshold : float
        Scores above it are findings. Of a list of the top N: midway between the last one and the next; if these are
        equal it is their score, and of the rows with that score the earlier ones are findings.
    grouped : Events
        Which rows belong to which event.
    events : DataFrame
        One row per event, in order of the rows, with the same columns for all methods: start, end, duration, rows,
        peak, peak_row, peak_score, mean_score, expected_by_chance, rank; of a table with groups also `group`. Without
        time, start, end and peak are row numbers of the source. `expected_by_chance` is how many episodes as high a
        normal period of this length has, of methods that judge rows one by one how many rows as high a normal table of
        this size has; NaN where `chance_unknown` says why.
    days : DataFrame
        The days that findings fall on: rows, events and the highest score of each. Empty without time stamps.
    ranking : DataFrame
        One row per finding, the highest score first; see `top`.
    parts : tuple of JudgedPart
        The model of each mode, and where its rows are.
    method : str
        The class of the detector.
    notes : tuple of Note
        Everything that was changed, left out or odd, in the order in which it came up.
    settings : mapping
        What was asked for and what it ran on, to repeat it.
    self_judged : bool
        Whether the rows judged are those learnt from.
    rebuilt : bool
        Whether `expected` is what the method rebuilds of a row, as factorisations do.
    verdict : Verdict
        Whether anything stands out, how sure that is, and the same as a sentence.
    incidents, incident_table : tuple of Incident, DataFrame
        Of methods that judge rows in order of time: events of one cause put together, with the sensors behind each, the
        one to look at first in front, when each left its range, and similar earlier incidents. `penstock.explain`
        describes both. Empty for methods that judge rows one by one, and where nothing stands out.
    stretches : DataFrame
        The stretches with the highest scores that are no incidents, as more than one as high would be expected by
        chance, or nothing stands out: columns as of `incident_table`.
    shifts : tuple of Shift
        Tags that differ from the good period throughout the later rows: the model no longer fits, as a note says. What
        lasts as long is no incident.
    evidence : (n, p) array or None
        Of the same methods, how far each input is from what is usual, given the others and over time: 1 at its edge.
    chance_unknown : str
        Why it is not known how many as high would be expected by chance; "" where it is known.
    threshold_expected : float
        How many episodes or rows above the threshold would be expected by chance; NaN where that is not known.
    agreement : Agreement or None
        How the findings compare with a label column, if there is one.
    contributions : Contributions or None
        Of findings of `penstock.Detector`, what makes up their scores.
    shares : (events, p) array or None
        What each input adds to the scores of an event's rows, as shares; NaN where that is not known.
    explanations : mapping of int to Explanation
        Why an event is one, of the most severe events; `explain` gives those of the others.
    rule_tree : RuleTree or None
        A classification tree of all findings against the other judged rows; None where there are no others.
    groups, trees : tuples of ModeGroups, ModeTree
        Per mode, the latent groups of its detector, and a drawing of its spanning tree; only of detectors with these.

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
    inputs: InputChoice
    names: tuple[str, ...]
    units: Mapping[str, str]
    values: pd.DataFrame
    expected: pd.DataFrame
    ranges: FloatArray
    scores: FloatArray
    seen: FloatArray
    modes: NDArray[np.str_]
    judged: BoolArray
    trained: BoolArray
    flags: BoolArray
    threshold: float
    grouped: Events
    events: pd.DataFrame
    days: pd.DataFrame
    ranking: pd.DataFrame
    parts: tuple[JudgedPart, ...]
    method: str
    notes: tuple[Note, ...]
    settings: Mapping[str, Any]
    self_judged: bool
    rebuilt: bool
    verdict: Verdict
    incidents: tuple[Incident, ...] = ()
    incident_table: pd.DataFrame = field(default_factory=pd.DataFrame)
    stretches: pd.DataFrame = field(default_factory=pd.DataFrame)
    shifts: tuple[Shift, ...] = ()
    evidence: FloatArray | None = None
    chance_unknown: str = ""
    threshold_expected: float = float("nan")
    agreement: Agreement | None = None
    contributions: Contributions | None = None
    shares: FloatArray | None = None
    explanations: Mapping[int, Explanation] = field(default_factory=dict)
    rule_tree: RuleTree | None = None
    groups: tuple[ModeGroups, ...] = ()
    trees: tuple[ModeTree, ...] = ()

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
        return self.ranking if n is None else self.ranking.head(n)

    def explain(self, event: int) -> Explanation:
        """Return why an event is one: the variables behind it, the nearest normal rows, and a rule.

        The most severe events are explained already (`explanations`); others are explained at each call.

        Parameters
        ----------
        event : int
            Its number in `events`; a KeyError if there is none.
        """
        from penstock.detection._explaining import explain

        known = self.explanations.get(event)
        return explain(self, event) if known is None else known

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
        return (
            f"<Findings in {self.table.source}: {int(self.flags.sum()):,} of {int(self.judged.sum()):,} rows, "
            f"{len(self.events):,} events>"
        )

    def _repr_html_(self) -> str:
        from penstock.report import notebook_html

        return notebook_html(self)
