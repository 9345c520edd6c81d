#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Oracle of test_nnls.c: scipy.optimize.nnls (scipy 1.17.1) on random sample matrices, whose normal
equations the C code gets.

    python3 tests/unit/nnls_oracle.py >tests/unit/nnls_golden.h
"""
import numpy as np
from scipy.optimize import nnls

rng = np.random.default_rng(7)


def row(values):
    return "{" + ", ".join("%.17g" % v for v in values) + "}"


print("""/* SPDX-License-Identifier: MIT
 *
 * Made by nnls_oracle.py, which says how. */
/* clang-format off */

static const struct {
    size_t count;
    double gram[WG_NNLS_MAX][WG_NNLS_MAX];
    double moment[WG_NNLS_MAX];
    double x[WG_NNLS_MAX];
} golden_nnls[] = {""")
for case in range(24):
    n = 1 + case % 8
    a = rng.uniform(0, 1, (4 * n + 3, n)) if case % 2 else rng.normal(0, 1, (4 * n + 3, n))
    a *= 10.0 ** rng.uniform(-3, 3, n)  # units differ
    b = a @ np.maximum(rng.normal(0, 1, n) / np.abs(a).mean(0), 0) + 0.3 * rng.normal(0, 1, 4 * n + 3)
    x = nnls(a, b)[0]
    print("    {%d, {%s}, %s, %s}," % (n, ", ".join(row(r) for r in a.T @ a), row(a.T @ b), row(x)))
print("};")
