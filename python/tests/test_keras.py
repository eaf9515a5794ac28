"""Keras's fit, evaluate and predict take a feed as they take a tf.data.Dataset."""
import os
import warnings

import numpy as np
import pytest

import leat

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

SAMPLES = np.arange(50, dtype=np.float32).reshape(50, 1)


def pipeline(shuffled=True, samples=50):
    numbers = leat.array(x=SAMPLES[:samples] / 50, y=SAMPLES[:samples] * 0)
    return numbers.shuffle() if shuffled else numbers


@pytest.fixture(scope="module")
def straight():
    feed = pipeline().batch(10).feed(seed=1)
    return [[samples(batch["x"]) for batch in feed] for _ in range(4)]


def samples(x):
    return np.rint(np.asarray(x).flatten() * 50).astype(int).tolist()


class Notes(keras.Model):
    """Keeps which samples it saw."""

    def __init__(self, **options):
        super().__init__()
        self.dense, self.seen, self.checked, self.weights_seen = keras.layers.Dense(1), [], [], []
        self.compile("sgd", "mse", metrics=["mae"], run_eagerly=True, **options)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        self.seen.append(samples(data[0]))
        return super().train_step(data)

    def test_step(self, data):
        self.checked.append(samples(data[0]))
        return super().test_step(data)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*ran out of data.*")
        yield


def test_fit_takes_a_feed_and_every_epoch_is_shuffled_anew(straight):
    model, ordered = Notes(), pipeline(False).batch(20).feed()
    model.fit(pipeline().batch(10).feed(seed=1).tensorflow("x", "y"), epochs=3, verbose=0,
              validation_data=ordered.tensorflow("x", "y"))
    assert model.seen == straight[0] + straight[1] + straight[2]
    assert model.checked == 3 * [list(range(20)), list(range(20, 40)), list(range(40, 50))]


def test_fit_continues_the_count_of_epochs(straight):
    model, train = Notes(), pipeline().batch(10).feed(seed=1).tensorflow("x", "y")
    model.fit(train, epochs=1, verbose=0)
    model.fit(train, epochs=1, verbose=0)
    assert model.seen == straight[0] + straight[1]


def test_steps_per_epoch_divides_an_epoch_as_with_a_data_set(straight):
    model = Notes()
    model.fit(pipeline().batch(10).feed(seed=1).tensorflow("x", "y"), epochs=2, steps_per_epoch=2, verbose=0)
    assert model.seen == straight[0][:4]
    model = Notes()
    endless = pipeline().batch(10).feed(seed=1).tensorflow("x", "y").dataset().repeat()
    model.fit(endless, epochs=2, steps_per_epoch=7, verbose=0)
    epochs = model.seen[:5], model.seen[5:10]
    assert len(model.seen) == 14 and epochs[0] != epochs[1]
    assert [sorted(sum(epoch, [])) for epoch in epochs] == [list(range(50))] * 2


def test_evaluate_and_predict_see_every_sample_once():
    ordered = pipeline(False).batch(20).feed()
    model = Notes()
    model.evaluate(ordered.tensorflow("x", "y"), verbose=0)
    assert sum(model.checked, []) == list(range(50))
    assert len(model.predict(ordered.tensorflow("x"), verbose=0)) == 50
    assert len(model.predict(ordered.tensorflow("x"), verbose=0)) == 50


def test_valid_as_the_sample_weight_leaves_padding_out():
    """Keras takes the third of three as the weight of each sample."""
    padded = pipeline(False, samples=13).batch(5, tail="pad").feed()
    with pytest.raises(leat.InvalidError, match="'valid'"):
        padded.tensorflow("x", "y")
    model, short = Notes(weighted_metrics=["mse"]), pipeline(False, samples=13).batch(5).feed()
    weighted = model.evaluate(padded.tensorflow("x", "y", "valid"), verbose=0, return_dict=True)
    plain = model.evaluate(short.tensorflow("x", "y"), verbose=0, return_dict=True)
    assert sum(len(batch) for batch in model.checked) == 15 + 13
    assert weighted["mse"] == pytest.approx(plain["mse"], rel=1e-5)


