"""The whole job as functions, a table in and findings out, and its two halves: fit once, score often."""

from __future__ import annotations

from typing import Any

from penstock.detection._plans import FitPlan, ScorePlan
from penstock.detection.data import DataSummary
from penstock.detection.findings import Findings
from penstock.detection.model import Model
from penstock.options import DetectOptions, FitOptions, LookOptions, ScoreOptions, keyword_options, read_options


@keyword_options(LookOptions)
def look(source: Any, **given: Any) -> DataSummary:
    """Say what is understood of a table before anything is scored: the first part of `detect`.

    Use it first on a new export: it reads as `detect` would, says how the time was read, what each tag is, what would
    be left out, and above all what was read without confidence (`doubts`). It fits nothing.

    Parameters
    ----------
    source : as in `detect`
        A path, a folder, a table, …
    time, columns, exclude, keep, roles, drivers, units, ordered, strict : as in `detect`
        Columns.
    label, fault_values, unknown_values, failures, group, since, until, exclude_periods : as in `detect`
        Rows, and what is known of them.
    reader, checker : as in `detect`
    timezone, day_first, time_format, names, separator, decimal, thousands, missing : as in `detect`
        How the text is written.
    encoding, sheet, query, max_bytes, step, hold : as in `detect`
        Files, and the clock that tags are put on.
    progress : callable, optional
        Called with the name of each stage that begins. None: the logger "penstock.detect" gets it at level INFO.

    Returns
    -------
    DataSummary
        Plain data; `penstock look` prints it.

    Raises
    ------
    penstock.io.TableError
        (a ValueError) if the table cannot be used, as `detect` would.

    Examples
    --------
    >>> import penstock
    >>> rows = {"time": [f"0{day}/02/2024" for day in range(1, 8)], "flow [m³/s]": [3.0, 2.5, 2.0, 2.2, 2.4, 2.9, 3.3]}
    >>> data = penstock.look(rows)
    >>> data.time.how, data.tags[0].unit, data.tags[0].role
    ('dates with the day first', 'm³/s', 'sensor')
    >>> print(data.doubts[0])
    Dates in column 'time' were read with the day first, as the order of the rows suggests, though the month could be first; day_first=False changes it.
    """  # noqa: E501
    return FitPlan.of(read_options(LookOptions, given)).look(source)


