"""Draws a run's trace as the study does: time from left to right, a lane for each tag, and how busy the device is."""
import html
import json

LANES = ("get batch", "to device", "run batch")
TITLES = {"get batch": "Get batch", "to device": "Batch to device", "run batch": "Run batch"}
COLORS = {"get batch": "#d1495b", "to device": "#edae49", "run batch": "#2e7d6b"}
WIDTH, LEFT, RIGHT, LANE, TOP = 960, 130, 60, 34, 40
SLICES = 120  # of the curve


def spans_of(path):
    """[tag, begin, end] in seconds from the first one."""
    events = [e for e in json.loads(path.read_text()) if e["ph"] == "X" and e.get("cat") in LANES]
    start = min((e["ts"] for e in events), default=0)
    return [(e["cat"], (e["ts"] - start) / 1e6, (e["ts"] + e["dur"] - start) / 1e6) for e in events]


def busy_curve(spans, end):
    """Share of each slice of time in which the device ran."""
    step = end / SLICES or 1
    busy = [0.0] * SLICES
    for tag, begin, finish in spans:
        if tag != "run batch":
            continue
        for i in range(int(begin / step), min(SLICES - 1, int(finish / step)) + 1):
            busy[i] += max(0.0, min(finish, (i + 1) * step) - max(begin, i * step)) / step
    return busy


def draw(trace, title, path):
    spans = spans_of(trace)
    end = max((finish for _, _, finish in spans), default=1) or 1
    across, height = WIDTH - LEFT - RIGHT, TOP + LANE * len(LANES) + 130

    def x(seconds):
        return LEFT + across * seconds / end

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
           f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
           f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>']
    for number, tag in enumerate(LANES):
        y = TOP + LANE * number
        out.append(f'<text x="{LEFT - 10}" y="{y + 20}" text-anchor="end">{TITLES[tag]}</text>')
        for kind, begin, finish in spans:
            if kind == tag:
                out.append(f'<rect x="{x(begin):.2f}" y="{y + 4}" width="{max(0.4, x(finish) - x(begin)):.2f}" '
                           f'height="{LANE - 8}" fill="{COLORS[tag]}"/>')
    base = TOP + LANE * len(LANES) + 90
    points = " ".join(f"{LEFT + across * (i + 0.5) / SLICES:.1f},{base - 80 * min(1, share):.1f}"
                      for i, share in enumerate(busy_curve(spans, end)))
    out.append(f'<polyline points="{points}" fill="none" stroke="#26547c" stroke-width="1.5"/>'
               f'<text x="{LEFT - 10}" y="{base - 36}" text-anchor="end">device busy</text>'
               f'<text x="{WIDTH - RIGHT + 6}" y="{base - 76}">100 %</text><text x="{WIDTH - RIGHT + 6}" y="{base}">0 %</text>')
    for i in range(6):
        out.append(f'<text x="{x(end * i / 5):.1f}" y="{base + 22}" text-anchor="middle">{end * i / 5:.3g} s</text>')
    path.write_text("\n".join(out) + "</svg>\n")
