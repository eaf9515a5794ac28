"""Learn to tell the classes apart from one time bin of one subject.

Stratified folds. For each, on its training trials: features whose ANOVA has p < alpha, z-scores, a linear SVM with the
best C of a grid. The result has the predictions for the test trials and, for other bins, the models.
"""
import argparse

import numpy as np
from sklearn.feature_selection import f_classif
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

FOLDS, ALPHA, GRID = 10, 0.05, [0.0001, 0.001, 0.01, 0.1, 1, 10, 100]
INNER_FOLDS = 5  # to choose C


def select(x, y, alpha):
    """Indexes of the features that differ between classes; the best one if none does."""
    p = f_classif(x, y)[1]
    return np.flatnonzero(p < alpha) if (p < alpha).any() else np.array([np.nanargmin(p)])


def fit(x, y, alpha, grid):
    """The model of one training fold."""
    features = select(x, y, alpha)
    mean, scale = x[:, features].mean(0), x[:, features].std(0)
    scale[scale == 0] = 1
    search = GridSearchCV(SVC(kernel="linear"), {"C": grid}, cv=INNER_FOLDS)
    search.fit((x[:, features] - mean) / scale, y)
    svm = search.best_estimator_
    return {"features": features, "mean": mean, "scale": scale, "weights": svm.coef_, "bias": svm.intercept_,
            "c": svm.C}


def predict(model, x):
    """Each pair of classes votes: (0, 1), (0, 2), (1, 2). Of several classes with most votes, the first wins."""
    first = ((x[:, model["features"]] - model["mean"]) / model["scale"]) @ model["weights"].T + model["bias"] > 0
    votes = np.stack([first[:, 0] * 1 + first[:, 1], ~first[:, 0] * 1 + first[:, 2], ~first[:, 1] * 1 + ~first[:, 2]])
    return votes.argmax(0).astype(np.int8)


def decode(x, y, folds, alpha, grid, seed):
    """Predictions for all trials, the fold of each trial, and a model per fold.

    Folds depend on labels and seed alone, so they are the same in every bin."""
    x = np.asarray(x, np.float64)
    predicted, fold, models = np.zeros(len(y), np.int8), np.zeros(len(y), np.int8), []
    for number, (train, test) in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y)):
        models.append(fit(x[train], y[train], alpha, grid))
        predicted[test], fold[test] = predict(models[-1], x[test]), number
    return predicted, fold, models


def save(file, predicted, fold, models):
    """One array for all models, which have different numbers of features."""
    joined = {name: np.concatenate([model[name] for model in models], -1)
              for name in ("features", "mean", "scale", "weights")}
    sizes = np.array([len(model["features"]) for model in models])
    np.savez(file, predicted=predicted, fold=fold, bias=np.stack([model["bias"] for model in models]),
             c=np.array([model["c"] for model in models]), sizes=sizes, **joined)


def numbers(text):
    return [float(one) for one in text.split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("epochs", help="float32 [bin, trial, feature]")
    parser.add_argument("labels")
    parser.add_argument("--bin", type=int, required=True, help="counted from 1")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--alpha", type=float, default=ALPHA)
    parser.add_argument("--grid", type=numbers, default=GRID, help="values of C")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    x, y = np.load(args.epochs, mmap_mode="r")[args.bin - 1], np.load(args.labels)
    predicted, fold, models = decode(x, y, args.folds, args.alpha, args.grid, args.seed)
    with open(args.out, "wb") as file:
        save(file, predicted, fold, models)
    print(f"accuracy {(predicted == y).mean():.3f}, {np.mean([len(m['features']) for m in models]):.0f} features")


if __name__ == "__main__":
    main()
