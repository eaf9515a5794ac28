"""Windows of recordings are those of numpy.lib.stride_tricks.sliding_window_view, and arrays of several files are joined."""
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import leat

RNG = np.random.default_rng(0)


def whole(pipeline):
    """All samples as one batch of NumPy arrays."""
    feed = pipeline.batch(10_000).feed(epochs=1)
    batch = next(iter(feed))
    arrays = {name: np.array(batch[name]) for name in feed.fields}
    feed.close()
    return arrays


def slices(array, length, stride, axis=0):
    """All windows, the first axis numbers them."""
    views = sliding_window_view(array, length, axis)  # their numbers are at `axis`, their elements come last
    return np.moveaxis(np.moveaxis(views, axis, 0), -1, axis + 1)[::stride]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                                   "float32", "float64"])
@pytest.mark.parametrize("shape, axis", [((50,), 0), ((40, 3), 0), ((3, 40), 1), ((2, 3, 30), 2), ((2, 30, 3), 1)])
def test_windows_are_views_of_numpy(tmp_path, dtype, shape, axis):
    array = RNG.integers(0, 100, shape).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    for length, stride in [(1, 1), (7, 3), (10, 10), (5, 12), (30, 1)]:
        found = whole(leat.windows(tmp_path / "x.npy", length=length, stride=stride, axis=axis))["x"]
        wanted = slices(array, length, stride, axis)
        assert found.dtype == dtype and found.shape == wanted.shape and (found == wanted).all()


def test_labels(tmp_path):
    x, y = RNG.normal(size=(4, 200)).astype(np.float32), RNG.integers(0, 3, 200).astype(np.uint8)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    views = sliding_window_view(y, 9)[::4]
    wanted = {"last": views[:, -1], "first": views[:, 0], "center": views[:, 4], "all": views,
              "majority": np.array([np.bincount(view).argmax() for view in views])}
    for label, values in wanted.items():
        found = whole(leat.windows(tmp_path / "x.npy", length=9, stride=4, axis=1, labels=tmp_path / "y.npy",
                                   label=label))
        assert (found["label"] == values).all() and (found["x"] == slices(x, 9, 4, 1)).all()


def test_events(tmp_path):
    x = RNG.normal(size=(300, 2)).astype(np.float32)
    events = np.stack([RNG.integers(10, 280, 20), np.zeros(20, int), RNG.integers(0, 5, 20)], axis=1)  # as MNE's
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "events.npy", events)
    found = whole(leat.windows(tmp_path / "x.npy", length=15, offset=-10, events=tmp_path / "events.npy"))
    assert found["label"].tolist() == events[:, 2].tolist()
    assert all((one == x[start - 10:start + 5]).all() for one, start in zip(found["x"], events[:, 0]))


def test_files_are_apart_or_one_series(tmp_path):
    parts = [RNG.integers(0, 1000, (2, steps)) for steps in (31, 3, 0, 40)]
    for i, part in enumerate(parts):
        np.save(tmp_path / f"x-{i}.npy", part)
    apart = whole(leat.windows(tmp_path / "x-*.npy", length=8, stride=5, axis=1))["x"]
    assert (apart == np.concatenate([slices(part, 8, 5, 1) for part in parts if part.shape[1] >= 8])).all()
    series = whole(leat.windows(tmp_path / "x-*.npy", length=8, stride=5, axis=1, across=True))["x"]
    assert (series == slices(np.concatenate(parts, axis=1), 8, 5, 1)).all()


def test_events_outside_are_bad_samples(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10))
    np.save(tmp_path / "events.npy", np.array([[8, 1], [2, 0]]))
    pipeline = leat.windows(tmp_path / "x.npy", length=4, events=tmp_path / "events.npy").batch(2)
    with pytest.raises(leat.DataError, match="event 0 of .*not within the 10 steps"):
        next(iter(pipeline.feed()))
    feed = pipeline.feed(on_error="skip", epochs=1)
    assert [batch["x"].tolist() for batch in feed] == [[[2, 3, 4, 5]]]
    feed.close()


def test_complex_numbers_become_pairs(tmp_path):
    z = (RNG.normal(size=(12, 3)) + 1j * RNG.normal(size=(12, 3))).astype(np.complex64)
    np.save(tmp_path / "z.npy", z)
    rows = whole(leat.npy(z=tmp_path / "z.npy"))["z"]
    assert rows.shape == (12, 3, 2) and (rows.view(np.complex64)[..., 0] == z).all()
    views = whole(leat.windows(tmp_path / "z.npy", length=4, stride=2))["x"]
    assert (views.view(np.complex64)[..., 0] == slices(z, 4, 2)).all()


def test_arrays_of_several_files_are_joined(tmp_path):
    x = [RNG.normal(size=(rows, 3)) for rows in RNG.integers(0, 4, 100)]
    y = np.arange(sum(map(len, x)), dtype=np.uint64)
    for i, part in enumerate(x):
        np.save(tmp_path / f"x-{i:03}.npy", part)
    np.save(tmp_path / "y-0.npy", y[:10])
    np.save(tmp_path / "y-1.npy", y[10:])
    found = whole(leat.npy(x=tmp_path / "x-*.npy", y=tmp_path / "y-*.npy"))
    assert (found["x"] == np.concatenate(x)).all() and (found["y"] == y).all() and found["y"].dtype == np.uint64
