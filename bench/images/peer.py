"""Runs one peer as a contender of `compare` (the protocol is told in turns.h).

    peer.py NAME CASE DATA WORKERS WARM_UP

peers/NAME.py has `batches(case, data, workers)`: batches of case.batch images, for ever.
"""
import importlib
import sys
import time

import cases


def take(stream, case, images):
    taken = 0
    while taken < images:
        next(stream)
        taken += case.batch
    return taken


def main():
    name, case, data, workers, warm_up = sys.argv[1:]
    case = cases.CASES[case]
    peer = importlib.import_module(f"peers.{name}")
    stream = iter(peer.batches(case, data, int(workers)))
    image = peer.look(next(stream)) if hasattr(peer, "look") else next(stream)[0]
    if tuple(image.shape) != (case.batch, *case.shape) or "float32" not in str(image.dtype):
        sys.exit(f"{name} makes {image.dtype} {tuple(image.shape)}, not float32 {(case.batch, *case.shape)}")
    take(stream, case, int(warm_up))
    print("ready", flush=True)
    for line in sys.stdin:
        lead, count = map(int, line.split())
        take(stream, case, lead)
        begin = time.monotonic()
        taken = take(stream, case, count)
        print(taken, time.monotonic() - begin, flush=True)


if __name__ == "__main__":
    main()
