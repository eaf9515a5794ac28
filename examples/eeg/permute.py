"""Count how often a subject's predictions are right, with the true labels and with shuffled ones.

Shuffling changes labels only, so predictions are made once and counted again and again. Labels are shuffled within
folds, which keeps their stratification.
"""
import numpy as np

from leat import step


def shuffled(labels, fold, rng):
    out = labels.copy()
    for number in np.unique(fold):
        out[fold == number] = rng.permutation(labels[fold == number])
    return out


def permute(predicted, labels, fold, permutations, rng):
    """Accuracies [1 + permutations, train bin, test bin]; the first is the true one."""
    rows = [labels] + [shuffled(labels, fold, rng) for _ in range(permutations)]
    return np.stack([(predicted == row).mean(-1) for row in rows]).astype(np.float32)


def main():
    with np.load(step.inputs["generalise"]) as file:
        predicted, fold = file["predicted"], file["fold"]
    labels = np.load(step.inputs["labels"])
    with open(step.out, "wb") as file:
        np.save(file, permute(predicted, labels, fold, step.params.int("permutations", 100), step.rng()))


if __name__ == "__main__":
    main()
