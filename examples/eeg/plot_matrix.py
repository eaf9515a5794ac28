"""Draw how well what was learned in one bin decodes another."""
import argparse

import numpy as np

import figure
from matplotlib import pyplot


def draw(result):
    drawn, axes = pyplot.subplots(figsize=(5, 4.2))
    bins = len(result["matrix"])
    edge = 0.5, bins + 0.5
    spread = max(np.abs(result["matrix"] - result["chance"]).max(), 0.01)
    picture = axes.imshow(result["matrix"], origin="lower", cmap="RdBu_r", extent=(*edge, *edge),
                          interpolation="nearest", vmin=result["chance"] - spread, vmax=result["chance"] + spread)
    if result["matrix_significant"].any():
        fine = np.kron(result["matrix_significant"], np.ones((8, 8)))  # so that the line follows the edges of cells
        axes.contour(fine, levels=[0.5], colors="black", linewidths=0.8, extent=(*edge, *edge), origin="lower")
    drawn.colorbar(picture, ax=axes, label="accuracy")
    axes.set(xlabel="test bin", ylabel="train bin", title="outlined: above chance, p < .05 corrected")
    axes.title.set_fontsize(9)
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with np.load(args.group) as file:
        figure.save(draw(dict(file)), args.out, "generalisation")


if __name__ == "__main__":
    main()
