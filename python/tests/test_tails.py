"""The last batch of an epoch: repeats, padding and exact parts, and epochs without batches."""
import logging

import numpy as np
import pytest

import leat


def ranks(pipeline, world, **options):
    return [pipeline.feed(rank=rank, world=world, epochs=1, **options) for rank in range(world)]


def test_several_ranks_see_every_sample_and_nothing_that_is_none(numbers):
    feeds = ranks(numbers.shuffle().batch(24), 4)
    assert [feed.tail for feed in feeds] == ["wrap"] * 4 and all(feed.has_fill for feed in feeds)
    batches = [batch.to_dict() for feed in feeds for batch in feed]
    assert all(len(batch["x"]) == 6 for batch in batches)
    counted = np.concatenate([batch["x"][batch["valid"]] for batch in batches])
    assert sorted(counted) == list(range(100))
    assert np.all(np.concatenate([batch["y"] for batch in batches])[:, 0] == np.concatenate([b["x"] for b in batches]))


def test_exact_delivers_each_sample_once_without_a_mask(numbers):
    feeds = ranks(numbers.take(26).batch(24, tail="exact"), 4)
    assert [len(feed) for feed in feeds] == [2, 2, 1, 1]
    assert not any(feed.has_fill for feed in feeds) and feeds[0].tail == "exact"
    batches = [batch.to_dict() for feed in feeds for batch in feed]
    assert all("valid" not in batch for batch in batches)
    assert sorted(np.concatenate([batch["x"] for batch in batches])) == list(range(26))


def test_one_rank_has_no_mask_where_there_is_no_fill(numbers):
    feed = numbers.batch(24).feed()
    assert feed.tail == "short" and not feed.has_fill
    assert list(next(iter(feed)).to_dict()) == ["x", "y"]
    assert not numbers.batch(20, tail="wrap").feed().has_fill
    assert numbers.batch(24, tail="pad").feed().has_fill
    assert list(next(iter(numbers.batch(24, tail="wrap").feed())).copy()) == ["x", "y", "valid"]


def test_functions_see_the_mask(numbers):
    seen = []

    def zero_fill(fields):
        seen.append(fields["valid"])
        fields["x"] = fields["x"] * fields["valid"]

    pipeline = numbers.skip(2).batch(33, tail="wrap")
    feed = pipeline.map(lambda x: x + 0, fields="x").map_batch(zero_fill).feed(epochs=1)
    batches = list(feed.numpy())
    assert [mask.sum() for mask in seen] == [33, 33, 32]
    assert [list(batch) for batch in batches] == [["x", "y", "valid"]] * 3
    assert batches[2]["x"][-1] == 0 and batches[2]["y"][-1, 0] == 2


def test_map_keeps_the_mask(numbers):
    feed = numbers.batch(60, tail="wrap").map(lambda sample: {"z": sample["x"] * 2}).feed(epochs=1)
    last = list(feed.numpy())[1]
    assert list(last) == ["z", "valid"] and last["valid"].sum() == 40
    assert last["z"][40:].tolist() == list(range(0, 40, 2))


def test_a_field_named_valid_needs_another_name_only_if_there_is_a_mask():
    pipeline = leat.array(valid=np.arange(10))
    assert list(next(iter(pipeline.batch(4).feed())).to_dict()) == ["valid"]
    with pytest.raises(leat.InvalidError, match=r"rename\(is_valid=valid\)"):
        pipeline.batch(4).feed(rank=0, world=2)
    feed = pipeline.rename(is_valid="valid").batch(4).feed(rank=0, world=2)
    assert list(next(iter(feed)).to_dict()) == ["is_valid", "valid"]


def test_seeking_into_a_batch_brings_fill(numbers):
    feed = numbers.batch(50, tail="wrap").feed()
    assert not feed.has_fill
    feed.seek(0, 60)
    assert feed.has_fill
    assert next(iter(feed)).to_dict()["valid"].sum() == 40


@pytest.mark.parametrize("size", [4, 5])
def test_a_run_that_starts_later_mixes_the_same_pairs(size):
    x = np.arange(23, dtype=np.float32)
    pipeline = leat.array(x=x, y=x).shuffle().batch(size).mixup(image="x", label="y")

    def by_position(feed):
        return {int(p): float(v) for batch in feed for p, v in zip(batch.positions, batch["x"])}

    whole = by_position(pipeline.feed(seed=3))
    for position in range(23):
        feed = pipeline.feed(seed=3)
        if position % size % 2 == 1:
            with pytest.raises(leat.InvalidError, match=rf"separates samples that mixup .* start at {position - 1} "):
                feed.seek(0, position)
        else:
            feed.seek(0, position)
            assert by_position(feed) == {p: v for p, v in whole.items() if p >= position}


@pytest.mark.parametrize("pipeline", [
    leat.array(x=np.arange(5)).take(0).shuffle().batch(2),
    leat.array(x=np.arange(5)).skip(5).batch(2, tail="wrap"),
    leat.array(x=np.zeros((0, 3))).batch(2),
    leat.array(x=np.arange(5)).batch(6, tail="drop"),
])
def test_an_epoch_without_batches_gives_empty_loops(pipeline, caplog):
    with caplog.at_level(logging.WARNING):
        feed = pipeline.feed()
    assert "no batches" in caplog.text
    assert len(feed) == 0 and feed.samples in (0, 5)
    for epoch in range(3):
        assert feed.epoch == epoch and list(feed) == []
    assert list(feed.steps()) == [] and list(feed.steps(3)) == [] and list(feed.numpy()) == []
    state = feed.state_dict()
    again = pipeline.feed(epochs=state["epoch"] + 1)
    again.load_state_dict(state)
    assert list(again) == [] and list(again) == []


def test_a_rank_without_a_batch_ends_with_the_others():
    feeds = ranks(leat.array(x=np.arange(3)).batch(8, tail="exact"), 4)
    assert [[batch["x"].tolist() for batch in feed] for feed in feeds] == [[[0]], [[1]], [[2]], []]


def test_jax_gets_the_mask(numbers):
    pytest.importorskip("jax")
    batches = list(numbers.batch(60, tail="pad").feed(epochs=1).jax())
    assert [int(batch["valid"].sum()) for batch in batches] == [60, 40]


def test_tensorflow_gets_the_mask(numbers):
    tf = pytest.importorskip("tensorflow")
    view = numbers.batch(60, tail="pad").feed(epochs=2).tensorflow()
    assert [int(tf.reduce_sum(tf.cast(batch["valid"], tf.int32))) for batch in view] == [60, 40]
    assert [int(tf.reduce_sum(tf.cast(valid, tf.int32))) for _, valid in view.dataset("x", "valid")] == [60, 40]
    assert set(numbers.batch(60, tail="pad").feed().tensorflow().dataset().element_spec) == {"x", "y", "valid"}
