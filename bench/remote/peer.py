"""Runs one peer as a contender: peer.py NAME PORT DATA WORK SECONDS [SEED]

Each takes one epoch of the photos from the server on PORT, decodes and crops them with OpenCV as Leat does, and makes
batches of uint8 images in random order. It speaks as remote_feed does: "open", a line to begin, and at the end the time,
images, and processor time of all its processes. After SECONDS it stops early. DATA is the folder that the server
serves, from which names are read; WORK is for its own files.

Settings are those that were fastest here, of those that a user would find in the documentation of each.
"""
import asyncio
import concurrent.futures
import http.client
import math
import os
import pathlib
import random
import resource
import shutil
import sys
import time

import cv2
import numpy as np
import torch

try:
    import torchvision  # Mosaic Streaming needs it
except RuntimeError:
    # Its wheel was built for another device than torch's: then its compiled part does not load, and it misses two
    # operators, which nothing here uses.
    for operator in "nms", "qnms":
        torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float threshold) -> Tensor")

BATCH = 64
WORKERS = 4
THREADS = 64  # of each worker, where there are any

cv2.setNumThreads(0)
torch.set_num_threads(1)


class Place:
    def __init__(self, port, data, work):
        self.port, self.data, self.work = int(port), pathlib.Path(data), pathlib.Path(work)
        self.endpoint = f"http://127.0.0.1:{port}"
        lines = (self.data / "photos/list.csv").read_text().splitlines()[1:]
        self.samples = [(f"photos/{name}", int(label)) for name, label in (line.split(",") for line in lines)]


# ---- pixels ----

def crop_box(height, width):
    """torchvision's RandomResizedCrop without its tensors."""
    for _ in range(10):
        area = height * width * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def pixels(data):
    """INTER_AREA is OpenCV's antialiasing."""
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    top, left, h, w = crop_box(*image.shape[:2])
    image = cv2.cvtColor(image[top:top + h, left:left + w], cv2.COLOR_BGR2RGB)
    return cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA if h > 224 or w > 224 else cv2.INTER_LINEAR)


# ---- clients: key -> bytes; made in each worker ----

def boto3_client(place):
    import boto3
    import botocore
    config = botocore.config.Config(signature_version=botocore.UNSIGNED, max_pool_connections=THREADS,
                                    s3={"addressing_style": "path"})
    client = boto3.client("s3", endpoint_url=place.endpoint, region_name="us-east-1", config=config)

    def get(key):
        bucket, _, name = key.partition("/")
        return client.get_object(Bucket=bucket, Key=name)["Body"].read()
    return get


def http_client(place):
    import threading
    local = threading.local()

    def get(key):
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", place.port)
        local.connection.request("GET", "/" + key)
        return local.connection.getresponse().read()
    return get


def obstore_store(place):
    import obstore
    return obstore.store.S3Store("photos", endpoint=place.endpoint, region="us-east-1", skip_signature=True,
                                 client_options={"allow_http": True})


def obstore_client(place):
    import obstore
    store = obstore_store(place)
    return lambda key: bytes(obstore.get(store, key.partition("/")[2]).bytes())


def s3torch_client(place):
    from s3torchconnector import S3ClientConfig
    from s3torchconnector._s3client import S3Client
    client = S3Client("us-east-1", endpoint=place.endpoint,
                      s3client_config=S3ClientConfig(force_path_style=True, unsigned=True))

    def get(key):
        bucket, _, name = key.partition("/")
        return client.get_object(bucket, name).read()
    return get


# ---- single objects ----

class Objects(torch.utils.data.Dataset):
    """With `threads`, a worker reads the samples of a batch at the same time."""

    def __init__(self, place, make_client, threads):
        self.place, self.make_client, self.threads, self.get = place, make_client, threads, None

    def __len__(self):
        return len(self.place.samples)

    def load(self, index):
        key, label = self.place.samples[index]
        return pixels(self.get(key)), label

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        if not self.get:
            self.get = self.make_client(self.place)
            self.pool = concurrent.futures.ThreadPoolExecutor(self.threads) if self.threads else None
        return list(self.pool.map(self.load, indices) if self.pool else map(self.load, indices))


def objects(make_client, threads=0):
    def batches(place):
        import boto3, obstore, s3torchconnector  # so that workers have them; clients do not survive a fork
        return torch.utils.data.DataLoader(Objects(place, make_client, threads), batch_size=BATCH, shuffle=True,
                                           num_workers=WORKERS)
    return batches


