#!/usr/bin/env python3
"""Compares the C plan with an independent one that does everything the long way.

    python3 tests/plan_oracle.py BUILD/plan_dump [--specs N] [--seed S]

Where the C plan computes which sample stands at a position, this one plays the whole epoch:
lists for passes, a real shuffle buffer, real iterators over files. It is written from
docs/PLAN.md and shares nothing with the C code. Random specs are asked in order, at random
positions, from the middle on and with other seeds in between, all of one plan, so that no
cache may change an answer. Windows are cut from lists of all bytes. What tf.data gave (golden/interleave.json) is replayed, and
the distributions of shuffles are compared with exact ones.
"""
import argparse
import functools
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
from collections import Counter, namedtuple

M32 = 2**32 - 1
M64 = 2**64 - 1


# ---- random numbers (docs/PLAN.md, "Random numbers") ----

def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def stream_of(op, occurrence):
    h = 0xCBF29CE484222325
    for byte in op.encode():
        h = (h ^ byte) * 0x100000001B3 & M64
    return mix64(mix64(h) + occurrence & M64)


def philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & M32, a >> 32 ^ c3 ^ k1, a & M32
        k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
    return c0, c1, c2, c3


def u64s(seed, epoch, position, stream):
    """The 64-bit numbers of one stream."""
    key = mix64(seed) ^ stream
    for block in itertools.count():
        w = philox((block, epoch & M32, position & M32, position >> 32), (key & M32, key >> 32))
        yield w[0] | w[1] << 32
        yield w[2] | w[3] << 32


@functools.lru_cache(maxsize=4096)
def draw(n, seed, epoch, position, stream):
    return next(u64s(seed, epoch, position, stream)) * n >> 64


@functools.lru_cache(maxsize=256)
def perm_keys(n, seed, epoch, stream):
    rounds = 32 if n < 1024 else 8
    return list(itertools.islice(u64s(seed, epoch, M64, stream), rounds))


