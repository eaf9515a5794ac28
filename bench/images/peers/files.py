"""The files of a data set: paths and labels, in ImageFolder's order."""
import os
import random


def listing(data):
    classes = sorted(entry.name for entry in os.scandir(f"{data}/files") if entry.is_dir())
    return [(f"{data}/files/{name}/{file}", label) for label, name in enumerate(classes)
            for file in sorted(os.listdir(f"{data}/files/{name}"))]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def endless_batches(data, size):
    """Lists of (encoded image, label), read into memory once, in one random order after the other, for ever."""
    samples, batch = [(read(path), label) for path, label in listing(data)], []
    while True:
        random.shuffle(samples)
        for sample in samples:
            batch.append(sample)
            if len(batch) == size:
                yield batch
                batch = []


def shard_names(data, ending):
    return sorted(f"{data}/{name}" for name in os.listdir(data) if name.endswith(ending) and name.startswith("packed-"))
