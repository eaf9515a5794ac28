"""leat.keras.XrayCallback with real Keras, and leat.xray on tf.data."""
import os
import time

import numpy as np
import pytest

import leat
from leat import _spans, _watch

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")


def model(seconds=0.0):
    class Sleeps(keras.layers.Layer):
        """The planted step: sleeps in the compiled function."""

        def call(self, x):
            def sleep(x):
                time.sleep(seconds)
                return x
            y = tf.numpy_function(sleep, [x], tf.float32)
            return tf.ensure_shape(y, x.shape)

    net = keras.Sequential([keras.Input((3,)), Sleeps(), keras.layers.Dense(1)])
    net.compile("sgd", "mse", jit_compile=False)
    return net


def dataset(seconds, batches=12):
    def slow():
        for i in range(batches):
            time.sleep(seconds)
            yield np.zeros((4, 3), np.float32), np.zeros((4, 1), np.float32)

    return tf.data.Dataset.from_generator(slow, output_signature=(tf.TensorSpec((None, 3)), tf.TensorSpec((None, 1))))


def test_waiting_for_tf_data_is_told_from_the_step():
    xray = leat.keras.XrayCallback()
    model(0.02).fit(xray.watch(dataset(0.06)), epochs=2, verbose=0, callbacks=[xray])
    found = xray.result()
    assert found.batches == 24 and found.samples == 96 and len(found.epochs) == 2
    took = {tag: np.median([span.end - span.begin for span in found._lanes[0] if span.tag == tag]) / 1e6 for tag in (0, 2)}
    assert took[0] >= 60 and took[2] >= 20  # how much longer says only how busy the machine is
    assert found.limit == "loader" and {part["name"] for part in found.parts} == {"Get batch", "Run training batch"}


def test_shares_are_those_of_the_loop(simulate):
    simulate(_spans, _watch, leat.keras)
    xray = leat.keras.XrayCallback()
    model(0.02).fit(xray.watch(dataset(0.06)), verbose=0, callbacks=[xray])
    found = xray.result()
    assert found.wait_share == pytest.approx(0.75) and found.utilisation == pytest.approx(0.25)
    assert found.samples_per_s == pytest.approx(4 / 0.08)


def test_a_step_that_does_not_wait(simulate):
    simulate(_spans, _watch, leat.keras)
    x = np.zeros((48, 3), np.float32)
    xray = leat.keras.XrayCallback()
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)
    model(0.03).fit(xray.watch(data), verbose=0, callbacks=[xray])
    found = xray.result()
    assert found.samples == 48 and found.limit == "step" and found.utilisation == pytest.approx(1)


def test_a_feed(numbers):
    pipeline = leat.array(x=np.zeros((40, 3), np.float32), y=np.zeros((40, 1), np.float32)).batch(4)
    xray = leat.keras.XrayCallback()
    with pipeline.feed() as feed:
        model(0.01).fit(xray.watch(feed.tensorflow("x", "y")), epochs=2, verbose=0, callbacks=[xray])
        assert feed.epoch == 2
    assert xray.result().samples == 80 and xray.result().batches == 20


def test_data_that_was_not_passed_through_the_callback():
    with pytest.raises(leat.InvalidError, match="xray.watch"):
        model().fit(dataset(0), verbose=0, callbacks=[leat.keras.XrayCallback()])


def test_xray_takes_a_dataset():
    found = leat.xray(dataset(0.04, 15), lambda batch: time.sleep(0.02))
    assert found.samples == 60 and 120 < found.perfect_loader["samples_per_s"] <= 200 and found.limit == "loader"


def test_with_another_backend(python):
    """A DataLoader in Keras on PyTorch: workers are seen, too."""
    pytest.importorskip("torch")
    assert python("""
import time, torch, keras, leat
class Slow:
    def __call__(self, x):
        time.sleep(0.02)
        return x
class Data(torch.utils.data.Dataset):
    def __init__(self): self.transform = Slow()
    def __len__(self): return 32
    def __getitem__(self, i): return self.transform(torch.zeros(3)), torch.zeros(1)
net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
net.compile("sgd", "mse")
xray = leat.keras.XrayCallback()
watched = xray.watch(torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2))
for _ in range(2):  # the second fit has its own figures
    net.fit(watched, verbose=0, callbacks=[xray])
    found = xray.result()
    # Keras looks at the first batch with another iterator, whose workers read ahead meanwhile.
    assert 32 <= found.stages[0]["calls"] <= 64, found.stages
print(found.samples, found.batches, found.limit, found.stages[0]["per_sample_ms"] >= 20)
""", KERAS_BACKEND="torch").split("\n")[-2] == "32 8 transform Slow True"


def test_a_data_set_without_workers_is_timed(python):
    pytest.importorskip("torch")
    assert python("""
import time, torch, keras, leat
class Slow:
    def __call__(self, x):
        time.sleep(0.02)
        return x
class Data(torch.utils.data.Dataset):
    def __init__(self): self.transform = Slow()
    def __len__(self): return 32
    def __getitem__(self, i): return self.transform(torch.zeros(3)), torch.zeros(1)
net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
net.compile("sgd", "mse")
xray, data = leat.keras.XrayCallback(), Data()
net.fit(xray.watch(torch.utils.data.DataLoader(data, batch_size=4)), verbose=0, callbacks=[xray])
found = xray.result()
print(found.samples, found.limit, found.stages[0]["calls"] >= 32, found.loader_per_s <= 50, type(data.transform) is Slow)
""", KERAS_BACKEND="torch").split("\n")[-2] == "32 transform Slow True True True"


def test_validation_is_not_training():
    """It comes after the last step of an epoch, and before Keras says that the epoch is over."""
    xray = leat.keras.XrayCallback()
    model().fit(xray.watch(dataset(0, 4)), validation_data=dataset(0.3, 4), epochs=2, verbose=0, callbacks=[xray])
    begin = min(span.begin for span in xray.result()._lanes[0])
    end = max(span.end for span in xray.result()._lanes[0])
    assert end - begin > 1.2e9 and xray.result().seconds < (end - begin) / 1e9 - 1


def test_several_steps_at_once_are_refused():
    net = model()
    net.compile("sgd", "mse", jit_compile=False, steps_per_execution=2)
    xray = leat.keras.XrayCallback()
    with pytest.raises(leat.InvalidError, match="steps_per_execution=1"):
        net.fit(xray.watch(dataset(0)), verbose=0, callbacks=[xray])


def test_data_that_cannot_be_watched_with_tensorflow_is_refused():
    with pytest.raises(leat.InvalidError, match="a generator is not seen"):
        leat.keras.XrayCallback().watch(x for x in ())