class Save(keras.callbacks.Callback):
    """The states of a feed: after each batch, and after each epoch."""

    def __init__(self, feed):
        super().__init__()
        self.feed, self.batches, self.epochs = feed, [], []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(self.feed.state_dict())

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(self.feed.state_dict())


def test_fit_resumes_at_a_checkpoint_of_any_batch(straight):
    train = pipeline().batch(10).feed(seed=1)
    save = Save(train)
    Notes().fit(train.tensorflow("x", "y"), epochs=1, verbose=0, callbacks=[save])
    for batches in (1, 2, 4):
        fresh, model = pipeline().batch(10).feed(), Notes()
        fresh.load_state_dict(save.batches[batches - 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Keras misses the batches that were seen before
            model.fit(fresh.tensorflow("x", "y"), epochs=2, verbose=0)
        assert model.seen == straight[0][batches:] + straight[1]


def test_a_checkpoint_after_an_epoch_starts_the_next_one(straight):
    train = pipeline().batch(10).feed(seed=1)
    save = Save(train)
    Notes().fit(train.tensorflow("x", "y"), epochs=2, verbose=0, callbacks=[save])
    for state, epoch in zip(save.epochs, (1, 2)):
        fresh, model = pipeline().batch(10).feed(), Notes()
        fresh.load_state_dict(state)
        model.fit(fresh.tensorflow("x", "y"), epochs=1, verbose=0)
        assert model.seen == straight[epoch]


def test_a_pass_over_a_data_set_is_an_epoch(straight):
    dataset = pipeline().batch(10).feed(seed=1).tensorflow("x", "y").dataset()
    for epoch in range(2):
        assert [samples(x) for x, _ in dataset] == straight[epoch]
    for x, _ in dataset:
        break
    assert [samples(x) for x, _ in dataset] == straight[3]
    assert dataset.element_spec[0].shape.as_list() == [None, 1]


def test_dicts_name_the_inputs_of_a_model():
    pairs = leat.array(a=SAMPLES, b=SAMPLES).batch(10).feed()
    a, b = keras.Input((1,), name="a"), keras.Input((1,), name="b")
    model = keras.Model({"a": a, "b": b}, keras.layers.Add()([a, b]))
    assert model.predict(pairs.tensorflow(), verbose=0).flatten().tolist() == (SAMPLES * 2).flatten().tolist()


def test_fields_that_do_not_exist_are_named_at_once():
    with pytest.raises(leat.InvalidError, match="no field 'label'.*x, y"):
        pipeline().batch(10).feed().tensorflow("x", "label")


def test_a_classifier_of_cells_changes_only_where_its_data_come_from(cells):
    """A functional model, an optimizer by class, binary labels, fit(data, epochs): as tutorials write it."""
    layers = tf.keras.layers
    image = tf.keras.Input(shape=(32, 32, 3), name="image")
    x = image
    for channels in (4, 8):
        x = layers.MaxPooling2D(2, 2)(layers.Conv2D(channels, (3, 3), activation="relu")(x))
    out = layers.Dense(1, activation="sigmoid")(layers.Flatten()(x))
    model = tf.keras.Model(image, out, name="cells")
    model.compile(optimizer=tf.keras.optimizers.RMSprop(learning_rate=1e-3), loss="binary_crossentropy",
                  metrics=["accuracy"])
    batches = (leat.tfrecord(cells / "cells-*.tfrecord").example(image=bytes, label=int).shuffle().decode()
               .resize(32, 32).scale(1 / 255).random_flip().random_brightness(0.1).batch(32).feed(seed=1))
    history = model.fit(batches.tensorflow("image", "label"), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2 and np.isfinite(history.history["loss"]).all()


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_other_backends_of_keras_take_a_torch_loader(python, backend):
    pytest.importorskip("torch"), pytest.importorskip(backend)
    assert python("""
import numpy as np, keras, leat
x = np.arange(50, dtype=np.float32).reshape(50, 1)
train = leat.torch.DataLoader(leat.array(x=x / 50, y=x * 0).shuffle().batch(10), fields=("x", "y"), seed=1)
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
history = model.fit(train, epochs=2, verbose=0, validation_data=train)
print(keras.backend.backend(), len(history.history["val_loss"]), len(model.predict(train, verbose=0)))
""", KERAS_BACKEND=backend).splitlines()[-1] == f"{backend} 2 50"
