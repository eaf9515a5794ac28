"""Learn from the shards which events end in a purchase: logistic regression, by PyTorch if it is installed, else NumPy.

Numbers come as they are; a category is a number that picks a weight from a table. The result is what the model
is worth on users that it has not seen. Same shards, seed and library: same bytes.
"""
import json

import leat
import numpy as np
from leat import step

try:
    import torch
except ImportError:
    torch = None

NUMBERS = ["position", "dwell_ms", "user_events", "session_events", "since_last", "query_words", "age", "account_days",
           "price", "price_level", "visitors", "degrees", "budget", "campaign_days"]
CATEGORIES = ["hour", "weekday", "device", "country", "plan", "category", "brand", "channel"]
TABLE = 128  # more than any vocabulary has


def feed(shards, batch, seed=None):
    """Batches of all rows; shuffled if there is a seed."""
    fields = {**dict.fromkeys(NUMBERS, "float"), **dict.fromkeys([*CATEGORIES, "bought"], "int64")}
    rows = leat.tfrecord(step.inputs[shards] / "*.tfrecord").example(**fields)
    return (rows if seed is None else rows.shuffle()).batch(batch).feed(seed=seed or 0, threads=step.cpus)


def arrays(batch):
    """Numbers [row, number], places in the table of weights [row, category], labels [row]."""
    numbers = np.stack([batch[name] for name in NUMBERS], 1)
    places = np.stack([batch[name] + TABLE * n for n, name in enumerate(CATEGORIES)], 1)
    return numbers, places, batch["bought"].astype(np.float32)


class NumpyModel:
    """Stochastic gradient descent; the step of each weight shrinks with its gradients (Adagrad)."""

    def __init__(self, rate):
        self.rate = rate
        self.weights = [np.zeros(len(NUMBERS)), np.zeros(TABLE * len(CATEGORIES)), np.zeros(1)]
        self.seen = [np.full_like(one, 1e-6) for one in self.weights]

    def predict(self, numbers, places):
        linear, table, bias = self.weights
        return 1 / (1 + np.exp(-(numbers @ linear + table[places].sum(1) + bias)))

    def learn(self, numbers, places, labels):
        wrong = (self.predict(numbers, places) - labels) / len(labels)
        table = np.bincount(places.ravel(), np.repeat(wrong, places.shape[1]), len(self.weights[1]))
        for weight, seen, gradient in zip(self.weights, self.seen, (wrong @ numbers, table, wrong.sum())):
            seen += gradient * gradient
            weight -= self.rate * gradient / np.sqrt(seen)


class TorchModel:
    """The same, by PyTorch."""

    def __init__(self, rate):
        torch.set_num_threads(step.cpus)
        torch.use_deterministic_algorithms(True)
        self.linear = torch.nn.Linear(len(NUMBERS), 1)
        self.table = torch.nn.EmbeddingBag(TABLE * len(CATEGORIES), 1, mode="sum")
        parameters = [*self.linear.parameters(), *self.table.parameters()]
        for one in parameters:
            torch.nn.init.zeros_(one)
        self.optimizer = torch.optim.Adagrad(parameters, rate, eps=1e-3)

    def score(self, numbers, places):
        return (self.linear(torch.from_numpy(numbers)) + self.table(torch.from_numpy(places)))[:, 0]

    def predict(self, numbers, places):
        with torch.no_grad():
            return torch.sigmoid(self.score(numbers, places)).numpy()

    def learn(self, numbers, places, labels):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(self.score(numbers, places), torch.from_numpy(labels))
        loss.backward()
        self.optimizer.step()


def judge(labels, predicted):
    """Share of pairs of a purchase and another event that are in the right order, and the loss."""
    _, ranks, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # rank of equal predictions
    positive = labels == 1
    n, m = positive.sum(), (~positive).sum()
    auc = (middle[ranks][positive].sum() - n * (n + 1) / 2) / (n * m)
    likely = np.clip(np.where(positive, predicted, 1 - predicted), 1e-7, 1)
    return {"auc": round(float(auc), 4), "log_loss": round(float(-np.log(likely).mean()), 4), "test_rows": len(labels),
            "test_purchases": int(n)}


def main():
    epochs, rate = step.params.int("epochs", 3), step.params.float("rate", 0.1)
    model = (TorchModel if torch else NumpyModel)(rate)
    rows = 0
    with feed("train_shards", step.params.int("batch", 256), step.seed) as batches:
        for _ in step.track(range(epochs), "epoch"):
            for batch in batches:
                rows += batch.count
                model.learn(*arrays(batch))
    with feed("test_shards", 4096) as batches:
        tested = [(labels, model.predict(numbers, places)) for numbers, places, labels in map(arrays, batches)]
    metrics = judge(*(np.concatenate(part) for part in zip(*tested)))
    metrics.update(train_rows=rows // epochs, library="torch" if torch else "numpy")
    step.metrics(**metrics)
    step.out.write_text(json.dumps(metrics, indent=1) + "\n")


if __name__ == "__main__":
    main()
