"""NVIDIA DALI on the CPU, over files in class folders."""
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

import cases
from peers import files


def photo(data):
    image = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB, random_area=[0.08, 1],
                                          random_aspect_ratio=[3 / 4, 4 / 3], num_attempts=10)
    image = fn.resize(image, size=[224, 224], interp_type=types.INTERP_TRIANGULAR, antialias=True)
    return fn.crop_mirror_normalize(image, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW",
                                    mean=[255 * m for m in cases.MEAN], std=[255 * s for s in cases.STD])


def cell(data):
    image = fn.decoders.image(data, device="cpu", output_type=types.RGB)
    image = fn.resize(image, size=[100, 100], interp_type=types.INTERP_LINEAR, antialias=False, dtype=types.FLOAT)
    image = fn.flip(image * (1 / 255), horizontal=fn.random.coin_flip())
    image = fn.rotate(image, angle=cases.ANGLE, keep_size=True, interp_type=types.INTERP_NN, fill_value=0)
    image = image + fn.random.uniform(range=[-cases.BRIGHTNESS, cases.BRIGHTNESS])
    mean = fn.reductions.mean(image, axes=[0, 1], keep_dims=True)
    return mean + (image - mean) * fn.random.uniform(range=list(cases.CONTRAST))


def batches(case, data, workers):
    @pipeline_def
    def pipeline():
        names, labels = zip(*files.listing(data))
        encoded, label = fn.readers.file(files=list(names), labels=list(labels), random_shuffle=True,
                                         initial_fill=500, name="reader")
        return photo(encoded) if case is cases.PHOTOS else cell(encoded), label

    pipe = pipeline(batch_size=case.batch, num_threads=workers, device_id=None, prefetch_queue_depth=2)
    pipe.build()
    while True:
        yield pipe.run()


def look(batch):
    return batch[0].as_array()
