"""Find the encoding of a text that is not UTF-8, by what its letters would be: files and streams share this.

charset-normalizer alone errs on headers of a few words (it reads 14 of 21 German, French, Spanish and Nordic headers
of tests/support/encoded_headers.py wrongly). So each encoding that plants use is first asked for its own evidence, the
share of its letters that are usual in its languages; charset-normalizer decides about the rest. cp1252 is preferred.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock._messages import option

_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_MOST_EVIDENCE = 2**16  # bytes of words that are not ASCII
_LONGEST_REST = 2**20  # bytes of a line without an end that are kept
_CUT = re.compile(rb'[\t\n\r;,"]+')  # no byte of these is the second of a character, in any encoding tried here
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_WORD = re.compile(r"[^\W\d_]+")
_ENOUGH, _CLEAR = 0.5, 0.15  # the share of usual letters that will do, and the lead over the next that is clear
_SURE_LETTERS = 4  # so many letters that are not ASCII

# Letters beyond ASCII of languages that are written in cp1252, and in cp1250. Of the first those are marked that
# would be another letter in cp1250; they count only where these languages have them.
_WESTERN = {
    "German": "äöüß", "French": "àâçéèêëîïôœùûü", "Italian": "àèéìíòóùú", "Spanish": "áéíñóúü",
    "Portuguese": "áâãàçéêíóôõúü", "Danish": "æøåéä", "Swedish": "åäöé",
}  # fmt: skip
_CENTRAL = {
    "Polish": "ąćęłńóśźż", "Czech": "áčďéěíňóřšťúůýž", "Slovak": "áäčďéíĺľňóôŕšťúýž", "Hungarian": "áéíóöőúüű",
    "Romanian": "ăâîşţ", "Croatian": "čćđšž",
}  # fmt: skip
_TURKISH = {"Turkish": "çğıöşüâîİ"}
_FITS_WEST = re.compile(
    r"è(?=[bcdfglmnpqrstv]{1,2}(?:e|s?\b))|è\b|(?<=o)ù\b|[ùòì]\b|œ(?=[uid])|ñ(?=[aeiouáéíóú])|ø(?![aeioáéíì])|õ(?=e)|ã(?!\b)"
    r"|û(?=[trlm])|[êï](?=[a-z])|[æ](?=[a-zøå])|[àåëçâî]"
)
_DISPUTED = frozenset("èùòìœñøõãûêïæàå")  # another letter in cp1250
_SIGNS = frozenset("°±µ§·«»–—‘’“”„…€®©™‰№\xa0")  # the same in all of cp1250 to cp1254, or in those that have them
_DISPUTED_SIGNS = frozenset("²³¹½¼¾ºª¿£¥×÷")  # letters in another
_UNITS = re.compile(
    r"(?:(?<![^\W\d_])[kcdmµNS]?m|\bft|\bin|\bs|\bh)[²³]|[²³](?![^\W\d_])|µ(?=\w)|°\s?[CFK]?\b|[nN][°º]"
)

_RUSSIAN, _UKRAINIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", "іїєґ"
_GREEK = "αεηιοςστρνκλμπυωάέήίόύώδθγβφχξζψ"
# Characters that are frequent in names of measurements, and in general.
_HAN = (
    "时间日期年月分秒号温度压力流量液位电机泵阀门轴承振动转速功率频率开关进出口水油气汽蒸给冷却循环主锅炉风引送除氧器真空凝汽轮发电流压差高低上下左右前后内外"
    "状态报警数据值名称设定反馈累计瞬时采集系统设备单元组点一二三四五六七八九十的是在有和中大小不人为这了我他到个们来地子要以会可对生能而行方同过多"
    "热塔罐管换加料煤渣灰浓含量质燃烧室磨矿浆沉降池厂站线路段区总平均最实际效率負荷负载指令位置行程角室环境湿大气压表绝对变频启停运行故障信号通道通信测量检测控制调节"
    "侧端体入排回供净化脱硫硝烟尘氨钠钙氯酸碱盐铁铜钢轧窑球辊皮带秤称重长宽厚颜色标准参考计划班次批产品工序"
)
_HAN_TRADITIONAL = (
    "時間日期年月分秒號溫度壓力流量液位電機泵閥門軸承振動轉速功率頻率開關進出口水油氣汽蒸給冷卻循環主鍋爐風引送除氧器真空凝輪發流差高低上下左右前後內外"
    "狀態警報數據值名稱設定回饋累計瞬時系統設備單元組點一二三四五六七八九十的是在有和中大小不人為這了我他到個們來地子要以會可對生能而行方同過多馬達"
    "熱塔槽管換加料煤灰濃含質燃燒室磨礦漿池廠站線路段區總平均最實際效負荷載指令置程角環境濕錶絕變啟停運故障信號通道測量檢控制調節側端體入排供淨化硫煙塵"
)
_KANJI = (
    "時刻日間年月分秒号温度圧力流量液位電機動弁軸受振転速出入口水油気蒸給冷却循環主炉風送器真空発電回数開閉度上下左右前後内外高低状態警報値名称設定計瞬系統設備点"
    "一二三四五六七八九十大小中人生産品工場行方同熱塔槽管換料炭灰濃含質燃焼室池線路区総平均最実効率負荷指令置角環境湿変運停故障信測定検制御調節側端体排供浄化硫煙測定"
)
_HANGUL = (
    "시간일자온도유량압력베어링입출구전동기류진펌프회수밸브개탱크위주증발급냉각경보력속년월분초가나다라마바사아자차카타파하이그는을를의에로고한지정상태값이름설비번호"
    "공장제어측최대소평균합계부하터빈보일러연료유수질농점검신호운행정지고장알람모터전압전류주파효율습풍팬축오일배관저장열교환실내외기준목표실적누적순시단계센서채널데이터"
)


@dataclass(frozen=True)
class TextEncoding:
    """An encoding, what to do with bytes that do not fit, and whether it is sure."""

    name: str
    errors: str = "strict"
    sure: bool = True

    def note(self, source: str) -> str:
        """Say which encoding was taken, and how to change it."""
        change = f"name another ({option('encoding')}) if names or texts look wrong"
        if self.errors != "strict":
            return f"{source} is UTF-8 with some bytes that are not, shown as \ufffd; {change}."
        if self.sure:
            return f"{source} was read as {self.name}, as it is not UTF-8; {change}."
        return f"{source} was read as {self.name}, which is not certain: it is not UTF-8. Check the names; {change}."


UTF8 = TextEncoding("utf-8")


def marked_encoding(start: bytes) -> str | None:
    """Return UTF-16 or UTF-32, if the first bytes show it: by a mark, or as every second byte is zero."""
    for mark, encoding in _BOMS.items():
        if start.startswith(mark):
            return encoding
    even = start[: len(start) // 2 * 2]
    if even.count(0) * 5 < len(even) or len(even) < 8:
        return None
    for encoding in ("utf-16-le", "utf-16-be"):
        text = even.decode(encoding, errors="replace").removesuffix("\ufffd")
        plain = sum(sign.isprintable() or sign in "\t\r\n" for sign in text)
        if plain == len(text) and 3 * sum(sign.isascii() for sign in text) > len(text):
            return encoding
    return None


def find_encoding(chunks: Iterable[bytes]) -> TextEncoding:
    """Return the encoding of a text that is not UTF-8, by all its words that are not ASCII.

    >>> find_encoding(["Zeit;Außentemperatur;Öldruck\\n1;2;3\\n".encode("cp1252")]).name
    'cp1252'
    >>> find_encoding(["时间,轴承温度,进口压力\\n1,2,3\\n".encode("gbk")]).name
    'gb18030'
    """
    words = _evidence(chunks)
    together = b"\n".join(words)
    high = len(_HIGH.findall(together))
    as_utf8 = sum(map(len, _UTF8.findall(together)))
    if as_utf8 > 0.8 * high:
        return TextEncoding("utf-8", "replace")
    found = sorted(((share, name, letters) for name, share, letters in _shares(words)), key=lambda each: -each[0])
    best, name, letters = found[0] if found else (0.0, "", 0)
    next_best = next((share for share, other, _ in found[1:] if other != name), 0.0)
    if best >= _ENOUGH:
        clear = best - next_best >= _CLEAR or name == "cp1252"
        return TextEncoding(name, sure=clear and best >= 0.6 and (letters >= _SURE_LETTERS or name == "cp1252"))
    return _by_charset_normalizer(together)


def _evidence(chunks: Iterable[bytes]) -> list[bytes]:
    """Return the different fields that hold a byte above 127, up to some number of bytes."""
    fields: dict[bytes, None] = {}
    size, rest = 0, b""
    for chunk in chunks:
        last = chunk.rfind(b"\n") + 1
        if not last and len(rest) < _LONGEST_REST:
            rest += chunk
            continue
        lines, rest = rest + chunk[:last], chunk[last:]
        new = [] if lines.isascii() else [field for field in _CUT.split(lines) if not field.isascii()]
        size += sum(len(field) for field in new if field not in fields)
        fields.update(dict.fromkeys(new))
        if size > _MOST_EVIDENCE:
            return list(fields)
    fields.update(dict.fromkeys(field for field in _CUT.split(rest) if not field.isascii()))
    return list(fields)


def _shares(words: list[bytes]) -> Iterable[tuple[str, float, int]]:
    """Yield each encoding that all words can be read in, its share of usual letters, and the number of letters."""
    for name, usual in _CANDIDATES:
        try:
            text = "\n".join(word.decode(name) for word in words)
        except UnicodeDecodeError:
            continue
        letters = sum(not sign.isascii() for sign in text)
        yield name, usual(text), letters


def _in_alphabets(text: str, alphabets: dict[str, str], *, west: bool) -> float:
    """Return the greatest share of letters that one language has, in places where it has them."""
    bare = "".join(sign for sign in _UNITS.sub("", text) if sign not in _SIGNS)
    signs = [sign for sign in bare if not sign.isascii()]
    if not signs:
        return 1.0 if west else 0.0  # units and quotes alone
    alone = re.sub(r"[^\s()\[\]/]*[^\W\d_][^\s()\[\]/]*", "", bare)  # what does not touch a letter
    good = sum(sign in _DISPUTED_SIGNS for sign in alone)
    words = "".join(word for word in _WORD.findall(bare) if len(word) < 3 or any(map(str.isascii, word)))
    good += max(sum(sign.lower() in alphabet or sign in alphabet for sign in words) for alphabet in alphabets.values())
    if west:
        lower = bare.lower()
        good += sum(found in _DISPUTED for found in _FITS_WEST.findall(lower))
        good -= sum(sign in _DISPUTED for sign in lower)
    return max(0, good) / len(signs)


def _east_asian(usual: str, charset: str, leads: tuple[int, int], kana: str = "") -> Callable[[str], float]:
    """Return the share of usual characters; others of the frequent half of the character set count as 0.4."""
    known, symbols = frozenset(usual), frozenset("℃°㎥㎡№、。，：；（）［］【】％・ー　１２３４５６７８９０")

    def worth(sign: str) -> float:
        if sign in known or sign in symbols or (kana and kana[0] <= sign <= kana[1]):
            return 1.0
        lead = sign.encode(charset, errors="ignore")[:1]
        return 0.4 if lead and leads[0] <= lead[0] <= leads[1] else 0.0

    def share(text: str) -> float:
        signs = [sign for sign in text if not sign.isascii()]
        return sum(map(worth, signs)) / max(1, len(signs))

    return share


def _cased(usual: str) -> Callable[[str], float]:
    """Return the share of letters in words that are written as words are: Xxx, xxx or XXX, with usual letters."""
    frequent, every = frozenset(usual[:10]), frozenset(usual)

    def share(text: str) -> float:
        good = common = letters = 0
        for word in _WORD.findall(text):
            own = [sign for sign in word.lower() if not sign.isascii()]
            regular = word.islower() or word.isupper() or word.istitle()
            if regular and len(own) == len(word) and every.issuperset(own):
                good += len(own)
            letters += len(own)
            common += sum(sign in frequent for sign in own)
        signs = sum(not sign.isascii() and sign not in _SIGNS for sign in text)
        as_usual = 1.0 if letters < 4 else min(1.0, common / (0.6 * letters))  # seven in ten letters are frequent
        return as_usual * good / max(1, signs)

    return share


_japanese = _east_asian(_KANJI, "shift_jis", (0x88, 0x97), "\u3041\u30fc")


def _half_width(text: str) -> float:
    """Return the share of usual signs of Japanese, where katakana may be of half the width, in runs."""
    runs = sum(len(run) for run in re.findall(r"[\uff66-\uff9f]{3,}", text))
    return _japanese(text) + 0.7 * runs / max(1, sum(not sign.isascii() for sign in text))


_CANDIDATES: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("cp1252", lambda text: _in_alphabets(text, _WESTERN, west=True)),
    ("cp1250", lambda text: _in_alphabets(text, _CENTRAL, west=False)),
    ("cp1254", lambda text: _in_alphabets(text, _TURKISH, west=False)),
    ("cp1251", _cased(_RUSSIAN + _UKRAINIAN)),
    ("koi8_r", _cased(_RUSSIAN)),
    ("cp866", _cased(_RUSSIAN)),
    ("cp1253", _cased(_GREEK)),
    ("gb18030", _east_asian(_HAN, "gb2312", (0xB0, 0xD7))),
    ("big5", _east_asian(_HAN_TRADITIONAL, "big5", (0xA4, 0xC6))),
    ("cp932", _half_width),
    ("euc_jp", _japanese),
    ("cp949", _east_asian(_HANGUL, "euc_kr", (0xB0, 0xC8))),
)


def _by_charset_normalizer(together: bytes) -> TextEncoding:
    """Ask charset-normalizer; what it says of few words is never sure."""
    from charset_normalizer import from_bytes

    best = from_bytes(together).best()
    if best is not None and best.encoding not in ("ascii", "utf_8") and best.coherence > 0:
        return TextEncoding(best.encoding.replace("_", "-"), sure=False)
    try:
        together.decode("cp1252")
    except UnicodeDecodeError:
        return TextEncoding("latin-1", sure=False)
    return TextEncoding("cp1252", sure=False)
