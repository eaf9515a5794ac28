"""Draw the epochs of an EEG study with a known answer.

    python generate.py [FOLDER] [--size full | medium | small] [--subjects 18 ...]

Each subject sees 240 pictures of three classes. FOLDER/raw/subject-N.npy holds, for each of 20 time bins and each trial,
the features of all channels (float32 [bin, trial, feature]); labels-N.npy holds the class of each trial. Everything is
noise, except in a few channels and two groups of bins: an early and a late one, where some features depend on the class.
The two groups use other features, so a decoder trained in one of them knows nothing of the other. raw/truth.json says
which bins and channels these are; no step reads it.

The same arguments give the same bytes. If FOLDER is not the folder of this file, the steps and leat.yaml are copied
there, with the ranges of leat.yaml set to the size.
"""
import argparse
import json
import pathlib
import re
import shutil

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CLASSES = 3
SIZES = {  # subjects, bins, trials, channels, features of a channel
    "full": (18, 20, 240, 31, 210),
    "medium": (6, 10, 240, 31, 70),
    "small": (4, 6, 90, 8, 12),
}
SMALL = "FOLDS, ALPHA, GRID = 5, 0.05, [0.01, 1]"  # in decode.py
NAMES = ("subjects", "bins", "trials", "channels", "width")
ACTIVE = 0.15  # share of the channels that carry a signal
SHARE = 0.2  # share of their features that depend on the class
STRENGTH = 5.0  # distance between two classes over all these features, in standard deviations of the noise


def planted(bins):
    """Bins with a signal, counted from 1: the early group and the late one."""
    def between(begin, end):
        return list(range(int(begin * bins) + 1, int(end * bins) + 1))
    return between(0.25, 0.45), between(0.6, 0.85)


def patterns(rng, channels, width):
    """What each class adds to the features, [class, feature], with the same distance between classes for any size."""
    active = rng.permutation(channels)[:max(1, round(ACTIVE * channels))]
    means = np.zeros((CLASSES, channels, width), np.float32)
    used = rng.random((len(active), width)) < SHARE
    used[0, 0] = True
    means[:, active] = rng.standard_normal((CLASSES, len(active), width)) * used
    means = means.reshape(CLASSES, -1)
    means -= means.mean(0)
    distances = [np.linalg.norm(means[a] - means[b]) for a in range(CLASSES) for b in range(a)]
    return STRENGTH * means / np.mean(distances), sorted(int(one) + 1 for one in active)


def noise(rng, bins, trials, channels, width):
    """White noise, and for each trial and channel an offset that lasts over all bins."""
    out = rng.standard_normal((bins, trials, channels, width), np.float32)
    out += 0.5 * rng.standard_normal((1, trials, channels, 1), np.float32)
    return out.reshape(bins, trials, channels * width)


def draw(number, seed, bins, trials, channels, width):
    """Epochs, labels and active channels of one subject."""
    rng = np.random.default_rng([seed, number])
    labels = rng.permutation(np.arange(trials) % CLASSES).astype(np.int8)
    epochs = noise(rng, bins, trials, channels, width)
    gain, active = rng.uniform(0.8, 1.2), []
    for group in planted(bins):
        means, channels_used = patterns(rng, channels, width)
        for one in group:
            epochs[one - 1] += np.float32(gain) * means[labels]
        active.append(channels_used)
    return epochs, labels, active


def copy_project(folder, subjects, bins, small):
    """The steps and leat.yaml, with other ranges; for tests also with fewer folds and values of C."""
    for path in HERE.glob("*.py"):
        shutil.copy(path, folder)
    text = (HERE / "leat.yaml").read_text()
    text = re.sub(r"subject: 1\.\.\d+", f"subject: 1..{subjects}", text)
    text = re.sub(r"bin: 1\.\.\d+", f"bin: 1..{bins}", text)
    if small:
        text = text.replace("folds: 10", "folds: 5").replace("grid: 0.0001 0.001 0.01 0.1 1 10 100", "grid: 0.01 1")
        code = (HERE / "decode.py").read_text()
        (folder / "decode.py").write_text(re.sub("(?m)^FOLDS, ALPHA, GRID = .*$", SMALL, code))
    (folder / "leat.yaml").write_text(text)


def generate(folder, subjects, bins, trials, channels, width, seed=1, small=False):
    folder = pathlib.Path(folder).resolve()
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    if folder != HERE:
        copy_project(folder, subjects, bins, small)
    found = {}
    for number in range(1, subjects + 1):
        epochs, labels, found[number] = draw(number, seed, bins, trials, channels, width)
        np.save(raw / f"subject-{number}.npy", epochs)
        np.save(raw / f"labels-{number}.npy", labels)
    early, late = planted(bins)
    (raw / "truth.json").write_text(json.dumps({"early": early, "late": late, "channels": found}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Draw the epochs of an EEG study with a known answer.")
    parser.add_argument("folder", nargs="?", default=HERE, help="where to put raw/ (the folder of this file)")
    parser.add_argument("--size", choices=SIZES, default="full", help="full: 2.3 GB, as published; small: for tests")
    parser.add_argument("--seed", type=int, default=1)
    for name in NAMES:
        what = "features of a channel" if name == "width" else name
        parser.add_argument(f"--{name}", type=int, help=f"{what}, instead of those of the size")
    args = parser.parse_args()
    sizes = [getattr(args, name) or size for name, size in zip(NAMES, SIZES[args.size])]
    generate(args.folder, *sizes, seed=args.seed, small=args.size == "small")


if __name__ == "__main__":
    main()