def perm_at(n, seed, epoch, stream, x):
    keys = perm_keys(n, seed, epoch, stream)
    cols = math.isqrt(n - 1) + 1
    cols += cols % 2
    rows = -(-n // cols)
    while n > 1:
        left, right = divmod(x, cols)
        for even, odd in zip(keys[0::2], keys[1::2]):
            left = (left + (mix64(right ^ even) * rows >> 64)) % rows
            right = (right + (mix64(left ^ odd) * cols >> 64)) % cols
        x = left * cols + right
        if x < n:
            break
    return x


def perm(n, seed, epoch, stream):
    return [perm_at(n, seed, epoch, stream, x) for x in range(n)]


# ---- the ops, played ----

def interleave(files, cycle, block):
    """tf.data's deterministic interleave of lists."""
    files = iter(files)
    slots = [None] * cycle
    more = True
    visited = 0
    while more or any(slots):
        i = visited % cycle
        visited += 1
        if slots[i] is None and more:
            file = next(files, None)
            if file is None:
                more = False
            else:
                slots[i] = iter(file)
        for _ in range(block):
            if slots[i] is None:
                break
            sample = next(slots[i], None)
            if sample is None:
                slots[i] = None
            else:
                yield sample


def shuffle_full(samples, seed, epoch, stream):
    return [samples[i] for i in perm(len(samples), seed, epoch, stream)]


def shuffle_window(samples, window, seed, epoch, stream):
    window = min(window, len(samples))
    rest = iter(samples)
    buffer = list(itertools.islice(rest, window))
    out = []
    for position, sample in enumerate(rest):
        slot = draw(window, seed, epoch, position, stream)
        out.append(buffer[slot])
        buffer[slot] = sample
    return out + [buffer[i] for i in perm(window, seed, epoch, mix64(stream + 1 & M64))]


def shuffle_block(samples, block, window, seed, epoch, stream):
    blocks = [samples[i:i + block] for i in range(0, len(samples), block)]
    blocks = shuffle_full(blocks, seed, epoch, stream)
    out = []
    for number, i in enumerate(range(0, len(blocks), window)):
        group = [sample for part in blocks[i:i + window] for sample in part]
        out += shuffle_full(group, seed, epoch, mix64(mix64(stream + 2 & M64) + number & M64))
    return out


def split(samples, args, stream):
    train, validation = [], []
    for number, i in enumerate(range(0, len(samples), args["folds"])):
        block = samples[i:i + args["folds"]]
        chosen = (draw(args["folds"], args["seed"], 0, number, stream) + args["fold"]) % args["folds"]
        train += block[:chosen] + block[chosen + 1:]
        validation += block[chosen:chosen + 1]
    return train if args["part"] == "train" else validation


Op = namedtuple("Op", "name args occurrence")


def play(counts, ops, seed, epoch):
    """All samples of one pass of the last op."""
    if not ops:
        return list(range(sum(counts)))
    name, args, occurrence = ops[-1]
    stream = stream_of(name, occurrence)
    if name == "repeat":
        passes = [play(counts, ops[:-1], seed, epoch * args["times"] + i & M64) for i in range(args["times"])]
        return [sample for one in passes for sample in one]
    samples = play(counts, ops[:-1], seed, epoch)
    if name == "interleave":
        rest = iter(samples)
        out = list(interleave([list(itertools.islice(rest, count)) for count in counts], args["cycle"], args["block"]))
    elif name == "take":
        out = samples[:args["count"]]
    elif name == "skip":
        out = samples[args["count"]:]
    elif name == "shard":
        out = samples[args["index"]::args["count"]]
    elif name == "split":
        out = split(samples, args, stream)
    elif args.get("block"):
        out = shuffle_block(samples, args["block"], args["window"], seed, epoch, stream)
    elif args.get("window"):
        out = shuffle_window(samples, args["window"], seed, epoch, stream)
    else:
        out = shuffle_full(samples, seed, epoch, stream)
    return out


# ---- the C plan ----

class Plans:
    """Lines for plan_dump, run all at once."""

    def __init__(self, program):
        self.program = program

    def ask(self, lines):
        done = subprocess.run([self.program], input="".join(line + "\n" for line in lines), text=True,
                              stdout=subprocess.PIPE, check=True)
        answers = done.stdout.split("\n")
        assert len(answers) == len(lines) + 1, "plan_dump gave another number of lines"
        return [answer.strip() for answer in answers[:-1]]


def line_of(counts, ops, seed, queries):
    text = " | ".join("%s(%s)" % (op.name, ", ".join("%s=%s" % arg for arg in op.args.items())) for op in ops)
    return "%s; %s; %d; %s" % (",".join(map(str, counts)), text, seed, " ".join(queries))


def numbers(answer):
    return [int(word) for word in answer.split()]


# ---- random specs ----

def some_counts(rng):
    kind = rng.random()
    files = rng.randint(1, 12)
    if kind < 0.15:
        return [rng.randint(1, 20)] * files
    if kind < 0.25:
        return [rng.randint(0, 1) for _ in range(files)] + [1]
    if kind < 0.3:
        return [rng.randint(50, 400)] + [rng.randint(0, 9) for _ in range(files)]
    counts = [rng.choice([0, 1, 2, 3, 4, 6, rng.randrange(20)]) for _ in range(files)]
    return counts if sum(counts) else counts + [rng.randint(1, 9)]


def some_size(rng, n):
    """Of a window, block, ...: every kind of relation with n."""
    return max(1, rng.choice([1, 2, 3, rng.randint(1, 8), rng.randint(1, n), n - 1, n, n + rng.randint(0, 9)]))


def some_ops(rng, counts):
    n = sum(counts)
    calls = []
    if rng.random() < 0.5:
        calls.append(("interleave", {"cycle": some_size(rng, len(counts)), "block": some_size(rng, max(counts))}))
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):  # before anything that changes from pass to pass
        folds = rng.randint(2, 6)
        calls.append(("split", {"part": rng.choice(["train", "validation"]), "folds": folds,
                                "fold": rng.randrange(folds), "seed": rng.choice([0, 1, rng.randrange(10**18)])}))
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        name = rng.choice(["shuffle", "window", "window", "block", "take", "skip", "shard", "repeat"])
        if name == "shuffle":
            calls.append(("shuffle", {}))
        elif name == "window":
            calls.append(("shuffle", {"window": some_size(rng, n)}))
        elif name == "block":
            calls.append(("shuffle", {"block": some_size(rng, n), "window": some_size(rng, n)}))
        elif name == "take":
            calls.append(("take", {"count": rng.randint(0, n + 3)}))
        elif name == "skip":
            calls.append(("skip", {"count": rng.randint(0, max(1, n // 3))}))
        elif name == "shard":
            count = rng.randint(1, 4)
            calls.append(("shard", {"count": count, "index": rng.randrange(count)}))
        elif n < 500:
            times = rng.randint(1, 4)
            n *= times
            calls.append(("repeat", {"times": times}))
    seen = Counter()
    ops = []
    for name, args in calls:
        ops.append(Op(name, args, seen[name]))
        seen[name] += 1
    return ops


def some_number(rng):
    return rng.choice([0, 1, 2, rng.randrange(100), rng.randrange(2**32), rng.randrange(2**64), M64])


def some_queries(rng, counts, ops, seed):
    """Questions to one plan, and the answers they have to get."""
    orders = {}
    queries, expected = [], []
    epochs = [some_number(rng), rng.randrange(3)]
    for step in range(rng.randint(2, 5)):
        epoch = rng.choice(epochs)
        if (seed, epoch) not in orders:
            orders[seed, epoch] = play(counts, ops, seed, epoch)
        order = orders[seed, epoch]
        n = len(order)
        kind = rng.randrange(5) if step and n else 0
        if kind == 0:
            queries.append("@%d" % epoch)
            expected += order
        elif kind == 1:  # jumps
            places = [rng.randrange(n) for _ in range(rng.randint(1, 20))]
            queries += ["%d:%d" % (epoch, place) for place in places]
            expected += [order[place] for place in places]
        elif kind == 2:  # resume
            begin = rng.randrange(n)
            queries.append("%d:%d-%d" % (epoch, begin, n))
            expected += order[begin:]
        elif kind == 3:  # what a rank, or a shard behind, would ask for
            places = range(rng.randrange(n), n, rng.randint(1, 5))
            queries += ["%d:%d" % (epoch, place) for place in places]
            expected += [order[place] for place in places]
        else:
            seed = some_number(rng)
            queries.append("=%d" % seed)
    return queries, expected


def check_random_specs(plans, specs, rng):
    lines, wanted = [], []
    for _ in range(specs):
        counts = some_counts(rng)
        ops = some_ops(rng, counts)
        seed = some_number(rng)
        queries, expected = some_queries(rng, counts, ops, seed)
        lines.append(line_of(counts, ops, seed, queries))
        wanted.append(expected)
    for line, answer, expected in zip(lines, plans.ask(lines), wanted):
        if answer != " ".join(map(str, expected)):
            sys.exit("plan differs for\n  %s\nexpected\n  %s\ngot\n  %s" % (line, expected, answer))
    empty = sum(not expected for expected in wanted)
    print("%d random specs: equal (%d of them leave nothing)" % (specs, empty))


# ---- batches and ranks ----

def global_batch(size, n, tail, group, begin):
    """The rows of the global batch that begins at a position, with '-' before repeats; None: there is none."""
    rows = ["%d" % position for position in range(begin, min(begin + n, size))]
    if not rows or tail == "drop" and len(rows) < n:
        return None
    if tail == "pad":
        rows += ["."] * (n - len(rows))
    if tail == "wrap":  # lap after lap, each of whole groups
        whole = ["-%d" % position for position in range(size)]
        whole += ["-%d" % (size - 1)] * (-size % group)
        rows += ["-%d" % (size - 1)] * (-len(rows) % group)
        while len(rows) < n:
            rows += whole
        rows = rows[:n]
    return rows


def deal(rows, n, tail, group, world):
    """What each rank gets of a global batch, as lists."""
    if tail != "exact" or len(rows) == n:
        each = n // world
        return [rows[i * each:(i + 1) * each] for i in range(world)]
    groups = [rows[i:i + group] for i in range(0, len(rows), group)]
    hands = [[] for _ in range(world)]
    for rank, hand in enumerate(hands):
        count = len(groups) // world + (rank < len(groups) % world)
        before = sum(len(groups) // world + (r < len(groups) % world) for r in range(rank))
        hand += [row for one in groups[before:before + count] for row in one]
    return hands


def check_batches(plans):
    """Every small epoch, batch, tail and number of ranks, from any position on."""
    lines, wanted = [], []
    for tail, group, world, each in itertools.product(["short", "drop", "pad", "wrap", "exact"], [1, 2], range(1, 6), [1, 2, 4]):
        n = world * each
        if tail == "short" and world > 1 or each % group:
            continue
        for size, begin in itertools.product(range(2 * n + 3), [0, 1, n - 1, n, n + 1, 2 * n]):
            if begin > size:
                continue
            rows = global_batch(size, n, tail, group, begin)
            hands = [[]] * world if rows is None else deal(rows, n, tail, group, world)
            assert rows is None or sum(hands, []) == rows, "the oracle loses rows"
            for rank, hand in enumerate(hands):
                lines.append("rows %d %d %s %d %d %d %d" % (size, n, tail, group, rank, world, begin))
                wanted.append(" ".join(hand) if hand else "end")
    for line, answer, expected in zip(lines, plans.ask(lines), wanted):
        if answer != expected:
            sys.exit("a batch differs for\n  %s\nexpected\n  %s\ngot\n  %s" % (line, expected, answer))
    print("%d batches of ranks: equal" % len(lines))


# ---- windows ----

def recording_of(file, outer, steps, inner):
    """A row of steps for each of `outer`, where a step is the (file, byte) of each of its bytes."""
    places = iter(range(outer * steps * inner))
    return [[[(file, next(places)) for _ in range(inner)] for _ in range(steps)] for _ in range(outer)]


def cut(recording, begin, length):
    """The bytes of one window, row by row."""
    return [place for row in recording for step in row[begin:begin + length] for place in step]


def slide(recording, length, stride):
    starts = [begin for begin in range(len(recording[0])) if begin + length <= len(recording[0])]
    return [cut(recording, begin, length) for begin in starts[::stride]]


def bytes_of(word):
    """What the pieces of an answer are, byte by byte."""
    if word == "out":
        return None
    pieces = [re.fullmatch(r"(\d+):(\d+)-(\d+)", piece).groups() for piece in word.split("+")]
    return [(int(file), place) for file, begin, end in pieces for place in range(int(begin), int(end))]


def some_windows(rng):
    """A line for plan_dump, and the bytes of each window, found by cutting lists."""
    length, stride = rng.randint(1, 6), rng.choice([0, 1, 1, 2, 3, 5, 9])
    outer, inner = rng.choice([1, 1, 2, 3]), rng.choice([1, 2, 4])
    steps = [rng.choice([0, 1, 2, 7, rng.randrange(25)]) for _ in range(rng.randint(1, 6))]
    recordings = [recording_of(file, outer, count, inner) for file, count in enumerate(steps)]
    line = "windows %d %d %d %d %%d %s" % (length, stride, outer, inner, ",".join(map(str, steps)))
    kind = rng.choice(["apart", "across", "events"])
    if kind == "across":
        series = [sum((recording[row] for recording in recordings), []) for row in range(outer)]
        return line % 1, slide(series, length, stride or length)
    if kind == "apart":
        return line % 0, [one for recording in recordings for one in slide(recording, length, stride or length)]
    offset = rng.randint(-4, 4)
    events = [[rng.randrange(27) for _ in range(rng.randrange(4))] for _ in steps]
    wanted = []
    for recording, starts in zip(recordings, events):
        fits = range(len(recording[0]) - length + 1)
        wanted += [cut(recording, start + offset, length) if start + offset in fits else None for start in starts]
    starts = ",".join(str(start) for one in events for start in one)
    counts = ",".join(str(len(one)) for one in events)
    return (line % 0 + " %d %s %s" % (offset, counts, starts), wanted) if starts else some_windows(rng)


def check_windows(plans, count, rng):
    cases = [some_windows(rng) for _ in range(count)]
    for (line, wanted), answer in zip(cases, plans.ask([line for line, _ in cases])):
        if [bytes_of(word) for word in answer.split()] != wanted:
            sys.exit("windows differ for\n  %s\nexpected\n  %s\ngot\n  %s" % (line, wanted, answer))
    print("windows of %d sets of recordings: equal" % count)


def read_text(*path):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), *path), encoding="utf-8") as f:
        return f.read()


def check_documented(plans):
    examples = re.findall(r"^    (\S.*;.*;.*;.*) -> (.*)$", read_text("..", "docs", "PLAN.md"), re.M)
    assert examples, "docs/PLAN.md has no examples"
    for (line, expected), answer in zip(examples, plans.ask([line for line, _ in examples])):
        if answer != expected:
            sys.exit("docs/PLAN.md says\n  %s -> %s\ngot\n  %s" % (line, expected, answer))
    print("%d examples of docs/PLAN.md: equal" % len(examples))


def check_interleave_golden(plans):
    golden = json.loads(read_text("golden", "interleave.json"))
    lines = []
    for case in golden["cases"]:
        ops = [Op("interleave", {"cycle": case["cycle"], "block": case["block"]}, 0)]
        if case["order"]:
            assert play(case["counts"], ops, 0, 0) == case["order"], "the oracle differs from tf.data: %s" % case
        lines.append(line_of(case["counts"], ops, 0, ["@0"]))
    for case, answer in zip(golden["cases"], plans.ask(lines)):
        if case["order"] and numbers(answer) != case["order"]:
            sys.exit("interleave differs from tf.data: %s\ngot %s" % (case, answer))
    print("%d interleaves of %s: equal" % (len(lines), golden["made_by"]))


def check_large(plans, rng):
    """Sizes that nobody can play: single places of a permutation."""
    lines, wanted = [], []
    for n in [2**32 - 1, 2**32 + 1, 10**12, 2**53 + 1, 2**62 - 1, 2**62]:
        seed, epoch = rng.randrange(2**64), rng.randrange(100)
        places = [0, n - 1] + [rng.randrange(n) for _ in range(50)]
        lines.append(line_of([n], [Op("shuffle", {}, 0)], seed, ["%d:%d" % (epoch, place) for place in places]))
        wanted.append([perm_at(n, seed, epoch, stream_of("shuffle", 0), place) for place in places])
    assert [numbers(answer) for answer in plans.ask(lines)] == wanted, "permutations of large sizes differ"
    print("permutations of up to 2^62: equal")


# ---- distributions ----

def check_fit(what, observed, probability, trials):
    """Chi-square of what was seen in so many trials against exact probabilities; beyond five sigma is refused."""
    assert set(observed) <= set(probability), "%s: something impossible came" % what
    chi2 = sum((observed[key] - trials * p) ** 2 / (trials * p) for key, p in probability.items())
    mean = sum(1 - p for p in probability.values())
    # Wilson and Hilferty: the cube root of chi2 / mean is nearly normal
    z = ((chi2 / mean) ** (1 / 3) - (1 - 2 / (9 * mean))) / math.sqrt(2 / (9 * mean))
    text = "%s: chi2 %.1f where %.1f is the mean (%+.1f sigma)" % (what, chi2, mean, z)
    if abs(z) > 5:
        sys.exit(text)
    print(text)


def orders_of(plans, n, args, seeds, epochs):
    """The orders of n samples for each of a range of seeds, or of epochs."""
    queries = []
    for seed in seeds:
        queries.append("=%d" % seed)
        queries += ["@%d" % epoch for epoch in epochs]
    answer = numbers(plans.ask([line_of([n], [Op("shuffle", args, 0)], 0, queries)])[0])
    return [tuple(answer[i:i + n]) for i in range(0, len(answer), n)]


def buffer_orders(n, window):
    """Every order that tf.data's buffer can give, with its probability."""
    found = Counter()

    def go(out, buffer, following, p):
        if not buffer:
            found[out] += p
            return
        for i, sample in enumerate(buffer):
            left = buffer[:i] + buffer[i + 1:]
            refill = (following,) if following < n else ()
            go(out + (sample,), left + refill, following + 1, p / len(buffer))

    go((), tuple(range(min(window, n))), window, 1.0)
    return found


def buffer_places(n, window):
    """Probability that tf.data's buffer gives sample i at position p: {(i, p): probability}."""
    found = Counter()
    for i in range(n):
        stays = 1.0
        for p in range(max(0, i - window + 1), n):
            filled = min(window, n - p)
            found[i, p] = stays / filled
            stays *= 1 - 1 / filled
    return found


def places(orders):
    return Counter((sample, position) for order in orders for position, sample in enumerate(order))


def check_distributions(plans):
    for n in (2, 3, 4, 5):
        uniform = {order: 1 / math.factorial(n) for order in itertools.permutations(range(n))}
        trials = 200 * len(uniform)
        orders = orders_of(plans, n, {}, range(trials), [0])
        check_fit("full shuffle of %d, orders over seeds" % n, Counter(orders), uniform, trials)
        orders = orders_of(plans, n, {}, [7], range(trials))
        check_fit("full shuffle of %d, orders over epochs" % n, Counter(orders), uniform, trials)
    orders = orders_of(plans, 3, {}, range(4000), [0, 1])
    pairs = itertools.product(itertools.permutations(range(3)), repeat=2)
    check_fit("full shuffle of 3, two epochs together", Counter(zip(orders[0::2], orders[1::2])),
              {pair: 1 / 36 for pair in pairs}, 4000)
    for n in (9, 50, 101):
        orders = orders_of(plans, n, {}, range(3000), [0])
        uniform = {(i, p): 1 / n for i in range(n) for p in range(n)}
        check_fit("full shuffle of %d, places" % n, places(orders), uniform, len(orders))
    for n, window in ((4, 2), (5, 3), (6, 3), (6, 2), (4, 4)):
        exact = buffer_orders(n, window)
        orders = orders_of(plans, n, {"window": window}, range(200 * len(exact)), [0])
        check_fit("shuffle(%d) of %d, orders" % (window, n), Counter(orders), exact, len(orders))
    for n, window in ((30, 8), (60, 5)):
        orders = orders_of(plans, n, {"window": window}, range(3000), [0])
        check_fit("shuffle(%d) of %d, places" % (window, n), places(orders), buffer_places(n, window), len(orders))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plan_dump", help="the program made of tests/tools/plan_dump.c")
    parser.add_argument("--specs", type=int, default=2000, help="how many random specs (default 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random specs (default 1)")
    args = parser.parse_args()
    plans = Plans(args.plan_dump)
    rng = random.Random(args.seed)
    check_documented(plans)
    check_interleave_golden(plans)
    check_random_specs(plans, args.specs, rng)
    check_batches(plans)
    check_windows(plans, args.specs, rng)
    check_large(plans, rng)
    check_distributions(plans)


if __name__ == "__main__":
    main()
