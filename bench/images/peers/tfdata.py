"""tf.data over TFRecord with AUTOTUNE, in tf.image's ops; in the cells' case its pixels are Leat's."""
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402

import cases  # noqa: E402
from peers import files  # noqa: E402


def photo(data, antialias):
    size = tf.image.extract_jpeg_shape(data)
    begin, extent, _ = tf.image.sample_distorted_bounding_box(
        size, tf.zeros([1, 0, 4]), aspect_ratio_range=(3 / 4, 4 / 3), area_range=(0.08, 1), max_attempts=10,
        use_image_if_no_bounding_boxes=True)
    window = tf.concat([begin[:2], extent[:2]], 0)
    image = tf.image.decode_and_crop_jpeg(data, window, channels=3)
    image = tf.image.resize(image, (224, 224), antialias=antialias)
    image = tf.image.random_flip_left_right(image)
    image = (image * (1 / 255) - cases.MEAN) / cases.STD
    return tf.transpose(image, (2, 0, 1))


def turn(image):
    """What tensorflow_addons' rotate does, by the op that it calls."""
    c, s, side = math.cos(math.radians(cases.ANGLE)), math.sin(math.radians(cases.ANGLE)), 99
    x, y = (side - (c * side - s * side)) / 2, (side - (s * side + c * side)) / 2
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=image[None], transforms=[[c, -s, x, s, c, y, 0, 0]], output_shape=(100, 100), fill_value=0.0,
        interpolation="NEAREST", fill_mode="CONSTANT")[0]


def still_cell(data, png):
    image = tf.io.decode_png(data, 3) if png else tf.io.decode_jpeg(data, 3)
    return tf.image.resize(image, (100, 100)) * (1 / 255)


def cell(data, png):
    image = tf.image.random_flip_left_right(still_cell(data, png))
    image = tf.image.random_brightness(turn(image), cases.BRIGHTNESS)
    return tf.image.random_contrast(image, *cases.CONTRAST)


def batches(case, data, workers, antialias=True):
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def prepare(record):
        sample = tf.io.parse_single_example(record, features)
        if case is cases.PHOTOS:
            return photo(sample["image"], antialias), sample["label"]
        return cell(sample["image"], case is cases.CELLS_PNG), sample["label"]

    records = tf.data.TFRecordDataset(files.shard_names(data, ".tfrecord"), num_parallel_reads=tf.data.AUTOTUNE)
    return (records.shuffle(500).repeat().map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
            .batch(case.batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))
