"""How figures are saved: PNG and SVG in one folder, the same bytes for the same figure."""
import pathlib

import matplotlib

matplotlib.use("agg")
matplotlib.rcParams.update({"svg.hashsalt": "eeg", "figure.dpi": 110, "font.size": 10, "axes.spines.top": False,
                            "axes.spines.right": False})


def save(figure, folder, name):
    folder = pathlib.Path(folder)
    folder.mkdir()
    figure.savefig(folder / f"{name}.png", metadata={"Software": None}, bbox_inches="tight")
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
