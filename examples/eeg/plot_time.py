"""Draw the accuracy of decoding over time."""
import argparse

import numpy as np

import figure
from matplotlib import pyplot


def draw(result):
    drawn, axes = pyplot.subplots(figsize=(7, 3.6))
    bins = np.arange(1, len(result["curve"]) + 1)
    axes.fill_between(bins, result["curve"] - result["half"], result["curve"] + result["half"], color="#2e7d6b",
                      alpha=0.25, linewidth=0, label="95 % interval over subjects")
    axes.plot(bins, result["curve"], color="#2e7d6b", label="accuracy, smoothed")
    axes.plot(bins, result["accuracy"], "o", color="#2e7d6b", markersize=3, label="accuracy")
    axes.axhline(result["chance"], color="#666666", linewidth=0.8)
    axes.axhline(result["limit"], color="#666666", linewidth=0.8, linestyle="--",
                 label="95 % of permutations, all bins")
    low = axes.get_ylim()[0]
    axes.plot(bins[result["significant"]], np.full(result["significant"].sum(), low), "s", color="#d1495b",
              markersize=5, label="above chance, p < .05 corrected", clip_on=False)
    axes.set(xlabel="time bin", ylabel="accuracy", xticks=bins[::max(1, len(bins) // 10)])
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with np.load(args.group) as file:
        figure.save(draw(dict(file)), args.out, "decoding")


if __name__ == "__main__":
    main()
