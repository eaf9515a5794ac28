"""Test over subjects: in which bins, and from which bin to which, is the accuracy above chance?

A one-sided t-test per bin (and per pair of bins) of each subject's accuracy against the mean of its permutations;
p-values are multiplied by the number of tests (Bonferroni). The permutations give a second threshold: 95 % of them stay
below it in all bins. Only the drawn curve is smoothed, because smoothing moves signal into neighbouring bins.
"""
import json

import numpy as np
from scipy import stats

from leat import step


def smooth(curves, width):
    """Moving average over the last axis, over fewer values at both ends."""
    kernel = np.ones(width)
    norm = np.convolve(np.ones(curves.shape[-1]), kernel, "same")
    return np.apply_along_axis(lambda curve: np.convolve(curve, kernel, "same") / norm, -1, curves)


def tested(accuracy, chance):
    """p-values over subjects, corrected for the number of tests."""
    t, p = stats.ttest_1samp(accuracy - chance, 0, axis=0, alternative="greater")
    return t, np.minimum(1, p * p.size)


def group(counted, width, alpha=0.05):
    """`counted` is [subject, 1 + permutations, train bin, test bin]."""
    true, null = counted[:, 0].astype(np.float64), counted[:, 1:].astype(np.float64)
    diagonal, null_diagonal = np.einsum("sbb->sb", true), np.einsum("spbb->spb", null)
    t, p = tested(diagonal, null_diagonal.mean(1))
    matrix_t, matrix_p = tested(true, null.mean(1))
    curves = smooth(diagonal, width)
    half = stats.t.ppf(0.975, len(curves) - 1) * stats.sem(curves)
    return {"accuracy": diagonal.mean(0), "curve": curves.mean(0), "half": half, "t": t, "p": p,
            "chance": null_diagonal.mean(), "limit": np.quantile(null_diagonal.mean(0).max(-1), 0.95),
            "matrix": true.mean(0), "matrix_t": matrix_t, "matrix_p": matrix_p, "significant": p < alpha,
            "matrix_significant": matrix_p < alpha}


def main():
    counted = np.stack([np.load(path) for _, path in step.inputs.slices("permute")])
    result = group(counted, step.params.int("smooth", 3), step.params.float("alpha", 0.05))
    with open(step.out, "wb") as file:
        np.savez(file, **result)
    bins = (np.flatnonzero(result["significant"]) + 1).tolist()
    step.metrics(subjects=len(counted), best_accuracy=result["accuracy"].max(),
                 best_bin=int(result["accuracy"].argmax()) + 1, chance=result["chance"],
                 significant_bins=json.dumps(bins), significant_cells=result["matrix_significant"].sum())
    print(f"significant bins: {bins}")


if __name__ == "__main__":
    main()