def obstore_asyncio(place, in_flight=256):
    """One process: reads on an event loop, decoding on two threads."""
    import queue
    import threading
    import obstore
    ready = queue.Queue(maxsize=8)

    async def main():
        store, loop = obstore_store(place), asyncio.get_running_loop()
        pool = concurrent.futures.ThreadPoolExecutor(2)
        order = random.sample(place.samples, len(place.samples))
        limit = asyncio.Semaphore(in_flight)

        async def load(key, label):
            async with limit:
                data = await (await obstore.get_async(store, key.partition("/")[2])).bytes_async()
            return await loop.run_in_executor(pool, pixels, memoryview(data)), label

        tasks = [asyncio.ensure_future(load(*sample)) for sample in order]
        for first in range(0, len(tasks), BATCH):
            batch = await asyncio.gather(*tasks[first:first + BATCH])
            images = torch.from_numpy(np.stack([image for image, _ in batch]))
            await loop.run_in_executor(None, ready.put, (images, torch.tensor([label for _, label in batch])))
        ready.put(None)

    threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
    return iter(ready.get, None)


# ---- shards ----

def webdataset_shards(place):
    import webdataset
    names = sorted(path.name for path in place.data.glob("shard*.tar"))
    images = (webdataset.WebDataset([f"pipe:curl -s {place.endpoint}/{name}" for name in names], shardshuffle=len(names),
                                    nodesplitter=None)
              .shuffle(500).map(lambda sample: (pixels(sample["jpg"]), int(sample["cls"]))))
    return torch.utils.data.DataLoader(images, batch_size=BATCH, num_workers=WORKERS)


def mosaic(place):
    import streaming

    class Photos(streaming.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return pixels(sample["image"]), sample["label"]

    os.environ.update(S3_ENDPOINT_URL=place.endpoint, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b",
                      AWS_DEFAULT_REGION="us-east-1")
    local = place.work / "mosaic-cache"
    shutil.rmtree(local, ignore_errors=True)
    streaming.base.util.clean_stale_shared_memory()
    data = Photos(remote="s3://mds", local=str(local), shuffle=True, batch_size=BATCH)
    return streaming.StreamingDataLoader(data, batch_size=BATCH, num_workers=WORKERS)


def litdata(place):
    os.environ.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_DEFAULT_REGION="us-east-1",
                      AWS_ENDPOINT_URL=place.endpoint)
    import litdata as lit
    from litdata.streaming import downloader
    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # there is no option for it

    class Photos(lit.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return pixels(sample["image"]), sample["label"]

    cache = place.work / "litdata-cache"
    shutil.rmtree(cache, ignore_errors=True)
    data = Photos("s3://lit", cache_dir=str(cache), shuffle=True,
                  storage_options={"endpoint_url": place.endpoint, "region_name": "us-east-1"})
    return lit.StreamingDataLoader(data, batch_size=BATCH, num_workers=WORKERS)


def write_mds(photos, out):
    import streaming
    with streaming.MDSWriter(out=str(out), columns={"image": "bytes", "label": "int"}, size_limit=1 << 24) as writer:
        for path in photos:
            writer.write({"image": path.read_bytes(), "label": int(path.parent.name)})


def read_photo(path):
    return {"image": pathlib.Path(path).read_bytes(), "label": int(pathlib.Path(path).parent.name)}


def write_litdata(photos, out):
    import litdata as lit
    lit.optimize(fn=read_photo, inputs=[str(path) for path in photos], output_dir=str(out), chunk_bytes="16MB",
                 num_workers=1)


PEERS = {
    "boto3": objects(boto3_client),
    "http.client": objects(http_client),
    "boto3, 64 threads": objects(boto3_client, THREADS),
    "http.client, 64 threads": objects(http_client, THREADS),
    "s3torchconnector": objects(s3torch_client),
    "s3torchconnector, 64 threads": objects(s3torch_client, THREADS),
    "obstore, 64 threads": objects(obstore_client, THREADS),
    "obstore asyncio": obstore_asyncio,
    "webdataset": webdataset_shards,
    "mosaic": mosaic,
    "litdata": litdata,
}


# ---- a run ----

def cpu_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def prepare(data):
    """What peers need in their own format, beside the photos."""
    photos = sorted(data.glob("photos/*/*.jpg"))
    for name, write in ("mds", write_mds), ("lit", write_litdata):
        if not (data / name / "index.json").exists():
            shutil.rmtree(data / name, ignore_errors=True)
            write(random.Random(1).sample(photos, len(photos)), data / name)


def main():
    if sys.argv[1] == "prepare":
        return prepare(pathlib.Path(sys.argv[2]))
    name, port, data, work, seconds = sys.argv[1:]
    start = time.monotonic()
    loader = PEERS[name](Place(port, data, work))
    print("open", time.monotonic() - start, flush=True)
    if not sys.stdin.readline():
        return 1
    begin, before, rows = time.monotonic(), cpu_seconds(), 0
    stream = iter(loader)
    while batch := next(stream, None):
        assert batch[0].shape[1:] == (224, 224, 3) and batch[0].dtype == torch.uint8
        rows += len(batch[0])
        if time.monotonic() - begin > float(seconds):
            break
    took = time.monotonic() - begin
    del stream, loader  # ends workers, whose processor time counts from then on
    print("end", took, rows, 0, cpu_seconds() - before, flush=True)
    os._exit(0)  # some peers leave threads that never end


if __name__ == "__main__":
    sys.exit(main())
