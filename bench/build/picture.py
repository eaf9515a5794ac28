"""picture.py FIGURES.json OUT: draws the analysis, the speed-up over jobs, and the cost of an action."""
import json
import sys

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

OURS, OTHERS = "#2e7d6b", "#8a94a6"


def bars(axes, values, title, unit):
    names = list(values)[::-1]
    colors = [OURS if "Leat" in name else OTHERS for name in names]
    drawn = axes.barh(names, [values[name] for name in names], color=colors)
    axes.bar_label(drawn, [f" {values[name]:.3g}" for name in names], fontsize=8)
    axes.set(xscale="log", xlabel=unit, title=title)
    axes.margins(x=0.15)


def eeg(axes, figures):
    rows = {}
    for name, runs in figures["eeg"]["contenders"].items():
        for kind, values in runs.items():
            rows[f"{name}, {kind}"] = sorted(values)[len(values) // 2]
    bars(axes, rows, f"examples/eeg, {figures['eeg']['size']}", "seconds")


def speedup(axes, figures):
    jobs = sorted(figures["jobs"], key=int)
    mean = [figures["jobs"][one]["mean"] for one in jobs]
    half = [figures["jobs"][one]["half"] for one in jobs]
    numbers = [int(one) for one in jobs]
    axes.plot(numbers, numbers, color="#bbbbbb", linewidth=0.8)
    axes.errorbar(numbers, mean, half, color=OURS, marker="o", capsize=4)
    axes.set(xlabel="jobs", ylabel="speed-up", xticks=numbers, title="speed-up over jobs, 95 % interval")


def echo(axes, figures):
    bars(axes, {name: 1000 * sorted(runs)[len(runs) // 2] / figures["echo"]["count"]
                for name, runs in figures["echo"]["cold"].items()}, "sh -c echo", "ms per action")


PARTS = {"eeg": eeg, "jobs": speedup, "echo": echo}


def main():
    with open(sys.argv[1]) as file:
        figures = json.load(file)
    names = [name for name in PARTS if name in figures and "failed" not in figures[name]]
    if not names:
        return
    drawn, axes = pyplot.subplots(1, len(names), figsize=(6 * len(names), 5), squeeze=False)
    for one, name in zip(axes[0], names):
        PARTS[name](one, figures)
    for one in axes[0]:
        one.spines[["top", "right"]].set_visible(False)
    drawn.tight_layout()
    drawn.savefig(sys.argv[2] + ".svg")
    drawn.savefig(sys.argv[2] + ".png", dpi=120)


main()
