"""Recognise columns that say how good readings are, the tags that these are beside, and readings that are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from penstock._types import BoolArray, FloatArray

# What historians write in place of a reading that they do not have, in lower case (system digital states of PI,
# Wonderware, WinCC, Ignition).
BAD_WORDS = frozenset(
    [
        "access denied", "bad", "bad data", "bad input", "bad output", "bad quality", "bad total", "bad_quality",
        "calc crash", "calc failed", "calc off", "calc overflow", "calc timeout", "coerce to zero", "comm fail",
        "comm failure", "comm loss", "configure", "config error", "dcs failed", "device failure", "digital state error",
        "doubtful", "equip fail", "error", "err", "failed", "filter timeout", "flt fail", "i/o timeout",
        "inp out of range",
        "intf shut", "invalid", "invalid data", "invalid float", "math error", "no alarm data",
        "no communication", "no data", "no lab data", "no result", "no sample", "no_data", "no_sample", "not connect",
        "not connected", "not converged", "not_connected", "offline", "opc error", "out of serv", "out of service",
        "over range", "overrange", "pt created", "scan off", "scan timeout", "sensor failure", "shutdown", "snapfix",
        "stale",
        "time out", "timeout", "trace off", "under range", "underrange", "undefined", "unit down", "unknown quality",
        "cell fault", "badinput", "iotimeout", "ungültig", "ungueltig", "schlecht", "störung", "gestört",
        "#value!", "#ref!", "#div/0!", "#num!", "#error",
    ]
)  # fmt: skip
_BAD = re.compile(r"bad([\W_].*|[A-Z].*)?|Bad[A-Z_]?.*|BAD.*")
# In English, German, French, Spanish, Portuguese, Italian, Dutch, Nordic languages, Polish, Czech, Turkish, Russian,
# Chinese, Japanese and Korean.
_STRONG_BAD = frozenset(
    [
        "bad", "schlecht", "mauvais", "mauvaise", "mala", "malo", "invalid", "ungültig", "ungueltig", "invalide",
        "inválido", "invalido", "ruim", "mau", "má", "cattivo", "cattiva", "slecht", "dålig", "dårlig", "zła", "zły",
        "zle", "błędny", "špatná", "špatný", "kötü", "geçersiz", "плохое", "плохо", "плохой", "плохая",
        "недостоверно", "недостоверное", "недостоверный", "坏", "坏值", "差", "不良", "异常", "異常", "无效",
        "無效", "無効", "불량", "나쁨", "비정상", "무효",
    ]
)  # fmt: skip
_STRONG_GOOD = frozenset(
    [
        "good", "gut", "bon", "bonne", "buena", "bueno", "valid", "gültig", "gueltig", "valide", "válido", "valido",
        "bom", "boa", "buono", "buona", "goed", "bra", "god", "godt", "dobra", "dobry", "dobrá", "dobrý", "iyi",
        "geçerli", "хорошее", "хорошо", "хороший", "хорошая", "достоверно", "достоверное", "достоверный", "良好", "良",
        "好", "好值", "有效", "有効", "양호", "좋음", "유효",
    ]
)  # fmt: skip
_UNCERTAIN = frozenset(
    [
        "uncertain", "unsicher", "incertain", "incertaine", "incierto", "questionable", "suspect", "incerto",
        "onzeker", "osäker", "usikker", "niepewna", "niepewny", "nejistá", "belirsiz", "неопределенное",
        "неопределённое", "сомнительное", "不确定", "可疑", "不確か", "不確定", "불확실",
    ]
)  # fmt: skip
_OTHER_GOOD = frozenset(["ok", "o.k.", "normal", "正常", "정상", "норма", "true", "g"])
_LETTERS = frozenset("gbu")  # good, bad and uncertain
_MOST_WORDS = 101  # different ones: as many as there are per cents

_WORD = (
    r"(?:opc|data|tag|ua)?[ _.-]?(?:quality|qual|qualität|qualitaet|qualité|qualite|calidad|güte|guete|qualità"
    r"|qualidade|kwaliteit|kvalitet|jakość|kvalita|kalite|качество|достоверность|质量|品质|品質|품질)"
    r"(?:[ _.-]?s?(?:code|flag|detail|desc|description|bits?|status|string|text|name))?|qc|qstatus|confidence"
    r"|data[ _]?integrity|(?:is[ _]?|percent[ _]?)?good|(?:is[ _]?)?valid(?:ity)?|gültig|gueltig"
    r"|(?:opc|data|quality|tag)?[ _.-]?(?:status|statut|estado|stato|stan|статус|状态|狀態|状態|상태)(?:[ _.-]?code)?"
)
_PLAIN = re.compile(rf"(?:{_WORD})(?:[ _.-]*\(?\d+\)?)?", re.IGNORECASE)
_AFTER = re.compile(rf"(?P<tag>.*?[^\s_.:/,|\[(-])[\s_.:/,|-]*[\s_.:/,|\[(-](?:{_WORD})[\])]?", re.IGNORECASE)
_CAMEL = re.compile(r"(?P<tag>.*[a-zäöü0-9])(?:Opc)?(?:Quality|Status|Qualität)(?:Code|Flag|Detail)?")
_BEFORE = re.compile(
    rf"(?:{_WORD})[\s_.:/,|-]*[\s_.:/,|\[(-](?:(?:of|von|de|for)[\s_])?(?P<tag>[^\s_.:/,|(\[-].*?)[\])]?", re.IGNORECASE
)
_SHORT = re.compile(r"(?P<tag>.*[^\s._])[._][Qq]")  # or a flow
_NAMED = (_AFTER, _CAMEL, _BEFORE, _SHORT)
_UNIT = re.compile(r"\s*[\[(][^\[\]()]*[\])]\s*$")
_VALUE = re.compile(r"(?:[\s_.:/,|-]*(?:value|val|wert|valeur|valor|messwert|reading|pv))$", re.IGNORECASE)

_LOW_BYTE, _LARGEST_DA = 256, 65_535
# 128 to 191 are good in the codes of PROFIBUS PA, which WinCC writes, and stand for nothing in those of OPC.
_GOOD_DA = frozenset([*(code + limit for code in (192, 216) for limit in range(4)), *range(128, 192)])
_UNCERTAIN_DA = frozenset(code + limit for code in (64, 68, 72, 76, 80, 84, 88) for limit in range(4))
_BAD_DA = frozenset(code + limit for code in (0, 4, 8, 12, 16, 20, 24, 28, 32) for limit in range(4))
_UA_UNCERTAIN, _UA_BAD, _UA_END = 2.0**30, 2.0**31, 2.0**32
_SAYS_GOOD = re.compile(r"(?:.*[\s_.:/,|-])?(?:is[ _]?)?(?:good|valid(?:ity)?|gültig|gueltig)", re.IGNORECASE)  # if 1
_SAYS_SHARE = re.compile(r"(?:.*[\s_.:/,|-])?(?:confidence|percent[ _]?good)", re.IGNORECASE)  # in per cent


def is_quality(name: str, values: Any) -> bool:
    """Return whether a column says how good readings are: it is named like that, and has such words or codes.

    Words are good, bad, uncertain and the like. Codes are those of OPC: 192 is good, 64 uncertain and 0 bad, with the
    codes between; or the long ones of OPC UA; or per cent, of which 0 is bad. A code of 0 alone, or 0 and 1, says
    nothing, as systems differ, but where the name says "good" or "valid".

    name : of the column.
    values : its values, as texts or numbers; missing ones do not count.

    >>> is_quality("Druck Status", ["GOOD", "GOOD", "BAD"]), is_quality("P1_quality", [192, 192, 24, 0])
    (True, True)
    >>> is_quality("Status", ["run", "stop"]), is_quality("quality", [97.5, 98.1]), is_quality("level", [192, 0])
    (False, False, False)
    """
    if not named_like_quality(name) or _SHORT.fullmatch(name.strip()):
        return named_like_quality(name) and tells_quality(values)
    different = _different(values)
    if not 0 < len(different) <= _MOST_WORDS:
        return False
    numbers = _as_numbers(different)
    if numbers is not None and _SAYS_SHARE.fullmatch(name.strip()):
        return _are_shares(numbers)
    if numbers is not None and _SAYS_GOOD.fullmatch(name.strip()):
        return set(numbers.tolist()) <= {0.0, 1.0} or _are_da(numbers)
    says_quality = re.search(r"status", name, re.IGNORECASE) is None
    if numbers is not None:
        return _are_da(numbers) or _are_ua(numbers) or (says_quality and set(numbers.tolist()) == {0.0, 100.0})
    words = [str(word).strip() for word in different]
    folded = {word.casefold() for word in words}
    marks = folded <= _LETTERS or folded == {"true", "false"}
    ok = bool(folded & {"ok", "o.k."}) and len(words) > 1
    return _are_words(words) and (_are_strong(words) or (says_quality and (ok or marks)))


def tells_quality(values: Any) -> bool:
    """Return whether values can be nothing but quality, whatever the column is called.

    >>> tells_quality(["Good", "Bad"]), tells_quality([192, 192, 24]), tells_quality(["OK", "FAULT"])
    (True, True, False)
    """
    different = _different(values)
    if not 0 < len(different) <= _MOST_WORDS:
        return False
    numbers = _as_numbers(different)
    if numbers is not None:
        in_hex = all(str(value)[:2].lower() == "0x" for value in different)
        return (in_hex or 192.0 in numbers) and _are_da(numbers)
    words = [str(word).strip() for word in different]
    return _are_words(words) and _are_strong(words)


def is_bad(values: Any, name: str = "") -> BoolArray:
    """Return which readings a quality column calls bad: they are to be treated as missing.

    An uncertain reading is not bad: OPC says that it may be used. A missing quality says nothing.

    values : (n,) of a column for which `is_quality` holds.
    name : of the column. Of 0 and 1, 0 is bad where it says "good" or "valid"; else nothing is known of them.

    >>> is_bad(["Good", "Bad [Device Failure]", "UNCERTAIN", None]).tolist(), is_bad([192, 24, 64, 0]).tolist()
    ([False, True, False, False], [False, True, False, True])
    >>> is_bad([0.0, 2147483648.0, 1073741824.0]).tolist()  # OPC UA
    [False, True, False]
    """
    column = pd.Series(np.asarray(values, dtype=object) if not isinstance(values, pd.Series) else values.to_numpy())
    codes, different = pd.factorize(column)
    numbers = _as_numbers(list(different))
    if numbers is not None:
        bad_kinds = _bad_codes(numbers, bool(_SAYS_GOOD.fullmatch(name.strip())))
    else:
        bad_kinds = np.array([_is_bad_word(str(word).strip()) for word in different], dtype=np.bool_)
    return np.append(bad_kinds, False)[codes]  # -1, a missing one, takes the last


def tag_of(name: str, names: Sequence[str]) -> str | None:
    """Return the column whose readings a quality column is about; None where that cannot be said.

    "Druck Status" is beside "Druck", "P1.Quality" beside "P1" or "P1.Value". A column named only "Status" is beside the
    column before it, if that is the only one since the quality column before, or is named like a value.

    name : of the quality column, one of `names`.
    names : of all columns in order, without those of time.

    >>> names = ["Druck [bar]", "Druck Status", "P1.Value", "P1.Quality", "T1", "Status"]
    >>> [tag_of(name, names) for name in ("Druck Status", "P1.Quality", "Status")]
    ['Druck [bar]', 'P1.Value', 'T1']
    >>> tag_of("Status", ["P1", "P2", "Status"]) is None
    True
    """
    others = [other for other in names if other != name]
    if not is_quality_name(name):
        for pattern in _NAMED:
            found = pattern.fullmatch(name.strip())
            tag = None if found is None else _column_of(found["tag"], others)
            if tag is not None:
                return tag
        return None
    if name not in names:
        return None
    since: list[str] = []
    for other in reversed(names[: list(names).index(name)]):
        if named_like_quality(other):
            break
        since.append(other)
    if not since or (len(since) > 1 and not _VALUE.search(since[0])):
        return None
    return since[0]


def is_quality_name(name: str) -> bool:
    """Return whether a column is called as quality is, and not as that of some tag."""
    return _PLAIN.fullmatch(name.strip()) is not None


def _are_words(words: Sequence[str]) -> bool:
    return all(_is_good(word) or _is_bad_word(word) or _is_uncertain(word) for word in words)


def _are_strong(words: Sequence[str]) -> bool:
    return any(_is_good(word, strong=True) or _is_bad_word(word, strong=True) or _is_uncertain(word) for word in words)


def _are_shares(numbers: FloatArray) -> bool:
    """Return whether numbers are per cent, of good readings or of confidence."""
    return bool(((numbers >= 0) & (numbers <= 100)).all()) and (100.0 in numbers or 0.0 in numbers)


@lru_cache(maxsize=4096)
def named_like_quality(name: str) -> bool:
    """Return whether a column is called as quality is, be it that of some tag."""
    return any(pattern.fullmatch(name.strip()) for pattern in (_PLAIN, *_NAMED))


def _column_of(tag: str, others: Iterable[str]) -> str | None:
    """Return the one column that is called so, perhaps with a unit or the word "value" behind."""
    wanted = tag.strip().casefold()
    plain = [other for other in others if other.strip().casefold() == wanted]
    near = [other for other in others if _VALUE.sub("", _UNIT.sub("", other)).strip().casefold() == wanted]
    fitting = plain or near
    return fitting[0] if len(fitting) == 1 else None


def _different(values: Any) -> list[Any]:
    column = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values, dtype=object))
    return column.dropna().unique().tolist()


def _as_numbers(different: Sequence[Any]) -> FloatArray | None:
    """Return the values as numbers, also those written as 0x80; None if one is no number."""
    try:
        numbers = [int(value, 16) if str(value)[:2].lower() == "0x" else float(value) for value in different]
        return np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _are_da(codes: FloatArray) -> bool:
    """Return whether numbers are codes of OPC DA, at least one of them good; the high byte is the vendor's."""
    if not _are_whole(codes, _LARGEST_DA):
        return False
    low = {int(code) % _LOW_BYTE for code in codes}
    return low <= _GOOD_DA | _UNCERTAIN_DA | _BAD_DA and bool(low & _GOOD_DA)


