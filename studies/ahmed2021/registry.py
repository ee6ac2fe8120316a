"""Where the data sets of the study come from, and what is known to differ from the paper's.

The twenty sets of the paper's Table 1 (tbl:1) are files of the DAMI collection of Campos et al. (2016), which has each
set in many variants: with or without duplicates, scaled or not, and with the anomalies down-sampled in ten draws. The
paper names no files; these are the variants whose anomalies and attributes are the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import pandas as pd

from studies.ahmed2021 import paper

_DRAW = "which of the collection's ten draws of anomalies the paper used is not said, and this is the first"


@dataclass(frozen=True)
class Entry:
    """One data set: the collection's `archive` and the `file` in it, and what that holds.

    exact : "yes" if rows, attributes and anomalies are as the paper prints them, "reconstructed" if no copy of the file
        was found and the one of the study's folder was made from others by the same rules, else "no".
    duplicate_rows : rows that are equal to an earlier one in all attributes, in the file of the study's folder.
    differs : one sentence on what differs from the paper's set, and why; "" if nothing is known to.
    sha256 : of the archive, where someone has published it.
    """

    name: str
    archive: str
    file: str
    n: int
    p: int
    anomalies: int
    duplicate_rows: int = 0
    exact: str = "no"
    differs: str = ""
    sha256: str | None = None


def provenance() -> pd.DataFrame:
    """List the twenty sets in the order of the paper's Table 1: what they are, and what the paper prints.

    >>> frame = provenance()
    >>> frame.loc["Arrhythmia", ["file", "n", "paper_n", "exact"]].to_dict()
    {'file': 'Arrhythmia_withoutdupl_norm_05_v01', 'n': 256, 'paper_n': 450, 'exact': 'no'}
    >>> int((frame["exact"] == "yes").sum())
    8
    """
    frame = _framed(
        _TWENTY, {key: key for key in ("file", "n", "p", "anomalies", "exact", "duplicate_rows", "differs")}
    )
    for place, column in enumerate(("n", "p", "anomalies"), start=4):
        frame.insert(place, f"paper_{column}", paper.characteristics[column])
    return frame


def variants() -> pd.DataFrame:
    """List the sets in addition to the twenty: other variants of some of them, by name.

    >>> variants().loc["WBC_nodup", ["of", "file", "n"]].to_dict()
    {'of': 'WBC', 'file': 'WBC_withoutdupl_norm_v01', 'n': 223}
    """
    columns = {"of": "archive", **{key: key for key in ("file", "n", "p", "anomalies", "duplicate_rows", "differs")}}
    return _framed(_VARIANTS, columns)


def names() -> list[str]:
    """List the twenty data sets, in the order of the paper's Table 1.

    >>> len(names()), names()[:2]
    (20, ['Annthyroid', 'Arrhythmia'])
    """
    return list(_TWENTY)


def known_names() -> list[str]:
    """List the twenty and their variants."""
    return [*_TWENTY, *_VARIANTS]


def entry(name: str) -> Entry:
    """Return what is known of a data set.

    >>> entry("Glass").file
    'Glass_withoutdupl_norm'
    >>> entry("glas")
    Traceback (most recent call last):
    ValueError: There is no data set 'glas'. Did you mean Glass?
    """
    found = _TWENTY.get(name) or _VARIANTS.get(name)
    if found is None:
        raise unknown_name(name, known_names())
    return found


def unknown_name(name: str, known: list[str]) -> ValueError:
    """Return the error for a name that is none of these, with those nearest to it."""
    lowered = {candidate.lower(): candidate for candidate in sorted(known)}
    close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known are {', '.join(sorted(known))}."
    return ValueError(f"There is no data set {name!r}. {hint}")


def _framed(entries: dict[str, Entry], columns: dict[str, str]) -> pd.DataFrame:
    """Make a row per entry; `columns` are names of columns and the fields they show."""
    rows = [{column: getattr(each, field) for column, field in columns.items()} for each in entries.values()]
    return pd.DataFrame(rows, index=pd.Index(list(entries), name="dataset"))


def _drawn(complete: int, n: int, anomalies: int, before: str = "") -> str:
    """For a set that the paper's n does not belong to."""
    return (
        f"Table 1 prints the {complete:,} rows of the complete set{before} with the {anomalies:,} anomalies of a "
        f"down-sampled one, which has {n:,} rows"
    )


