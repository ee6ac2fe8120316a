"""Ten small plants of ten fields for `abroad.py`: control loops, drivers, operating changes, noise, rounding, gaps.

Each is a difference equation of a step a minute, and knows three faults of its own. In a faulty record the fault is
there for 300 to 700 rows of the last half; which columns are at fault is written beside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KEPT = 3000
ROWS = KEPT + 500  # the first five hundred, until the loops have settled, are thrown away
FAULTS: dict[str, dict[str, tuple[str, ...]]] = {
    "exchangers": {"fouling": ("t_first", "t_hot_mid"), "stuck-valve": ("valve",), "bias-t_out": ("t_out",)},
    "compressors": {"leak": ("p_header", "flow_in"), "bearing": ("vibration2", "t_bearing2"), "open-recycle":
                    ("recycle",)},
    "greenhouse": {"stuck-vent": ("vent",), "weak-heater": ("t_pipe", "heating"), "bias-humidity": ("humidity",)},
    "waterworks": {"leak": ("flow_zone2", "p_zone2"), "worn-pump": ("flow_pump1", "power_pump1"), "frozen-p_zone3":
                   ("p_zone3",)},
    "turbine": {"gear-cooling": ("t_gear", "t_oil"), "stuck-pitch": ("pitch",), "slow-anemometer": ("wind",)},
    "battery": {"tired-cell": ("v4",), "lost-cooling": ("t0", "t1", "t2", "t3"), "bias-current": ("current",)},
    "distillation": {"fouled-reboiler": ("steam", "t_steam"), "flooding": ("dp",), "frozen-tray3": ("tray3",)},
    "datacentre": {"fan": ("fan3", "t_out3"), "stuck-valve": ("valve",), "bias-t_in2": ("t_in2",)},
    "elevator": {"door-friction": ("door_current",), "brake-drag": ("t_brake", "current"), "bearing": ("vibration",)},
    "fermenter": {"clogged-air": ("airflow", "p_air"), "fouled-jacket": ("t_jacket", "cooling"), "bias-ph":
                  ("ph", "base")},
}  # fmt: skip


class Loop:
    """A controller with a proportional and an integral part, and limits."""

    def __init__(self, gain: float, reset: float, low: float = 0.0, high: float = 1.0, at: float = 0.5) -> None:
        self.gain, self.reset, self.low, self.high, self.sum = gain, reset, low, high, at

    def __call__(self, error: float) -> float:
        self.sum = min(max(self.sum + self.gain * error / self.reset, self.low), self.high)
        return min(max(self.sum + self.gain * error, self.low), self.high)


class World:
    """What drives one record, what is wrong in it and since when, and the log of its sensors."""

    def __init__(self, fault: str, seed: int) -> None:
        self.rng, self.fault = np.random.default_rng(seed), fault
        self.since = int(self.rng.integers(ROWS - 1300, ROWS - 800))
        self.until = self.since + int(self.rng.integers(300, 700))
        self.force = float(self.rng.uniform(0.6, 1.4))
        self.rows: list[dict[str, float]] = []

    def bad(self, fault: str, i: int, growing: int = 1) -> float:
        """How strong this fault is now: it grows to its full strength in so many rows."""
        if fault != self.fault or not self.since <= i < self.until:
            return 0.0
        return self.force * min(1.0, (i - self.since + 1) / growing)

    def sway(self, mean: float, daily: float, walk: float, period: int = 1440) -> list[float]:
        """A day's course and a slow walk around it."""
        steps, level, out = self.rng.normal(size=ROWS), 0.0, []
        phase = self.rng.uniform(0, 2 * np.pi)
        for i in range(ROWS):
            level = 0.99 * level + 0.14 * walk * float(steps[i])
            out.append(mean + daily * float(np.sin(2 * np.pi * i / period + phase)) + level)
        return out

    def plan(self, low: float, high: float, every: int = 300) -> list[float]:
        """Operating points that are held for a while."""
        out: list[float] = []
        while len(out) < ROWS:
            out += [float(self.rng.uniform(low, high))] * int(self.rng.integers(every // 2, 2 * every))
        return out[:ROWS]

    def log(self, **values: float) -> None:
        self.rows.append(values)


def exchangers(w: World) -> None:
    t_in, flow, goal, heat = w.sway(20, 3, 1), w.plan(8, 12), w.plan(68, 75, 600), Loop(0.02, 20)
    first = out = mid = 50.0
    seen, steam = 70.0, 0.5
    for i in range(ROWS):
        valve = heat(goal[i] - seen)
        valve = steam if w.bad("stuck-valve", i) else valve
        hot, u = 90 + 0.3 * (t_in[i] - 20), 6 * (1 - 0.3 * w.bad("fouling", i, 200))
        first += 0.1 * (t_in[i] + u / (u + flow[i]) * (hot - t_in[i]) - first)
        mid += 0.1 * (hot - 0.6 * (first - t_in[i]) - mid)
        steam += 0.3 * (valve - steam)
        out += 0.1 * (first + 600 * steam / flow[i] - out)
        seen = out + 3 * w.bad("bias-t_out", i, 100)
        w.log(t_in=t_in[i], flow=flow[i], goal=goal[i], t_first=first, t_hot=hot, t_hot_mid=mid, valve=valve,
              steam=steam * 100, t_out=seen, dp=0.02 * flow[i] ** 2)  # fmt: skip


def compressors(w: World) -> None:
    demand, air, share, speed = w.sway(50, 8, 3), w.sway(15, 5, 1), w.plan(0.4, 0.6, 500), Loop(0.05, 15)
    header, t1, t2 = 60.0, 55.0, 55.0
    for i in range(ROWS):
        n = speed(60 - header) * 100
        recycle = max(0.0, (45 - demand[i]) / 40) + 0.25 * w.bad("open-recycle", i)
        one, two = 1.2 * n * share[i], 1.2 * n * (1 - share[i])
        header += 0.05 * ((one + two) * (1 - recycle) - demand[i] - 8 * w.bad("leak", i))
        t1 += 0.03 * (air[i] + 0.7 * one + 20 - t1)
        t2 += 0.03 * (air[i] + 0.7 * two + 20 + 12 * w.bad("bearing", i, 200) - t2)
        w.log(demand=demand[i], p_header=header, speed=n, recycle=recycle, flow_in=one + two, flow1=one, flow2=two,
              t_air=air[i], t_bearing1=t1, t_bearing2=t2, power=0.11 * n * (one + two) / 10, vibration1=1 + one / 50,
              vibration2=1 + two / 50 + 0.5 * w.bad("bearing", i, 200))  # fmt: skip


def greenhouse(w: World) -> None:
    cloud, outside, day = w.sway(0.7, 0, 0.2), w.sway(8, 5, 1), w.sway(0, 1, 0)
    heat, vent, inside, pipe, wet, soil, co2 = Loop(0.15, 60), Loop(-0.2, 60), 20.0, 40.0, 70.0, 30.0, 600.0
    for i in range(ROWS):
        sun = max(0.0, day[i]) * 700 * min(max(cloud[i], 0.1), 1)
        opening = 0.5 if w.bad("stuck-vent", i) else vent(25 - inside)
        fire = heat(19 - inside)
        weak = w.bad("weak-heater", i)
        pipe += 0.05 * (25 - 4 * weak + 45 * fire * (1 - 0.5 * weak) - pipe)
        air = 0.02 + 0.3 * opening
        inside += 0.05 * (0.02 * sun + 0.25 * (pipe - inside) - (0.4 + 2 * air) * (inside - outside[i]))
        watering = float(soil < 28)
        soil += 0.4 * watering - 0.01 - 0.00004 * sun
        wet += 0.05 * (0.02 * sun + 12 * watering - air * (wet - 55) * 3 + 0.3 * (72 - wet))
        co2 += 0.05 * (900 - co2 - 0.5 * sun) * 0.2 - air * (co2 - 410) * 0.1
        w.log(sun=sun, t_outside=outside[i], t_inside=inside, t_pipe=pipe, heating=fire, vent=opening, co2=co2,
              humidity=wet + 8 * w.bad("bias-humidity", i, 150), soil=soil, watering=watering)  # fmt: skip


def waterworks(w: World) -> None:
    zones = [w.sway(mean, mean / 3, 1, period) for mean, period in ((12, 1440), (9, 720), (6, 1440))]
    level, on, main = 3.0, True, 5.0
    for i in range(ROWS):
        on = True if level < 2.5 else False if level > 4 else on
        use = [max(0.5, zone[i]) for zone in zones]
        use[1] += 4 * w.bad("leak", i)
        pump1, pump2 = 24 * on * (1 - 0.2 * w.bad("worn-pump", i, 200)), 14.0 * (level < 3.2)
        main += 0.2 * (2.5 + 0.6 * level + 0.02 * (pump1 + pump2) - 0.01 * sum(use) - main)
        level += 0.004 * (pump1 + pump2 - sum(use))
        w.log(level=level, flow_pump1=pump1, flow_pump2=pump2, power_pump1=(6 + 0.3 * pump1) * on + 0.5,
              power_pump2=0.5 * pump2 + 0.5, p_main=main, **{f"flow_zone{k + 1}": q for k, q in enumerate(use)},
              **{f"p_zone{k + 1}": main - (0.004 + 0.002 * k) * q**2 for k, q in enumerate(use)})  # fmt: skip


def turbine(w: World) -> None:
    wind, air, turn = w.sway(9, 2, 2.5), w.sway(8, 4, 1), w.sway(200, 40, 15)
    rotor, blade, gear, oil, coil, nacelle, face = 12.0, 2.0, 55.0, 45.0, 60.0, 20.0, 200.0
    pitch = Loop(-2, 20, 0, 25, 2)
    for i in range(ROWS):
        v = max(0.0, wind[i] + 0.5 * float(w.rng.normal()))
        ask = pitch(15 - rotor)
        blade += 0.0 if w.bad("stuck-pitch", i) else 0.5 * (ask - blade)
        force = max(0.0, v**2 * (1 - blade / 25) / 8)
        power = min(2050.0, max(0.0, 12 * (rotor - 6) ** 2))
        rotor += 0.1 * (0.9 * force + 6 - power / 150 - 0.3 * rotor)
        gear += 0.02 * (air[i] + 25 + power / 60 + 14 * w.bad("gear-cooling", i, 150) - gear)
        oil += 0.02 * (0.75 * gear + 0.2 * air[i] - oil)
        coil += 0.03 * (air[i] + 20 + power / 35 - coil)
        nacelle += 0.02 * (air[i] + 6 + power / 300 - nacelle)
        face += np.clip(turn[i] - face, -3, 3) * (abs(turn[i] - face) > 8)
        w.log(wind=v * (1 - 0.2 * w.bad("slow-anemometer", i)), rotor=rotor, pitch=blade, power=power, t_gear=gear,
              t_oil=oil, t_coil=coil, t_nacelle=nacelle, t_air=air[i], direction=turn[i], nacelle=float(face),
              vibration=0.2 + rotor / 40 + 0.02 * abs(v - 9))  # fmt: skip


def battery(w: World) -> None:
    ask, air, charge = w.plan(-60, 60, 60), w.sway(22, 4, 1), 0.6
    inner, temps = w.rng.uniform(0.9, 1.1, 8) * 1.5e-3, [25.0] * 4
    spread = w.rng.normal(0, 0.01, 8)
    for i in range(ROWS):
        current = abs(ask[i]) if charge < 0.2 else -abs(ask[i]) if charge > 0.9 else ask[i]
        current += float(w.rng.normal())
        charge += current / 60000
        pump, clear = float(max(temps) > 27), 1 - 0.5 * w.bad("lost-cooling", i, 100)
        for k in range(4):
            warmth = 0.0004 * current**2 * (1 + 0.1 * k)
            temps[k] += 0.02 * (5 * warmth + clear * (0.25 * (air[i] - temps[k]) - 0.3 * pump * (temps[k] - 18)))
        weak = np.where(np.arange(8) == 3, 1 + 0.8 * w.bad("tired-cell", i, 150), 1)
        volts = 3.3 + 0.7 * charge + 0.15 * np.tanh(8 * (charge - 0.5)) + spread + inner * weak * current
        w.log(current=current + 4 * w.bad("bias-current", i), charge=100 * charge, total=float(volts.sum()), pump=pump,
              t_air=air[i], **{f"v{k + 1}": float(v) for k, v in enumerate(volts)},
              **{f"t{k}": t for k, t in enumerate(temps)})  # fmt: skip


def distillation(w: World) -> None:
    feed, warm, goal, top = w.plan(90, 110, 500), w.sway(60, 4, 1), w.plan(83, 87, 900), Loop(-0.05, 40)
    boil, trays, drum, sump, steam = Loop(0.04, 40), [68.0, 74.0, 81.0, 90.0, 98.0], 50.0, 50.0, 0.5
    for i in range(ROWS):
        reflux, valve = top(70 - trays[0]), boil(goal[i] - trays[2])
        steam += 0.2 * (valve - steam)
        heat = steam * (1 - 0.25 * w.bad("fouled-reboiler", i, 200))
        ends = [62 - 6 * (reflux - 0.5), *trays, 104 + 25 * (heat - 0.5)]
        for k in range(5):
            pull = 0.06 * (ends[k] - 2 * ends[k + 1] + ends[k + 2])
            trays[k] += pull + 0.004 * (k == 2) * (warm[i] - 60) - 0.002 * (k > 1) * (feed[i] - 100)
        distil, bottoms = 0.9 * drum, 1.1 * sump
        drum += 0.02 * (feed[i] * (0.45 + 0.2 * (heat - 0.5)) - distil)
        sump += 0.02 * (feed[i] * (0.55 - 0.2 * (heat - 0.5)) - bottoms)
        surge = w.bad("flooding", i)
        w.log(feed=feed[i], t_feed=warm[i], goal=goal[i], reflux=100 * reflux, steam=100 * steam, drum=drum, sump=sump,
              t_steam=130 + 20 * (steam - 0.5) + 8 * w.bad("fouled-reboiler", i, 200), distillate=distil,
              bottoms=bottoms, dp=20 + 15 * heat + surge * (6 + 4 * float(w.rng.normal())),
              **{f"tray{k + 1}": t for k, t in enumerate(trays)})  # fmt: skip


def datacentre(w: World) -> None:
    loads = [w.sway(30 + 5 * k, 6, 4) for k in range(4)]
    outside, goal, cool, fans = w.sway(16, 6, 1), w.plan(22, 24, 700), Loop(-0.1, 40), [Loop(-0.05, 30) for _ in "1234"]
    supply, back, opening, hot = 12.0, 17.0, 0.5, [33.0] * 4
    cold = 22.0
    for i in range(ROWS):
        ask = cool(goal[i] - cold)
        opening += 0.0 if w.bad("stuck-valve", i) else 0.3 * (ask - opening)
        speeds = [loop(34 - t) for loop, t in zip(fans, hot, strict=True)]
        speeds[2] *= 1 - 0.35 * w.bad("fan", i)
        for k in range(4):
            hot[k] += 0.15 * (cold + loads[k][i] / (1.5 + 3 * speeds[k]) - hot[k])
        back += 0.1 * (supply + sum(load[i] for load in loads) / 28 - back)
        supply += 0.1 * (11 + 0.06 * outside[i] - supply)
        cold += 0.05 * (float(np.mean(hot)) - 2 - 16 * opening - cold)
        w.log(t_outside=outside[i], goal=goal[i], t_supply=supply, t_return=back, valve=opening,
              power=sum(load[i] for load in loads) + 40 * opening + 8 * sum(s**3 for s in speeds),
              **{f"load{k + 1}": loads[k][i] for k in range(4)}, **{f"fan{k + 1}": speeds[k] for k in range(4)},
              **{f"t_out{k + 1}": hot[k] for k in range(4)},
              **{f"t_in{k + 1}": cold + 0.3 * k + 2 * (k == 1) * w.bad("bias-t_in2", i) for k in range(4)})  # fmt: skip


def elevator(w: World) -> None:
    where, goal, speed, load, wait, door = 0.0, 0.0, 0.0, 0.0, 0, 0.0
    motor, brake, hall = 30.0, 28.0, w.sway(22, 3, 0.5)
    for i in range(ROWS):
        if abs(goal - where) < 0.05 and wait == 0:
            goal, wait, load = 3.0 * w.rng.integers(0, 12), int(w.rng.integers(6, 30)), float(w.rng.uniform(0, 800))
        wait = max(0, wait - 1)
        door += 0.5 * (float(wait > 3) - door)
        speed = 0.0 if wait else float(np.clip(0.4 * (goal - where), max(-2, speed - 0.7), min(2, speed + 0.7)))
        where += speed
        drag = w.bad("brake-drag", i) * (abs(speed) > 0)
        current = 3 + abs(speed) * (5 + 0.012 * abs(load - 400) * (1 if speed > 0 else 0.6)) + 5 * drag
        motor += 0.01 * (hall[i] + 1.2 * current - motor)
        brake += 0.01 * (hall[i] + 4 + 3 * (speed == 0) + 18 * drag - brake)
        moving = abs(float(wait > 3) - door) > 0.05
        w.log(position=where, goal=goal, speed=speed, load=load, door=door, current=current, t_motor=motor,
              t_brake=brake, t_hall=hall[i], door_current=0.1 + moving * (1.2 + 0.9 * w.bad("door-friction", i, 100)),
              vibration=0.05 + 0.1 * abs(speed) * (1 + 0.8 * w.bad("bearing", i, 150)))  # fmt: skip


def fermenter(w: World) -> None:
    cells, sugar, oxygen, acid, warm, jacket, air = 4.0, 8.0, 60.0, 7.0, 30.0, 24.0, w.sway(20, 3, 1)
    blow = w.sway(40, 2, 1, 700)
    stir, base, cool, water, seen = Loop(0.01, 30), Loop(0.8, 50, at=0), Loop(-0.1, 60), w.sway(12, 1, 0.5), 7.0
    for i in range(ROWS):
        if cells > 30:  # harvest, and begin again
            cells, sugar = 4.0 + float(w.rng.uniform(-0.5, 0.5)), 8.0
        feed, clog = 0.01 * cells * (sugar < 6), w.bad("clogged-air", i, 200)
        grow = 0.006 * cells * sugar / (1 + sugar) * (oxygen > 5)
        rate, lye, flow = stir(40 - oxygen), base(7 - seen), cool(30 - warm)
        gas = blow[i] * (1 - 0.3 * clog)
        cells, sugar = cells + grow, max(0.0, sugar + 2 * feed - 2 * grow + 0.01)
        oxygen += 0.2 * (0.01 * gas * (0.4 + 2 * rate) * (100 - oxygen) / 4 - 60 * grow)
        acid += 0.05 * (lye - 3 * grow - 0.05 * (acid - 6.6))
        seen = acid + 0.5 * w.bad("bias-ph", i, 100)
        jacket += 0.1 * (water[i] + 14 * (1 - flow * (1 - 0.5 * w.bad("fouled-jacket", i, 150))) - jacket)
        warm += 0.05 * (25 * grow + 0.35 * (jacket - warm) + 0.03 * (air[i] - warm) + 1.2)
        w.log(density=cells, sugar=sugar, oxygen=oxygen, ph=seen, t=warm, t_jacket=jacket, cooling=100 * flow,
              stirrer=200 + 800 * rate, base=lye, airflow=gas, p_air=0.03 * blow[i] + 0.4 * clog, feed=feed,
              t_room=air[i], t_water=water[i], carbon_dioxide=0.4 + 80 * grow)  # fmt: skip


PLANTS: dict[str, Callable[[World], None]] = {
    each.__name__: each
    for each in (exchangers, compressors, greenhouse, waterworks, turbine, battery, distillation, datacentre, elevator,
                 fermenter)
}  # fmt: skip


def simulate(plant: str, fault: str, seed: int) -> tuple[pd.DataFrame, NDArray[np.int8], list[int]]:
    """Readings of one plant, which rows are faulty, and the columns at fault; no fault if its name is empty."""
    w = World(fault, seed)
    PLANTS[plant](w)
    table, rng = pd.DataFrame(w.rows).astype(float), np.random.default_rng(seed + 5000)
    labels = np.zeros(ROWS, np.int8)
    for name in table:
        x = table[name].to_numpy(copy=True)
        width = float(np.subtract(*np.percentile(x, [90, 10]))) or float(np.std(x))
        if len(np.unique(x)) > 12 or np.std(x) == 0:  # no switch
            x += max(0.015 * width, 1e-3 * abs(float(np.mean(x)))) * rng.normal(size=ROWS)
        if rng.random() < 0.4 and width > 0:
            x = np.round(x / (width / 60)) * (width / 60)
        x[rng.random(ROWS) < 0.003] = np.nan
        table[name] = x
    if fault:
        labels[w.since : w.until] = 1
    if fault.startswith("frozen-"):
        stood = table[fault.removeprefix("frozen-")].to_numpy(copy=True)
        stood[w.since : w.until] = stood[: w.since][np.isfinite(stood[: w.since])][-1]
        table[fault.removeprefix("frozen-")] = stood
    cause = [j for j, name in enumerate(table) if fault and name in FAULTS[plant][fault]]
    return table.iloc[-KEPT:], labels[-KEPT:], cause
