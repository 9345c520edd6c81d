#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Oracle of test_predictor_polythrottle.c: PolyThrottle's features (section 6), fitted with
scipy.optimize.nnls (scipy 1.17.1) in seconds.

    python3 tests/unit/predictor_oracle.py >tests/unit/predictor_golden.h
"""
import numpy as np
from scipy.optimize import nnls

rng = np.random.default_rng(3)


def features(shape, step, b, r):
    ops, data = shape[0] + shape[1] * b, shape[2] + shape[3] * b
    ops_ft, data_ft = step[0] + step[1] * r, step[2] + step[3] * r
    return [1.0, ops, ops / data, ops_ft if r else 0.0, ops_ft / data_ft if r else 0.0, b]


print("""/* SPDX-License-Identifier: MIT
 *
 * Made by predictor_oracle.py, which says how. */
/* clang-format off */

static const struct {
    struct wg_work_shape inference, finetune;
    struct wg_predictor_sample samples[24];
    double predicted_s[24];
} golden_predictor[] = {""")
shapes = [((37e9, 0, 0, 37e6), (5e9, 1e9, 3e6, 2e6)), ((0, 37.0, 66.0, 12.0), (0, 2.0, 3.0, 1.0)),
          ((5e9, 4e9, 264e6, 30e6), (1e9, 9e9, 264e6, 60e6)), ((1, 3, 2, 1), (4, 2, 1, 1))]
for shape, step in shapes:
    points = [(b, r) for b in (1, 2, 4, 8, 16, 32) for r in (0, 1, 8, 64)]
    a = np.array([features(shape, step, b, r) for b, r in points])
    scale = np.abs(a).max(0)
    truth = rng.uniform(0, 0.1, 6) * (rng.uniform(0, 1, 6) < 0.7) + 0.001
    t = (a / scale) @ truth * np.exp(0.05 * rng.normal(0, 1, len(points)))
    theta = nnls(a / scale, t)[0]
    rows = ", ".join("{{%d, 1, 1, %d}, %.17g}" % (b, r, s) for (b, r), s in zip(points, t))
    said = ", ".join("%.17g" % p for p in (a / scale) @ theta)
    print("    {{%s}, {%s}, {%s}, {%s}}," % (", ".join("%.17g" % s for s in shape),
                                         ", ".join("%.17g" % s for s in step), rows, said))
print("};")