def _genuine(complete: int, n: int, anomalies: int) -> str:
    return f"{_drawn(complete, n, anomalies)}; {_DRAW}."


def _rebuilt(complete: int, n: int, anomalies: int, of_anomalies: int, copy: str = "the collection's file") -> str:
    """For a set whose draw was not found: `copy` has all rows without duplicates, `of_anomalies` of them anomalies."""
    return (
        f"{_drawn(complete, n, anomalies, ' before duplicates were removed')}; the file of the study's folder is a "
        f"reconstruction, the {n - anomalies:,} normal rows of {copy} and a seeded draw of {anomalies:,} of its "
        f"{of_anomalies:,} anomalies, scaled again, where a download has the first of the collection's ten draws."
    )


_SAME_COUNTS = f"The counts are the paper's; {_DRAW}."
# SHA-256 of the archives that other projects' public loaders check, for those that any was found for.
_PUBLISHED = {
    "Ionosphere": "6e4b224f6270b2626fe4fc9f888f1c0f317c4642b241ebb32fb534cc97b2b0da",
    "Lymphography": "1ecb8fc1cc86960bbbe604d8fbf058f01bf4035af1165cc32470f9dced77a8f8",
}
# name: file, n, p, anomalies, duplicate rows, exact, what differs; in the order of tbl:1.
_PAPER_SETS: dict[str, tuple[str, int, int, int, int, str, str]] = {
    "Annthyroid": (
        "Annthyroid_withoutdupl_norm_05_v01", 6942, 21, 347, 0, "reconstructed", _rebuilt(7200, 6942, 347, 534),
    ),
    "Arrhythmia": ("Arrhythmia_withoutdupl_norm_05_v01", 256, 259, 12, 0, "no", _genuine(450, 256, 12)),
    "Cardiotocography": (
        "Cardiotocography_withoutdupl_norm_05_v01", 1734, 21, 86, 2, "reconstructed", _rebuilt(2126, 1734, 86, 466),
    ),
    "HeartDisease": ("HeartDisease_withoutdupl_norm_05_v01", 157, 13, 7, 0, "no", _genuine(270, 157, 7)),
    "PageBlocks": (
        "PageBlocks_withoutdupl_norm_02_v01", 4982, 10, 99, 0, "reconstructed", _rebuilt(5473, 4982, 99, 510),
    ),
    "Parkinson": ("Parkinson_withoutdupl_norm_10_v01", 53, 22, 5, 0, "no", _genuine(195, 53, 5)),
    "Pima": ("Pima_withoutdupl_norm_05_v01", 526, 8, 26, 0, "no", _genuine(768, 526, 26)),
    "SpamBase": (
        "SpamBase_withoutdupl_norm_10_v01", 2808, 57, 280, 0, "reconstructed",
        _rebuilt(4601, 2808, 280, 1679, "ADBench's copy of the collection's file"),
    ),
    "Stamps": ("Stamps_withoutdupl_norm_05_v01", 325, 9, 16, 0, "no", _genuine(340, 325, 16)),
    "WBC": (
        "WBC_norm_v01", 454, 9, 10, 231, "yes",
        f"The counts are those of the variant that keeps its duplicates, 231 of 454 rows; {_DRAW}.",
    ),
    "Waveform": ("Waveform_withoutdupl_norm_v01", 3443, 21, 100, 0, "yes", _SAME_COUNTS),
    "WPBC": ("WPBC_withoutdupl_norm", 198, 33, 47, 0, "yes", ""),
    "WDBC": ("WDBC_withoutdupl_norm_v01", 367, 30, 10, 0, "yes", _SAME_COUNTS),
    "ALOI": (
        "ALOI_withoutdupl_norm", 49534, 27, 1508, 0, "no",
        "Table 1 prints the 50,000 rows from before 466 duplicates were removed; the file of the study's folder is "
        "ADBench's copy, which is rounded to six decimals, while a download is not.",
    ),
    "KDDCup99": (
        "KDDCup99_withoutdupl_norm_idf", 48113, 40, 200, 0, "reconstructed",
        "Table 1 prints the 60,632 rows and 41 attributes of the collection's overview with the 200 anomalies of its "
        "file without duplicates, which has 48,113 rows (60,839 with duplicates) and 40 attributes, a constant one "
        "being left out; the file of the study's folder is a reconstruction from the original records by the "
        "collection's rules.",
    ),
    "Shuttle": ("Shuttle_withoutdupl_norm_v01", 1013, 9, 13, 0, "yes", _SAME_COUNTS),
    "Ionosphere": ("Ionosphere_withoutdupl_norm", 351, 32, 126, 1, "yes", ""),
    "Glass": ("Glass_withoutdupl_norm", 214, 7, 9, 1, "yes", ""),
    "PenDigits": ("PenDigits_withoutdupl_norm_v01", 9868, 16, 20, 0, "yes", _SAME_COUNTS),
    "Lymphography": (
        "Lymphography_withoutdupl_norm_idf", 148, 18, 6, 0, "no",
        "Table 1 prints 19 attributes, as the collection's overview does (3 and 16), which presumably counts the "
        "class: the files have 18.",
    ),
}  # fmt: skip

