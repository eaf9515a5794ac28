"""Functions in Python on batches."""
import pickle
import traceback

import numpy as np
import pytest

import leat


def test_map_works_on_samples(numbers):
    feed = numbers.batch(10).map(lambda x: x + 1, fields="x").feed()
    batch = next(iter(feed))
    assert batch["x"].tolist() == list(range(1, 11)) and batch["y"].shape == (10, 2)
    feed = numbers.batch(10).map(lambda x, y: (y.sum(), x), fields=["x", "y"]).feed()
    assert next(iter(feed))["x"][3] == 9 and next(iter(feed))["y"][0] == 10
    feed = numbers.batch(10).map(lambda sample: {"z": sample["x"] * 2}).feed()
    assert list(next(iter(feed))) == ["z"]


def test_map_batch_works_on_batches(numbers):
    def negate(batch):
        batch["x"] *= -1

    feed = numbers.batch(10).map_batch(negate).map_batch(lambda batch: {"x": batch["x"] - 1}).feed()
    batch = next(iter(feed))
    assert batch["x"].tolist() == [-i - 1 for i in range(10)] and list(batch) == ["x"]
    assert batch.count == 10 and batch.epoch == 0 and batch.positions[2] == 2 and batch.valid.all()


def noise(x, rng):
    return x + rng.random()


def test_random_numbers_depend_on_seed_epoch_and_position_alone(numbers):
    def run(seed, size, epochs=1, start=0):
        feed = numbers.shuffle().batch(size).map(noise, fields="x").feed(seed=seed)
        feed.seek(0, start)
        return np.concatenate([batch["x"] for _ in range(epochs) for batch in feed])

    assert np.array_equal(run(1, 10), run(1, 25))
    assert not np.array_equal(run(1, 10), run(2, 10))
    both = run(1, 10, epochs=2)
    assert not np.array_equal(np.sort(both[:100]), np.sort(both[100:]))
    assert np.array_equal(run(1, 10, start=50), both[50:100])  # resumed
    assert len(set(np.round(both[:100] % 1, 9))) == 100


def test_two_stages_draw_different_numbers(numbers):
    feed = numbers.batch(10).map(lambda x, rng: rng.random(), fields="x").map(
        lambda y, rng: rng.random(), fields="y").feed()
    batch = next(iter(feed))
    assert not np.intersect1d(batch["x"], batch["y"]).size


def test_a_failure_says_which_sample_and_has_the_traceback(numbers):
    def picky(x):
        if x == 17:
            raise ValueError("not 17")
        return x

    feed = numbers.batch(10).map(picky, fields="x").feed()
    expected = r"map\(picky\) failed at position 17 of epoch 0: ValueError: not 17"
    with pytest.raises(leat.MapError, match=expected) as caught:
        for batch in feed:
            pass
    assert caught.value.position == 17 and isinstance(caught.value.__cause__, ValueError)
    assert "in picky" in "".join(traceback.format_exception(None, caught.value, caught.value.__traceback__))
    assert pickle.loads(pickle.dumps(caught.value)).position == 17


def test_padding_is_not_given_to_functions(numbers):
    seen = []
    feed = numbers.batch(30, tail="pad").map(lambda x: seen.append(int(x)) or x + 1, fields="x").feed()
    last = [batch["x"].tolist() for batch in feed][-1]
    assert seen == list(range(100))
    assert last == list(range(91, 101)) + [0] * 20


def test_what_functions_may_not_do(numbers):
    with pytest.raises(leat.InvalidError, match="come last"):
        numbers.batch(10).map(noise, fields="x").prefetch(2)
    with pytest.raises(leat.InvalidError, match="no field 'z'"):
        next(iter(numbers.batch(10).map(noise, fields="z").feed()))
    with pytest.raises(leat.InvalidError, match="takes a function"):
        numbers.map(3)
    with pytest.raises(leat.MapError, match="expected a dict"):
        next(iter(numbers.batch(10).map_batch(lambda batch: 3).feed()))


def test_results_of_different_sizes_are_lists(numbers):
    batch = next(iter(numbers.batch(4).map(lambda x: np.zeros(x), fields="x").feed()))
    assert [len(value) for value in batch["x"]] == [0, 1, 2, 3]


def test_mapped_feeds_can_be_pickled(numbers):
    feed = numbers.batch(10).map(noise, fields="x").feed(seed=1)
    other = pickle.loads(pickle.dumps(feed))
    assert np.array_equal(next(iter(feed))["x"], next(iter(other))["x"])
    assert "map(noise)" in repr(feed)
