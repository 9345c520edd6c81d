# SPDX-License-Identifier: MIT
"""The plot at the top of README.md: cost above the oracle, against recurrences, as an SVG.

Both axes are logarithmic, since what is learned in the first few runs decides. No library is used.
"""
import math

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 66, 130, 64, 56
FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\""
COLOURS = {"default": "#6b7280", "zeus": "#c2410c", "wattgov": "#0f766e"}
TICKS = (1, 2, 5, 10, 20, 50, 100, 200)


def text(x, y, words, size=13, anchor="start", colour="#1f2937", weight="400"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}" fill="{colour}">{words}</text>')


def spread_labels(wanted, gap):
    """Moves labels apart: pairs of (y, what) in the order of y, at least `gap` between neighbours."""
    placed = []
    for y, what in sorted(wanted):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, what))
    return placed


def draw(curves, title, subtitle):
    """`curves` maps a policy to its mean excess (a share) after 1, 2, ... recurrences."""
    count = max(len(values) for values in curves.values())
    shown = [100 * value for values in curves.values() for value in values]
    low = max(0.5, min(shown) / 1.15)
    high = max(shown) * 1.15

    def x_of(recurrence):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(recurrence) / math.log(count)

    def y_of(value):
        share = math.log(max(value, low) / low) / math.log(high / low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="{title}">',
             "<!-- SPDX-License-Identifier: MIT. Made by bench/training_results.py. -->",
             f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
             text(LEFT, 28, title, 16, weight="600"), text(LEFT, 48, subtitle, 12.5, colour="#4b5563")]
    for tick in TICKS:
        if low <= tick <= high:
            y = y_of(tick)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>')
            parts.append(text(LEFT - 8, y + 4.5, f"{tick} %", 12, "end", "#4b5563"))
    for tick in [tick for tick in TICKS if tick <= count]:
        x = x_of(tick)
        parts.append(f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v5" stroke="#9ca3af"/>')
        parts.append(text(x, HEIGHT - BOTTOM + 20, str(tick), 12, "middle", "#4b5563"))
    parts.append(f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="#9ca3af"/>')
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "recurrences of the job", 12.5, "middle",
                      "#4b5563"))
    ends = []
    for policy, values in curves.items():
        points = " ".join(f"{x_of(i + 1):.1f},{y_of(100 * value):.1f}" for i, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[policy]}" '
                     'stroke-width="2.5" stroke-linejoin="round"/>')
        ends.append((y_of(100 * values[-1]), policy))
    for y, policy in spread_labels(ends, 18):
        words = f"{policy} {100 * curves[policy][-1]:.1f} %"
        parts.append(text(WIDTH - RIGHT + 8, y + 4.5, words, 13, colour=COLOURS[policy], weight="600"))
    return "\n".join(parts + ["</svg>"]) + "\n"