def _are_ua(codes: FloatArray) -> bool:
    """Return whether numbers are status codes of OPC UA, at least one of them not good; those below 0 are signed."""
    unsigned = np.where(codes < 0, codes + _UA_END, codes)
    return _are_whole(unsigned, _UA_END - 1) and bool((unsigned >= _UA_UNCERTAIN).any())


def _are_whole(codes: FloatArray, largest: float) -> bool:
    return bool(len(codes) and np.isfinite(codes).all() and ((codes >= 0) & (codes <= largest)).all()) and bool(
        (codes == np.floor(codes)).all()
    )


def _bad_codes(codes: FloatArray, says_good: bool) -> BoolArray:
    if _are_da(codes):
        return np.array([int(code) % _LOW_BYTE in _BAD_DA for code in codes], dtype=np.bool_)
    if _are_ua(codes):
        bad: BoolArray = np.where(codes < 0, codes + _UA_END, codes) >= _UA_BAD
        return bad
    known = (100.0 in codes and _are_shares(codes)) or (says_good and set(codes.tolist()) <= {0.0, 1.0})
    return np.asarray((codes == 0.0) & known)


def _first(word: str) -> str:
    return re.split(r"[\W_]", word.casefold(), maxsplit=1)[0]


def _is_good(word: str, strong: bool = False) -> bool:
    known = _first(word) in _STRONG_GOOD or re.match(r"Good[A-Z]", word)
    return bool(known) or (not strong and word.casefold() in _OTHER_GOOD)


