"""Headers of plant tables in many languages, with the encodings in which programs there write them."""

from __future__ import annotations

GERMAN = [
    "Zeit;Wärme;Druck",
    "Zeit;Außentemperatur °C;Durchfluß m³/h;Öldruck",
    "Zeitstempel;Kühlwasser Vorlauf;Kühlwasser Rücklauf;Lagertemperatur Süd;Schwingung µm;Ölstand;Füllhöhe Behälter",
    "Zeit;T in °C;V in m³/h",
    "Zeit;Größe",
]
FRENCH = [
    "Date;Débit",
    "Date;Débit entrée;Pression chaudière;Température d'arrêt",
    "Horodatage;Débit d'eau (m³/h);Température extérieure (°C);Niveau réservoir;Vitesse ventilateur n° 2;Clé;Brûleur",
    "Heure;Fréquence;Générateur;Arrêt;Vanne fermée;Contrôle;Humidité relevée à l'arrivée",
    "Heure;Système;Modèle;Première pompe",
]
SPANISH = [
    "Fecha;Presión",
    "Fecha;Presión de entrada;Válvula;Caudal (m³/h);Temperatura máxima",
    "Fecha;Tamaño;Señal;Año;Vibración eje;Posición válvula;Energía",
]
ITALIAN = ["Data;Velocità", "Data;Velocità turbina;Umidità;Più alta;Qualità;Portata (m³/h)"]
PORTUGUESE = [
    "Data;Vazão",
    "Data;Pressão de óleo;Rotação;Vibração;Tensão;Água de refrigeração;Nível;Posições",
]
NORDIC = [
    "Tid;Trykk før ventil;Kjøler;Høyde;Strøm",
    "Tid;Kølevand;Tørring;Måling;Hastighed",
    "Tid;Flöde;Tryck före pump;Läge;Hastighet på fläkt;Ånga",
    "Aika;Lämpötila;Paine;Jäähdytysvesi",
]
POLISH = [
    "Czas;Ciśnienie",
    "Czas;Temperatura łożyska;Przepływ;Prędkość obrotowa;Stopień otwarcia",
    "Data i czas;Ciśnienie pary;Temperatura wody zasilającej;Przepływ oleju;Prąd silnika;Moc czynna;Drgania łożyska",
    "Czas;Ciśnienie [bar];Napięcie;Natężenie prądu;Położenie zaworu;Wartość zadana",
]
CZECH = [
    "Čas;Průtok",
    "Čas;Teplota ložiska;Tlak páry;Otáčky;Příkon;Průtok vody",
    "Čas měření;Teplota vstupní vody;Tlak oleje;Otáčky čerpadla;Proud motoru;Vibrace ložiska;Zatížení;Přívod vzduchu",
]
HUNGARIAN = [
    "Idő;Hőmérséklet;Nyomás",
    "Időbélyeg;Külső hőmérséklet;Gőznyomás;Vízszint;Szűrő nyomásesés;Fordulatszám;Működés",
]
RUSSIAN = [
    "Время;Давление",
    "Дата;Температура подшипника;Расход воды;Уровень;Вибрация",
    "Дата и время;Давление пара, МПа;Температура питательной воды, °C;Расход масла, т/ч;Ток двигателя;Мощность",
    "T;P;Расход",
    "ВРЕМЯ;ТЕМПЕРАТУРА;ДАВЛЕНИЕ",
]
UKRAINIAN = ["Час;Тиск;Витрата;Температура підшипника", "Час;Тиск пари;Рівень води;Потужність двигуна;Швидкість"]
GREEK = ["Ώρα;Πίεση;Θερμοκρασία", "Ημερομηνία;Πίεση ατμού;Θερμοκρασία νερού;Ροή;Στάθμη δεξαμενής"]
TURKISH = ["Zaman;Basınç;Sıcaklık", "Tarih;Buhar basıncı;Yağ sıcaklığı;Debi;Titreşim;Güç;Akış"]
SIMPLIFIED = [
    "时间,温度",
    "时间,流量,压力",
    "时间戳,轴承温度(℃),进口压力(MPa),出口流量(m3/h),电机电流,振动",
    "日期,1号泵转速,2号泵转速,阀门开度,液位,主蒸汽温度,给水流量,冷却水温度,发电机功率,报警",
    "采集时间,锅炉给水压力,除氧器水位,汽轮机转速,凝汽器真空,循环水泵电流,引风机振动",
]
TRADITIONAL = [
    "時間,溫度",
    "時間,流量,壓力",
    "時間,軸承溫度,進口壓力,出口流量,馬達電流,振動",
    "日期,一號泵轉速,閥門開度,液位,主蒸汽溫度,給水流量,冷卻水溫度,發電機功率,警報",
]
JAPANESE = [
    "時刻,温度",
    "日時,圧力,流量",
    "日時,軸受温度,入口圧力,出口流量,モーター電流,振動",
    "タイムスタンプ,ポンプ回転数,バルブ開度,タンク液位,主蒸気温度,給水流量,冷却水温度,発電機出力,警報",
    "ｼﾞｺｸ,ｵﾝﾄﾞ,ｱﾂﾘｮｸ,ﾎﾟﾝﾌﾟ",
]
KOREAN = [
    "시간,온도",
    "시간,유량,압력",
    "시간,베어링 온도,입구 압력,출구 유량,전동기 전류,진동",
    "일시,펌프 회전수,밸브 개도,탱크 수위,주증기 온도,급수 유량,냉각수 온도,발전기 출력,경보",
]
# Other words than those the finder was made with.
FURTHER = {
    "cp1252": [
        "Zeit;Förderhöhe;Stößel;Hülse;Maß",
        "Zeit;Kälte;Gehäuse;Schaltschränke",
        "Zeit;Ü1;Ä2",
        "Zeit;Störung;Zählerstand;Spülung",
        "Zeit;Spannung;Fläche m²;Dichte kg/m³",
        "Date;Étage;Énergie;Échangeur;Eau réchauffée",
        "Heure;Réglage;Côté droit;Fuite détectée;État",
        "Date;Pompe n°1;Débit réel;Qualité;Dépression",
        "Date;Puissance générée;Légende;Évaporateur;Fumées;Opération;Système;Arrivée d'air",
        "Date;Hélice;Mélangeur;Goulotte;Four à chaux;Tête;Contrôlé;Température fumées;Pièce",
        "Fecha;Tensión;Potencia;Compresión;Número;Módulo;Código",
        "Fecha;Línea;Área;Níquel;Carbón;Baño",
        "Data;Pressione;Velocità;Portata;Capacità;Densità;Elettricità",
        "Data;Nível;Médio;Máximo;Mínimo;Bomba d'água",
        "Data;Operação;Condição;Manutenção;Estação",
        "Tid;Åpning;Kjølevann;Nivå;Trykkfall;Lås",
        "Tid;Rør;Tilløb;Fødevand;Gennemstrømning;Blæser",
        "Tid;Värme;Kyla;Mätare;Nivå;Öppning;Växel",
        "Aika;Pyörimisnopeus;Höyry;Säiliö;Tärinä;Öljy",
        "time;T [°C];dT [±K]",
        "time;Schwingweg [µm];Fläche",
        "time;5 µS/cm;Ø 20 mm",
        "time;Ø",
        "time;«flow»",
        "time;flow – max",
        "Débit;Façade;Reçu",
        "Zeit;Prozeß;Meßwert",
        "Temps;Brûleur;Coût;Sûreté",
        "time;T°;P",
        "Zeit;Temp. Lager (°C);Öl (°C)",
    ],
    "cp1250": [
        "Czas;Łożysko",
        "Czas;Zużycie;Wilgotność;Ciepła woda;Powietrze wlotowe;Wyłącznik",
        "Czas;Stężenie;Gęstość;Poziom;Wartość;Zasilanie;Obroty",
        "Czas;Częstotliwość;Wydajność;Różnica",
        "Data;Godzina;Żużel;Ciąg",
        "Čas;Hladina v nádrži;Ventilátor;Účinnost",
        "Čas;Napětí;Proud;Výkon;Kmitočet",
        "Čas;Vlhkost;Zpětná voda;Ohřev;Chladič;Měření",
        "Dátum;Teplota;Prietok;Tlak;Otáčky;Rýchlosť",
        "Čas;Pretok;Tlak;Temperatura ležaja;Moč",
        "Vrijeme;Protok;Tlak;Brzina vrtnje;Ležaj;Količina",
        "Idő;Feszültség;Áramerősség;Teljesítmény",
        "Idő;Légnyomás;Szelep állás;Olajhőmérséklet;Tengely rezgés;Hűtővíz",
        "Timp;Presiune;Debit apă;Temperatură lagăr;Viteză;Turaţie",
    ],
    "cp1251": [
        "Время;Ток;Напряжение",
        "Дата;Обороты;Насос №1;Клапан",
        "Т_масла;Р_воды;Q_газа",
        "Дата;Частота вращения;Уровень в баке;Состояние;Авария",
        "Час;Наруга;Струм",
        "Време;Налягане;Дебит;Мощност",
        "Время;Температура, °С;Скорость;Влажность;Концентрация щёлочи",
        "дата;расход;ур. бака",
    ],
    "gbk": [
        "时间,入口温度",
        "日期时间,1#机组有功功率,1#机组无功功率,励磁电压",
        "时间,炉膛负压,煤粉浓度",
        "序号,时间,扬程,含沙量",
        "时间,湿度,噪声",
        "记录时间,浓度,酸碱度",
        "时间,油位,油温",
        "日期,产量,能耗,电耗",
    ],
    "big5": [
        "時間,濕度",
        "日期,鍋爐水位,蒸汽壓力",
        "時間,電壓,電流,功率",
        "時間,油溫,油位,轉數",
        "紀錄時間,濃度,流速",
    ],
    "shift_jis": [
        "時間,湿度",
        "日付,ボイラ水位,蒸気圧力",
        "時刻,電圧,電流,電力",
        "時刻,油温,油量",
        "測定日時,濃度,流速,風量",
        "年月日,炉内温度,燃料流量,排ガス",
        "時刻,値",
    ],
    "euc_kr": [
        "시각,습도",
        "날짜,보일러 수위,증기 압력",
        "시간,전압,전류,전력",
        "측정시간,농도,풍속,풍량",
        "시간,윤활유 온도,진공도",
        "날짜,부하율",
    ],
    "cp1253": [
        "Χρόνος;Τάση;Ισχύς",
        "Ημερομηνία;Στροφές;Αντλία;Βαλβίδα",
    ],
    "cp1254": [
        "Zaman;Hız;Gerilim;Akım;Güç",
        "Tarih;Su seviyesi;Yağ;Titreşim;Çıkış",
    ],
}
LANGUAGES = {
    "cp1252": GERMAN + FRENCH + SPANISH + ITALIAN + PORTUGUESE + NORDIC,
    "cp1250": POLISH + CZECH + HUNGARIAN,
    "cp1251": RUSSIAN + UKRAINIAN,
    "cp1253": GREEK,
    "cp1254": TURKISH,
    "gbk": SIMPLIFIED,
    "big5": TRADITIONAL,
    "shift_jis": JAPANESE,
    "euc_jp": JAPANESE[:4],
    "euc_kr": KOREAN,
    "koi8_r": RUSSIAN,
    "utf-16-le": GERMAN + POLISH + RUSSIAN + SIMPLIFIED + JAPANESE + KOREAN,
    "utf-16-be": GERMAN + POLISH + RUSSIAN + SIMPLIFIED + JAPANESE + KOREAN,
    "utf-16": GERMAN + POLISH + RUSSIAN + SIMPLIFIED + JAPANESE + KOREAN,
}


def encoded_tables(n_rows: int = 30) -> list[tuple[str, str, bytes]]:
    """Return the encoding, the header and the bytes of a table with rows of numbers, for each header."""
    tables = []
    for encoding, headers in [*LANGUAGES.items(), *FURTHER.items()]:
        for header in headers:
            separator = ";" if ";" in header else ","
            width = header.count(separator)
            rows = [
                separator.join([f"2024-03-{1 + n // 24:02} {n % 24:02}:00:00", *[f"{n}.{k}" for k in range(width)]])
                for n in range(n_rows)
            ]
            tables.append((encoding, header, "\n".join([header, *rows, ""]).encode(encoding)))
    return tables