@keyword_options(DetectOptions)
def detect(source: Any, **given: Any) -> Findings:
    """Find what is anomalous in a table, when, what belongs together, and which variables are behind it.

    Parameters
    ----------
    source : path, folder, list of paths, a pandas, polars or NumPy table, or a `penstock.io.Table`
        As `penstock.io.read_table` takes it.
    time, columns, exclude, label, group, strict : as in `penstock.io.read_table`
        Of `read_table`. The label is never an input; findings are compared with it. No event spans two groups (runs,
        units, machines). `strict` refuses instead of changing, leaving out or encoding anything.
    keep : names
        Columns of numbers that are inputs even if the check of the columns would leave them out, and columns that look
        like a label, which are no inputs unless they are named here or in `columns`.
    roles : mapping, "column=role", or several of these
        What columns are to the plant, where that is not what their values say: "sensor", "state" (on or off, few
        levels), "setting", "driver", "counter", "quality" or "label"; see `penstock.columns.ColumnReport`.
    drivers : names
        Columns that explain others, such as inflow, level or weather, and are never scored nor named. A method that
        cannot use them so leaves them out. The method sensors also takes columns for drivers that are named like the
        weather, the inflow, the grid or a set point, and a note says which; `roles` changes it.
    fault_values, unknown_values : value or values
        Of the label, those that mean a fault, and those of rows of which nothing is known, which are scored but not
        counted. With `fault_values` all others are normal; without, see `penstock.explain.known_faults`.
    failures : path, or (start, end, text) of each, optional
        A log of known failures, a CSV file with these columns: findings are compared with it, as with a label.
    since, until : time, or row number (from 0) of a table without time
        Use no other rows. Both ends are included; of a day or a month, all of it.
    exclude_periods : "START..END", or several of these, or of pairs
        Periods, such as maintenance, that are neither fitted to nor scored. Times or row numbers as for `since`.
    units : mapping, DataFrame or path, optional
        The unit of each variable (columns name and unit), for explanations; else from names such as "flow [m³/s]".
    method : name or detector
        "auto" is "sensors", `penstock.SensorDetector`, for rows in order of time (a time column, or `ordered`), and
        "detector", `penstock.Detector`, for others; a note says which and why. "nsnmf" is the paper's NS-NMF, with the
        parameters of `penstock.NSNMF()`; the others are `penstock.detection.METHODS`; or any detector of penstock, not
        fitted.
    ordered : bool
        Whether the rows of a table without time stamps are in order of time, evenly spaced.
    parameters : mapping, optional
        Parameters for a method given by name; those left out have the defaults of its class.
    modes : column, rule, "name: rule", several of these, or a mapping of names to rules
        Operating modes, each of which is scored by a model of its own: "power > 5", "state". A column whose values are
        the modes is no input (unless in `keep`), as it never changes within one. At most 50 rules, or 20 values.
    skip_modes : names
        Modes that are not scored. Rows for which no rule holds are of the mode "other".
    settle : duration or number of rows, optional
        Leave out the rows around a change of mode: the last one before it, and of the new mode the first so many rows,
        or those less than this after its first row.
    train_until, train_rule : time, or row number of a table without time; rule
        A period that is known to be good. It alone is fitted to, and findings are among the other rows. Of a day or a
        month without a time, all of it. Rules compare also `time` and `row`, the row number.
    train_periods : "START..END", or several of these, or of pairs
        The same, as periods; given as `exclude_periods`.
    labels : path or labels, optional
        What people said of incidents (`penstock label`, a project): those like them are listed as known, and what was
        called a fault, a defect or maintenance is not fitted to where other rows are known to be good.
    top : int, optional
        The number of findings. If neither this nor a threshold is given: of a series, rows so high that chance would
        show at most one such episode in this period (or in that fitted to, if longer); else 100 rows, the paper's list,
        but at most a twentieth of all, and with a training period the threshold "auto".
    threshold : "auto", share of rows or `penstock.thresholds.Threshold`, optional
        As `contamination` of the detectors; fitted to the training rows. For "detector" with a training period, a
        share is that of normal rows, so the rate of false alarms (`Detector.set_false_alarm_rate`); n training rows
        cannot show rates below 1/(n + 1), which are extrapolated.
    gap : duration or number of rows, optional
        Findings at most so far apart are one event; six times the usual time step if None.
    most_explained : int, optional
        How many events, the most severe, are explained. None: 100, of a long table fewer, but at least 20. 0: none, nor
        is the model described, which saves time where only scores count. `explain` explains further ones.
    random_state : int
        The same seed gives the same findings.
    fit_rows : callable, optional
        How a detector is fitted, called with it and its training rows; by default its own `fit`. `penstock.scale.fit`
        fits on a cluster.
    reader : callable, optional
        How a source is read, called with the arguments of `penstock.io.read_table`, which is the default. A cache of
        tables goes here.
    checker : callable, optional
        How columns are checked, called with a table and its rows to learn from, as `penstock.columns.check_columns`.
    progress : callable, optional
        Called with the name of each stage that begins. None: the logger "penstock.detect" gets it at level INFO.
    timezone, day_first, time_format, names, separator, decimal, thousands : as in `penstock.io.read_table`
        How the text is written; found if not given.
    missing, encoding, sheet, query, max_bytes : as in `penstock.io.read_table`
        Further codes for missing values, and how much is read.
    step, hold : as in `penstock.io.read_table`
        The one clock on which tags with times of their own are put, and how long a reading stands.

    Returns
    -------
    Findings
        Complete: `findings.to_html(path)` and other formats only show it.

    Raises
    ------
    penstock.io.TableError
        (a ValueError) if the table cannot be used; the message says what is wrong, where, and what to do.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> load = 50 + 10 * np.sin(np.arange(600) / 50)
    >>> plant = pd.DataFrame({"load [MW]": load, "bearing [°C]": 30 + load / 2, "flow [m³/s]": load / 5})
    >>> plant += rng.normal(scale=0.2, size=plant.shape)
    >>> plant.iloc[300:304, 1] += 12
    >>> plant.insert(0, "time", pd.date_range("2024-05-01", periods=600, freq="10min"))
    >>> findings = detect(plant)
    >>> findings.verdict.sentence
    '1 incident stands out, near certain; fewer than 0.05 would be expected by chance in 4.16 days.'
    >>> findings.incident_table[["start", "first_sensor"]].iloc[0].astype(str).tolist()
    ['2024-05-03 02:00:00', 'bearing [°C]']
    >>> why = findings.explain(1).variables.iloc[0]
    >>> why["variable"], why["unit"], why["direction"]
    ('bearing [°C]', '°C', 'above')
    """
    return FitPlan.of(read_options(DetectOptions, given)).detect(source)


