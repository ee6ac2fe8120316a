"""The figures of Ahmed et al. (2021) as data: what the paper reports, typed in from its tables and its prose.

Rows are in the order of the paper's table; data sets have the names of :mod:`studies.ahmed2021.datasets`.

``true_positives``
    True detections of the five NMF methods on the twenty data sets, tbl:TPR.
``lomst_true_positives``
    NS-NMF against LoMST with its practical k, tbl:TPRL. The paper does not give the best k.
``deep_true_positives``
    NS-NMF against AER (headed "Autoencoder") and DAGMM, tbl:TPRDL.
``characteristics``
    Rows (n), attributes (p) and anomalies of the data sets, tbl:1. Several n are of the sets before down-sampling.
``run_times``
    Minutes on ALOI, from words such as "almost eight hours"; ``stated`` has the words.
``claims``
    Numbers of the prose and of the tables that summarise others; ``where`` has the LaTeX label of the place.

>>> from studies.ahmed2021 import paper
>>> paper.true_positives.loc["WDBC"].to_dict()
{'NS-NMF': 7, 'Online NS-NMF': 6, 'NMF': 1, 'GNMF': 6, 'SNMF': 6}
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

# tbl:1. Public benchmark data sets used in the performance evaluation study: n, |O|, p, as printed.
_CHARACTERISTICS = {
    "Annthyroid": (7200, 347, 21),
    "Arrhythmia": (450, 12, 259),
    "Cardiotocography": (2126, 86, 21),
    "HeartDisease": (270, 7, 13),
    "PageBlocks": (5473, 99, 10),
    "Parkinson": (195, 5, 22),
    "Pima": (768, 26, 8),
    "SpamBase": (4601, 280, 57),
    "Stamps": (340, 16, 9),
    "WBC": (454, 10, 9),
    "Waveform": (3443, 100, 21),
    "WPBC": (198, 47, 33),
    "WDBC": (367, 10, 30),
    "ALOI": (50000, 1508, 27),
    "KDDCup99": (60632, 200, 41),
    "Shuttle": (1013, 13, 9),
    "Ionosphere": (351, 126, 32),
    "Glass": (214, 9, 7),
    "PenDigits": (9868, 20, 16),
    "Lymphography": (148, 6, 19),
}

# tbl:TPR, tbl:TPRL and tbl:TPRDL, whose columns of NS-NMF are the same. Numbers of true positive detections.
_METHODS = ["NS-NMF", "Online NS-NMF", "NMF", "GNMF", "SNMF", "LoMST", "AER", "DAGMM"]
_DETECTIONS = {
    "Glass": (4, 2, 1, 1, 1, 3, 0, 0),
    "Pima": (8, 4, 2, 2, 2, 8, 4, 1),
    "WBC": (9, 7, 2, 8, 8, 8, 6, 2),
    "Stamps": (4, 2, 3, 3, 2, 2, 3, 0),
    "Shuttle": (2, 2, 0, 0, 0, 6, 0, 0),
    "PageBlocks": (21, 27, 30, 19, 14, 32, 19, 19),
    "HeartDisease": (5, 4, 0, 4, 4, 4, 2, 2),
    "PenDigits": (0, 1, 0, 0, 0, 2, 0, 5),
    "Lymphography": (5, 4, 4, 4, 2, 6, 3, 3),
    "Waveform": (9, 9, 3, 6, 4, 1, 3, 4),
    "Cardiotocography": (29, 15, 27, 29, 29, 27, 29, 27),
    "Annthyroid": (27, 15, 15, 13, 10, 16, 10, 94),
    "Parkinson": (3, 3, 1, 2, 2, 2, 0, 1),
    "ALOI": (193, 145, 78, 117, 87, 185, 371, 47),
    "WDBC": (7, 6, 1, 6, 6, 6, 4, 5),
    "Ionosphere": (92, 74, 79, 74, 33, 101, 63, 79),
    "WPBC": (11, 9, 11, 8, 9, 9, 10, 9),
    "KDDCup99": (102, 97, 49, 93, 75, 39, 83, 82),
    "SpamBase": (47, 41, 32, 36, 23, 45, 31, 61),
    "Arrhythmia": (4, 3, 2, 3, 3, 3, 2, 2),
}

# section5.1, the paragraphs around tbl:TPR. Minutes on ALOI, with the words they are read from.
_RUN_TIMES = {
    "NS-NMF": (120.0, "one quarter of that time"),
    "Online NS-NMF": (15.0, "an approximately 32-fold improvement over SNMF"),
    "NMF": (12.0, "around 12 mins"),
    "GNMF": (35.0, "[around] 35 mins"),
    "SNMF": (480.0, "almost eight hours"),
}

OFFLINE = ("NS-NMF", "NMF", "GNMF", "SNMF")
# tbl:3. Performance comparison of the four offline methods, in numbers of data sets.
_PERFORMANCE = {
    "Better": (16, 1, 0, 0),
    "Equal": (3, 2, 2, 2),
    "Close": (0, 4, 9, 6),
    "Worse": (1, 13, 9, 12),
    "mean rank": (1.2, 3.1, 2.6, 3.1),
}

# What is claimed, of which method, the number, and the label of the table or section (DNN is the appendix).
_CLAIMS = (
    ("Friedman p-value of the four offline methods", "all", 1.23e-7, "section5.1"),
    ("Conover p-value with Bonferroni, NS-NMF against", "NMF", 7.11e-21, "tbl:11"),
    ("Conover p-value with Bonferroni, NS-NMF against", "GNMF", 3.40e-15, "tbl:11"),
    ("Conover p-value with Bonferroni, NS-NMF against", "SNMF", 7.11e-21, "tbl:11"),
    ("data sets worse than GNMF", "NS-NMF", 0, "section5.1"),
    ("data sets worse than SNMF", "NS-NMF", 0, "section5.1"),
    ("data sets worse than NMF", "SNMF", 7, "section5.1"),
    ("data sets better than Online NS-NMF", "NS-NMF", 15, "section5.1"),
    ("data sets better than NS-NMF", "Online NS-NMF", 2, "section5.1"),
    ("data sets best or tied, without offline NS-NMF", "Online NS-NMF", 14, "section5.1"),
    ("data sets best or tied, without offline NS-NMF", "NMF", 6, "section5.1"),
    ("data sets best or tied, without offline NS-NMF", "GNMF", 7, "section5.1"),
    ("data sets best or tied, without offline NS-NMF", "SNMF", 5, "section5.1"),
    ("times faster than SNMF on ALOI", "Online NS-NMF", 32, "section5.1"),
    ("times faster than SNMF on ALOI", "NS-NMF", 4, "section5.1"),
    ("data sets better than LoMST", "NS-NMF", 14, "section5.1b"),
    ("data sets better than NS-NMF", "LoMST", 5, "section5.1b"),
    ("data sets tied with LoMST", "NS-NMF", 1, "section5.1b"),
    ("data sets better than LoMST, p above 20", "NS-NMF", 10, "section5.1b"),
    ("data sets better than NS-NMF, p above 20", "LoMST", 1, "section5.1b"),
    ("data sets better than LoMST, p below 20", "NS-NMF", 4, "section5.1b"),
    ("data sets better than NS-NMF, p below 20", "LoMST", 4, "section5.1b"),
    ("data sets tied with LoMST, p below 20", "NS-NMF", 1, "section5.1b"),
    ("data sets uniquely best of NS-NMF, AER, DAGMM", "NS-NMF", 15, "DNN"),
    ("data sets uniquely best of NS-NMF, AER, DAGMM", "DAGMM", 3, "DNN"),
    ("data sets uniquely best of NS-NMF, AER, DAGMM", "AER", 1, "DNN"),
    ("data sets where NS-NMF and AER tie for the best", "NS-NMF", 1, "DNN"),
    ("common to the top 100 of all four methods, power plant", "all", 27, "section5.2"),
    ("common to the top 100 of offline and online, power plant", "NS-NMF", 46, "section5.2"),
)


def _table(rows: Mapping[str, tuple[int, ...]], columns: list[str]) -> pd.DataFrame:
    table = pd.DataFrame.from_dict(dict(rows), orient="index", columns=columns)
    return table.rename_axis(index="data set")


characteristics = _table(_CHARACTERISTICS, ["n", "anomalies", "p"])[["n", "p", "anomalies"]]
_detections = _table(_DETECTIONS, _METHODS)
true_positives = _detections[_METHODS[:5]]
lomst_true_positives = _detections[["NS-NMF", "LoMST"]]
deep_true_positives = _detections[["NS-NMF", "AER", "DAGMM"]]
run_times = pd.DataFrame.from_dict(_RUN_TIMES, orient="index", columns=["minutes", "stated"]).rename_axis("method")
_summary = [
    (statement, method, number, "tbl:3")
    for statement, numbers in _PERFORMANCE.items()
    for method, number in zip(OFFLINE, numbers, strict=True)
]
claims = pd.DataFrame([*_summary, *_CLAIMS], columns=["claim", "method", "value", "where"]).astype({"value": "float64"})