def _is_uncertain(word: str) -> bool:
    return _first(word) in (*_UNCERTAIN, "u") or bool(re.match(r"Uncertain[A-Z]", word))


def _is_bad_word(word: str, strong: bool = False) -> bool:
    if _BAD.fullmatch(word) or _first(word) in _STRONG_BAD:
        return True
    return not strong and (word.casefold() in BAD_WORDS or word.casefold() in ("b", "false"))


# Numbers that no sensor reads, and that systems write in place of a missing reading.
MISSING_CODES = (-999.0, -999.25, -9999.0, -99999.0, -999999.0)
_FEWEST_TIMES = 3
_FEWEST_OTHERS = 20
_FEW_LEVELS = 10  # different other values: numbers of states may be far apart, so that
_CODE_FARTHER = 100.0  # times as far is asked of a code among them


def codes_for_missing(ordered: FloatArray) -> dict[float, int]:
    """Return values that repeat, and lie farther from all others than these are apart, with their counts.

    Others are apart by the range of their middle 98 %. No code is 0, which a pump that is off delivers.
    """
    found: dict[float, int] = {}
    while True:
        low, high = float(ordered[0]), float(ordered[-1])
        above = ordered[np.searchsorted(ordered, low, "right") :]
        below = ordered[: np.searchsorted(ordered, high, "left")]
        for value, others in ((low, above), (high, below)):
            if _is_code(value, others, len(ordered) - len(others)):
                found[value] = len(ordered) - len(others)
                ordered = others
                break
        else:
            return found


def _is_code(value: float, others: FloatArray, times: int) -> bool:
    if times < _FEWEST_TIMES or len(others) < _FEWEST_OTHERS or value == 0:
        return False
    cut = len(others) // 100
    with np.errstate(over="ignore"):
        width = float(others[-1 - cut] - others[cut]) or float(others[-1] - others[0])
        distance = float(others[0] - value) if value < others[0] else float(value - others[-1])
    few = 1 + np.count_nonzero(others[1:] != others[:-1]) <= _FEW_LEVELS if distance > width > 0 else False
    return distance > (_CODE_FARTHER * width if few else width) > 0
