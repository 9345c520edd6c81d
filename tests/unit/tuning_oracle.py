#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Oracle of test_board_model.c and test_board_posterior.c: the formulas of docs/internals/tuning.md
once more, in double precision, densely, with numpy (1.24), sharing no code with the C sources.

    /usr/bin/python3 tests/unit/tuning_oracle.py >tests/unit/tuning_golden.h
"""
import math
from statistics import NormalDist

import numpy as np

MASK = (1 << 64) - 1
GLOBALS = ("overlap fixed parallel core_power low_voltage voltage_from base steepness demand floor "
           "idle scaling comm delay lowest_t lowest_e v_fixed v_power v_idle crowding "
           "memory_work memory_fixed").split()
SPACES = {
    "inference": [("cores", "cores", [1, 2, 4], 2), ("cpu", "cpu_clock", [345, 806, 1267, 2035], 3),
                  ("gpu", "gpu_clock", [140, 420, 854, 1300], 3),
                  ("memory", "mem_clock", [665, 1331, 1866], 2), ("batch", "batch", [1, 2, 8], 0)],
    "training": [("batch", "train_batch", [8, 16, 64, 256], 2),
                 ("limit", "power_limit", [100, 125, 175, 250], 3)],
    "fleet": [("clock", "gpu_clock", [600, 900, 1400], 2),
              ("limit", "power_limit", [150, 250, 400], 2), ("devices", "replicas", [1, 2, 4], 0),
              ("wait", "delay", [0, 0.5, 2], 0), ("tensor", "split", [1, 2], 0),
              ("precision", "category", [0, 1], 0)],
}


class Philox:
    def __init__(self, key):
        self.key, self.counter, self.words = key & MASK, 0, []

    def u32(self):
        if not self.words:
            for _ in range(2):
                c = [self.counter & 0xFFFFFFFF, self.counter >> 32, 0, 0]
                for r in range(10):
                    k0 = (self.key + r * 0x9E3779B9) & 0xFFFFFFFF
                    k1 = ((self.key >> 32) + r * 0xBB67AE85) & 0xFFFFFFFF
                    p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
                    c = [(q >> 32) ^ c[1] ^ k0, q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k1, p & 0xFFFFFFFF]
                self.words += c
                self.counter += 1
        return self.words.pop(0)

    def normal(self):
        high = self.u32()
        return NormalDist().inv_cdf((((high << 32 | self.u32()) >> 12) + 0.5) * 2.0**-52)

    def split(self, index):
        def mix(x):
            x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
            x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
            return x ^ (x >> 31)

        golden = 0x9E3779B97F4A7C15
        family = mix((self.key + golden) & MASK)
        return Philox(mix((family + (index + 1) * golden) & MASK))


def draw(space, rng):
    def stream(name):
        h = 0xCBF29CE484222325
        for byte in name.encode():
            h = (h ^ byte) * 0x100000001B3 & MASK
        return rng.split((1 + h) & MASK)

    own = rng.split(0)
    z = [own.normal() for _ in range(len(GLOBALS))]
    for name, _, _, _ in space:
        s = stream(name)
        z += [s.normal() for _ in range(6)]
    return np.float32(z).astype(float)


def around(m, s, z):
    return m * math.exp(1.3 * s * z)


def between(a, b, z):
    return a + (b - a) / (1 + math.exp(-1.6 * 1.3 * z))


def meaning(knob, level):
    """value, tilt, place"""
    _, role, levels, default = knob
    x, lo, hi = levels[level], levels[0], levels[-1]
    log_place = math.log(x / lo) / math.log(hi / lo) if lo > 0 else 0
    place = (x - lo) / (hi - lo)
    if role.endswith("clock"):
        return x / hi, math.log(x / hi), log_place
    if role == "cores":
        return x, math.log(x / hi), log_place
    if role == "power_limit":
        return x / hi, math.log(x / hi), place
    if role == "batch":
        return x, 0.5 * math.log(x), log_place
    if role == "train_batch":
        return x / levels[default], 0.5 * math.log(x / levels[default]), log_place
    if role in ("replicas", "split"):
        return x, math.log(x), log_place
    return (x / hi, x / hi, place) if role == "delay" else (x, x, place)


def figures(space, z, levels):
    """log t and log E of one board at one configuration."""
    g = dict(zip(GLOBALS, z))
    own = {knob[0]: z[len(GLOBALS) + 6 * i:][:6] for i, knob in enumerate(space)}
    at = {knob[1]: (knob, *meaning(knob, l)) for knob, l in zip(space, levels)}
    value = lambda role, other=1: at[role][1] if role in at else other
    training = "train_batch" in at
    b, n = value("train_batch" if training else "batch"), value("replicas")
    b_most = max(meaning(k, l)[0] for k in space if k[1].endswith("batch") for l in range(len(k[2]))) \
        if "batch" in at or training else 1
    work = b * (1 + b / (b_most * around(5, 1.2, g["crowding"]))) if "batch" in at or training else 1
    fixed = (lambda u: around(0.15, 1.5, u)) if training else (lambda u: around(0.5, 1, u))
    volts = lambda f: (lambda v0, thr: v0 + (1 - v0) * max(0, (f - thr) / (1 - thr)))(
        between(.45, .9, g["low_voltage"]), between(.15, .65, g["voltage_from"]))
    q, steep, idle = between(.5, 1.6, g["demand"]), between(1.5, 3.2, g["steepness"]), \
        between(.08, .4, g["idle"])
    f = value("gpu_clock")
    if "power_limit" in at:
        spare = max(0, (value("power_limit") - q * idle) / (q * (1 - idle)))
        f = min(f, 1, max(between(.05, .3, g["floor"]), spare**(1 / steep)))
    cores, most = value("cores"), max(at["cores"][0][2]) if "cores" in at else 1
    par, pcore = between(0, .8, g["parallel"]), between(0, .9, g["core_power"])
    core_time = (1 - par + par / cores) / (1 - par + par / most)
    core_power = 1 - pcore + pcore * cores / most
    scale = n**-between(.3, 1.05, g["scaling"])
    parts = []  # busy time, watts at full use, idle share
    if "cpu_clock" in at:
        u, c = own["cpu"], value("cpu_clock")
        s = fixed(u[3])
        parts.append((around(.5, 1.2, u[2]) * (s + work) / (s + 1) * scale / c * core_time,
                      around(.25, .6, u[4]) * c * volts(c)**2 * core_power, between(.05, .7, u[5])))
    name = at["gpu_clock"][0][0] if "gpu_clock" in at else None
    u = own[name] if name else [0, 0, 0, g["v_fixed"], g["v_power"], g["v_idle"]]
    s, pc = fixed(u[3]), around(.6, .6, u[4])
    main = (s + work) / (s + 1) * scale / f
    parts.append((main, pc * f * volts(f)**2, between(.05, .7, u[5])))
    if "mem_clock" in at:
        u, m = own["memory"], value("mem_clock")
        s = fixed(u[3])
        parts.append((around(.35, .9, u[2]) * (s + work) / (s + 1) * scale / m,
                      around(.12, .6, u[4]) * m, .5))
    else:  # at its own speed, its power is in the base
        s = fixed(g["memory_fixed"])
        parts.append((around(.35, .9, g["memory_work"]) * (s + work) / (s + 1) * scale, 0, .5))
    p = between(1, 5, g["overlap"])
    t = (around(.1, .8, g["fixed"]) + sum(x[0]**p for x in parts)**(1 / p)) * \
        (1 + around(.05, 1, g["comm"]) * (n - 1))
    base = around(.25, .5, g["base"])
    power = base + sum(w * (i + (1 - i) * min(1, x / t)) for x, w, i in parts)
    if "power_limit" in at and name:
        power = min(power, (base + pc) * value("power_limit") / q)
    elif "power_limit" in at:
        power = q * (idle + (1 - idle) * f**steep * (.3 + .7 * min(1, main / t)))
    log_t = math.log(t + around(.5, 1, g["delay"]) * value("delay", 0))
    log_e = math.log(power * n) + math.log(t) - math.log(b)
    if training:
        log_t -= math.log(b)
    for knob, _, tilt, _ in at.values():
        u = own[knob[0]]
        st, se = {"category": (.5, .5), "split": (.1, .1)}.get(knob[1], (.06, .35))
        dt, de = 1.3 * st * u[0], 1.3 * se * u[1]
        log_t += dt * tilt
        log_e += (de + (dt if knob[1] == "category" else 0)) * tilt
    if "cores" in at and cores == min(at["cores"][0][2]):
        log_t += .05 * 1.3 * g["lowest_t"]
        log_e += .3 * 1.3 * g["lowest_e"]
    return log_t, log_e


def all_levels(space):
    grid = np.indices([len(k[2]) for k in space]).reshape(len(space), -1).T
    return [tuple(int(v) for v in row) for row in grid]


def covariance(space, a, b, am, al, ap, af):
    m52 = lambda r: (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)
    d = [abs(meaning(k, x)[2] - meaning(k, y)[2]) for k, x, y in zip(space, a, b)]
    pairs = sum(m52(d[i] / .5) * m52(d[j] / .5) for j in range(len(d)) for i in range(j))
    return am**2 * sum(m52(x / .6) for x in d) + al**2 * sum(x == y for x, y in zip(a, b)) + \
        ap**2 * pairs + af**2 * m52(math.sqrt(sum(x * x for x in d)) / .35)


def temper(ll, least):
    def weights(beta):
        w = np.exp(beta * (ll - ll.max()))
        return w / w.sum()

    if 1 / (weights(1)**2).sum() >= least:
        return 1, weights(1)
    lo, hi = 0, 1
    for _ in range(22):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if 1 / (weights(middle)**2).sum() >= least else (lo, middle)
    return lo, weights(lo)


def posterior(space, boards, tried, y, noise, look, most, least):
    """Mean and sd of time and energy at `look`; y[q][i] relative to the default."""
    default = tuple(k[3] for k in space)
    points = tried + look
    f = np.array([[np.subtract(figures(space, z, x), figures(space, z, default)) for x in points]
                  for z in boards])  # [board][point][q]
    n, amplitudes = len(tried), [(.04, .012, .04, .05), (.08, .015, .04, .06)]
    k = [np.array([[covariance(space, a, b, *am) for b in points] for a in points]) + .03**2
         for am in amplitudes]
    a = [k[q][:n, :n] + noise**2 * np.eye(n) for q in range(2)]
    left = [y[q] - f[:, :n, q] for q in range(2)]
    ll = -.5 * sum(np.einsum("pi,ij,pj->p", left[q], np.linalg.inv(a[q]), left[q]) for q in range(2))
    beta, w = temper(ll, least)
    order = np.argsort(-w, kind="stable")
    cumulated = np.cumsum(w[order])
    assert 1 / (w**2).sum() <= .9 * most  # the heaviest are kept, none is resampled
    kept = order[:min(most, int(np.searchsorted(cumulated, .995) + 1))]
    w = w[kept] / w[kept].sum()
    mean = np.einsum("p,pxq->xq", w, f[kept])
    deviations = np.sqrt(w)[:, None, None] * (f[kept] - mean)
    dx = np.concatenate([deviations[:, :n, q].T for q in range(2)])
    v = np.concatenate([y[q] - mean[:n, q] for q in range(2)])
    s = dx @ dx.T
    for q in range(2):
        s[q * n:q * n + n, q * n:q * n + n] += a[q] / max(1 - beta, .001)
    gain = dx.T @ np.linalg.inv(s)
    step = gain @ v
    left_over = np.eye(len(kept)) - gain @ dx
    out = []
    for i in range(len(look)):
        for q in range(2):
            x, inverse = n + i, np.linalg.inv(a[q])
            row, dq = k[q][x, :n], dx[q * n:q * n + n]
            mu = mean[x, q] + deviations[:, x, q] @ step + row @ inverse @ (
                v[q * n:q * n + n] - dq @ step)
            e = deviations[:, x, q] - row @ inverse @ dq
            out.append((mu, math.sqrt(k[q][x, x] - row @ inverse @ row + e @ left_over @ e)))
    return out


def array(name, rows, columns):
    body = ",\n    ".join("{" + ", ".join(f"{v:.9g}" for v in row) + "}" for row in rows)
    print(f"static const double {name}[][{columns}] = {{\n    {body},\n}};\n")


def main():
    print("/* SPDX-License-Identifier: MIT\n *\n * Made by tuning_oracle.py, which says how. */\n"
          "/* clang-format off */\n")
    for name, space in SPACES.items():
        z = np.float32([1.2 * math.sin(1.7 * i + 1) for i in range(20 + 6 * len(space))]).astype(float)
        array(f"golden_{name}", [figures(space, z, x) for x in all_levels(space)[::7]], 2)
    space, root = SPACES["inference"], Philox(11)
    boards = [draw(space, root.split(i)) for i in range(256)]
    every = all_levels(space)
    tried = [tuple(k[3] for k in space)] + [every[i] for i in (40, 133, 217, 300, 401)]
    y = [np.array([0, .9, .5, .35, .1, .6]), np.array([0, -.2, -.35, -.1, -.3, .1])]
    look = every[5::61]
    rows = posterior(space, boards, tried, y, .02, look, 64, 40)
    array("golden_posterior", [rows[2 * i] + rows[2 * i + 1] for i in range(len(look))], 4)
    print("/* clang-format on */")


if __name__ == "__main__":
    main()
