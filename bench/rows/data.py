"""The data, made once: tokens.bin, x.npy and y.npy, records-*.tfrecord, tiny.npy. With `smoke`, few samples."""
import ctypes
import mmap
import os
import random
import struct
import subprocess

import shapes

TOKENS, DIGITS, RECORDS, TINY = 131_072, 60_000, 1_000_000, 65_536  # samples
SHARDS = 8
SMOKE = 32  # times fewer
FRAME = 18  # bytes that tf.train.Example adds to one feature `r` of a record's length
PIECE = 1 << 20


def make_once(path, write):
    """A file that is there is complete."""
    if not path.exists():
        part = path.with_suffix(".part")
        with open(part, "wb") as file:
            write(file)
        part.rename(path)


def noise(file, count):
    draw = random.Random(1)
    for at in range(0, count, PIECE):
        file.write(draw.randbytes(min(PIECE, count - at)))


def array(path, dtype, item, shape):
    """A .npy file with random bytes."""
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(64 * 2 - 11) + "\n"

    def write(file):
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        size = item
        for extent in shape:
            size *= extent
        noise(file, size)

    make_once(path, write)


def count(full, smoke):
    return full // SMOKE if smoke else full


def make_tokens(folder, smoke):
    make_once(folder / "tokens.bin", lambda file: noise(file, 2 * shapes.LENGTH * count(TOKENS, smoke)))


def make_digits(folder, smoke):
    array(folder / "x.npy", "|u1", 1, (count(DIGITS, smoke), 28, 28))
    array(folder / "y.npy", "<i8", 8, (count(DIGITS, smoke),))


def make_tiny(folder, smoke):
    array(folder / "tiny.npy", "<f4", 4, (count(TINY, smoke), 4))


def make_records(build, folder, smoke):
    """Returns the files."""
    names = [folder / f"records-{i:05}-of-{SHARDS:05}.tfrecord" for i in range(SHARDS)]
    if not all(name.exists() for name in names):
        records, rows = count(RECORDS, smoke), folder / "r.npy"
        array(rows, "|u1", 1, (records, shapes.RECORD - FRAME))
        subprocess.run([build / "leat", "pack", f"npy(r='{rows}')", "-o", folder / "records", "--shards", str(SHARDS)],
                       check=True, stdout=subprocess.DEVNULL)
        rows.unlink()
        if sum(name.stat().st_size for name in names) != records * shapes.FRAMED:
            raise RuntimeError(f"the records do not have {shapes.RECORD} bytes: set FRAME anew")
    return names


# ---- the page cache ----

def is_cached(fd, size):
    """Whether any page of the file is in the page cache."""
    pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    found = (ctypes.c_ubyte * pages)()
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(fd, size, access=mmap.ACCESS_COPY) as view:
        here = (ctypes.c_char * size).from_buffer(view)
        failed = libc.mincore(ctypes.byref(here), ctypes.c_size_t(size), found)
        del here
    if failed:
        raise OSError(ctypes.get_errno(), "mincore failed")
    return any(page & 1 for page in found)


def drop_from_cache(names):
    for name in names:
        fd = os.open(name, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            if is_cached(fd, os.fstat(fd).st_size):
                raise RuntimeError(f"{name} stays in the page cache: another process uses it")
        finally:
            os.close(fd)