_ALL = "The complete set, with all anomalies."
# name: the set it is a variant of, file, n, p, anomalies, duplicate rows, what differs from that set.
_OTHER_SETS: dict[str, tuple[str, str, int, int, int, int, str]] = {
    "Annthyroid_full": ("Annthyroid", "Annthyroid_withoutdupl_norm_07", 7129, 21, 534, 0, _ALL),
    "Arrhythmia_full": ("Arrhythmia", "Arrhythmia_withoutdupl_norm_46", 450, 259, 206, 0, _ALL),
    "Cardiotocography_full": ("Cardiotocography", "Cardiotocography_withoutdupl_norm_22", 2114, 21, 466, 4, _ALL),
    "HeartDisease_full": ("HeartDisease", "HeartDisease_withoutdupl_norm_44", 270, 13, 120, 0, _ALL),
    "PageBlocks_full": ("PageBlocks", "PageBlocks_withoutdupl_norm_09", 5393, 10, 510, 0, _ALL),
    "Parkinson_full": (
        "Parkinson", "Parkinson_withoutdupl_norm_75", 195, 22, 147, 0,
        "The complete set, with all anomalies; the file of the study's folder is ADBench's copy, scaled again.",
    ),
    "Pima_full": ("Pima", "Pima_withoutdupl_norm_35", 768, 8, 268, 0, _ALL),
    "SpamBase_full": (
        "SpamBase", "SpamBase_withoutdupl_norm_40", 4207, 57, 1679, 0,
        "The complete set, with all anomalies; seven attributes that the down-sampled files round to whole numbers are "
        "not rounded here.",
    ),
    "SpamBase_05v10": (
        "SpamBase", "SpamBase_withoutdupl_norm_05_v10", 2661, 57, 133, 0,
        "The collection's tenth draw of anomalies down to 5 % of the rows.",
    ),
    "Stamps_full": ("Stamps", "Stamps_withoutdupl_norm_09", 340, 9, 31, 0, _ALL),
    "WBC_nodup": ("WBC", "WBC_withoutdupl_norm_v01", 223, 9, 10, 0, "Without duplicates."),
    "KDDCup99_withdup": (
        "KDDCup99", "KDDCup99_norm_idf", 60839, 40, 246, 12726,
        "With duplicates; the file of the study's folder is a reconstruction from the original records.",
    ),
    "Lymphography_1ofn": (
        "Lymphography", "Lymphography_withoutdupl_norm_1ofn", 148, 47, 6, 0,
        "Each category is a column of zeros and ones.",
    ),
}  # fmt: skip

_TWENTY = {
    name: Entry(name, name, file, n, p, anomalies, duplicates, exact, differs, _PUBLISHED.get(name))
    for name, (file, n, p, anomalies, duplicates, exact, differs) in _PAPER_SETS.items()
}
_VARIANTS = {
    name: Entry(name, of, file, n, p, anomalies, duplicates, "no", differs, _PUBLISHED.get(of))
    for name, (of, file, n, p, anomalies, duplicates, differs) in _OTHER_SETS.items()
}
