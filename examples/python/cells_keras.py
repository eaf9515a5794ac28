"""cells_keras.py 'cells-*.tfrecord' [EPOCHS]: finds parasites in blood cells with Keras on TensorFlow.

The first four fifths of the samples train, the rest tells how well. The pixels are those of tf.image.
"""
import sys

import leat

try:
    import keras
    import tensorflow  # noqa: F401, what Keras works with here
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no module {missing.name}: pip install tensorflow") from None

pattern, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2
cells = leat.tfrecord(pattern).example(image=bytes, label=int)
count = cells.feed().samples


def prepared(samples):
    return samples.decode().resize(48, 48).scale(1 / 255)


train = prepared(cells.take(count * 4 // 5).shuffle()).random_flip().random_contrast(0.9, 1.1).batch(32).feed(seed=1)
valid = prepared(cells.skip(count * 4 // 5)).batch(32).feed()

model = keras.Sequential([keras.Input((48, 48, 3)), keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
                          keras.layers.Conv2D(16, 3, strides=2, activation="relu"), keras.layers.Flatten(),
                          keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(train.tensorflow().dataset("image", "label"), epochs=epochs, verbose=2,
          validation_data=valid.tensorflow().dataset("image", "label"))
