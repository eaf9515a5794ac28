"""Writes the compressed TFRecord files under tests/golden/tf with TensorFlow (requirements.txt).

Record i is the text "record i, ", i times.
"""

import os

import tensorflow as tf

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tf")

for kind in ("GZIP", "ZLIB"):
    with tf.io.TFRecordWriter(os.path.join(FOLDER, kind.lower() + ".tfrecord"), kind) as writer:
        for i in range(20):
            writer.write(b"record %d, " % i * i)