@keyword_options(FitOptions)
def fit_model(source: Any, **given: Any) -> Model:
    """Fit a table, to score other tables later: the first half of `detect`.

    Parameters
    ----------
    source : as in `detect`
        The training data.
    time, columns, exclude, keep, roles, drivers, label, fault_values, unknown_values, group, strict : as in `detect`
        Columns.
    since, until, exclude_periods, train_until, train_rule, train_periods, modes, skip_modes, settle : as in `detect`
        Rows.
    labels, failures, reader, checker : as in `detect`
        What is known of rows: known faults are not fitted to.
    timezone, day_first, time_format, names, separator, decimal, thousands, missing : as in `detect`
        How the text is written.
    encoding, sheet, query, max_bytes, units, step, hold : as in `detect`
        Files, and the clock that tags are put on, which the model keeps for new data.
    method, ordered, parameters, random_state, fit_rows, progress : as in `detect`
        The detector, and how it is fitted.

    Returns
    -------
    Model
        For `score`, or `save` and `penstock.load`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> usual = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    >>> model = fit_model(usual)
    >>> new = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    >>> new.loc[7, "b"] = 40.0
    >>> score(model, new).top().index.tolist()
    [7]
    """
    return FitPlan.of(read_options(FitOptions, given)).fit(source)


@keyword_options(ScoreOptions).after_two
def score(model: Model, source: Any, **given: Any) -> Findings:
    """Score a table by a model: the second half of `detect`.

    Parameters
    ----------
    model : Model
        Of `fit_model`, or `penstock.load`.
    source : as in `detect`
        New data with the columns that the model knows; one row is enough. It is read as the training data were.
    label : str, optional
        A column to compare the findings with; that of the training data is not looked for.
    group : str, optional
        The column of groups, if it is another than that of the training data. A table without that one is one group.
    fault_values, unknown_values, failures, since, until, exclude_periods : as in `detect`
        Those of the training data are not used.
    reader : as in `detect`
    top, threshold, gap, most_explained : as in `detect`
        By default findings are scores above the threshold "auto" of the training scores.
    strict : bool, optional
        As when the model was fitted if None.
    progress : callable, optional
        Called with the name of each stage that begins. None: the logger "penstock.detect" gets it at level INFO.
    time, timezone, day_first, time_format, names, separator, decimal, thousands : as in `detect`
        If the table is written otherwise than the training data.
    missing, encoding, sheet, query, max_bytes, step, hold : as in `detect`
        Likewise. A model of tags that were put on one clock has it, and refuses another.

    Returns
    -------
    Findings

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> model = fit_model(pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"]), method="knn")
    >>> findings = score(model, pd.DataFrame({"a": [0.0], "b": [0.1], "c": [30.0]}))
    >>> findings.flags.tolist(), findings.explain(1).variables["variable"].iloc[0]
    ([True], 'c')
    """
    return ScorePlan.of(read_options(ScoreOptions, given)).score(model, source)
