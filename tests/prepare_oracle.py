"""prepare_oracle.py: every step of examples/prepare has the rows that plain Python makes of the raw files.

Run in a project that was built. Asks `leat` for tables and rejects; everything else is decided here again, by loops.
"""
import collections
import csv
import datetime
import gzip
import hashlib
import io
import json
import math
import pathlib
import statistics
import struct
import subprocess

TRUTH = json.loads(pathlib.Path("raw/truth.json").read_text())


def leat(*args):
    text = subprocess.run(["leat", *args], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def table(step):
    return leat("sql", "--json", f"SELECT * FROM {step}")


def same(what, found, wanted):
    assert len(found) == len(wanted), f"{what}: {len(found)} rows instead of {len(wanted)}"
    for row, other in zip(found, wanted):
        assert row.keys() == other.keys(), f"{what}: columns {[*row]} instead of {[*other]}"
        for name, value in row.items():
            close = value == other[name] or isinstance(value, float) and math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-9)
            assert close, f"{what}, {name}: {row} instead of {other}"
    print(f"{what}: {len(found)} rows are those of Python")


def read_events():
    """All records but those that were planted as broken."""
    rows = []
    for path in sorted(pathlib.Path("raw").glob("events-*.csv.gz")):
        lines = gzip.decompress(path.read_bytes()).split(b"\n")
        good = [line for number, line in enumerate(lines, 1) if number not in TRUTH["broken"].get(path.name, ())]
        for row in csv.DictReader(io.StringIO(b"\n".join(good).decode(), newline="")):
            rows.append({"user": int(row["user"]), "ts": row["ts"], "amount": float(row["amount"]) if row["amount"] else None,
                         "page": row["page"]})
    return rows


def clean(events):
    """(rows that pass the checks, [(row, reason)] of the others), in the order of the key."""
    with open("raw/users.csv", encoding="utf-8") as file:
        users = {int(row["user"]): row for row in csv.DictReader(file)}
    known, copies = collections.defaultdict(list), collections.defaultdict(list)
    for row in events:
        copies[row["user"], row["ts"], row["page"]].append(row["amount"])
        known[row["page"]].append(row["amount"])
    median = {page: statistics.median(x for x in amounts if x is not None) for page, amounts in known.items()}
    kept, bad = [], []
    for (user, ts, page), amounts in sorted(copies.items()):
        amount, person = max((x for x in amounts if x is not None), default=None), users.get(user)
        row = {"user": user, "ts": ts, "page": page, "amount": median[page] if amount is None else amount,
               "amount_unknown": int(amount is None), "country": person and person["country"],
               "age": person and 2026 - int(person["born"])}
        reasons = ["user: in users.user"] * (person is None) + ["amount: 0..10000"] * (not 0 <= row["amount"] <= 10000)
        bad.append((row, "fails " + "; ".join(reasons))) if reasons else kept.append(row)
    return kept, bad


def quantile(values, share):
    values, at = sorted(values), share * (len(values) - 1)
    low = values[math.floor(at)]
    return low + (values[math.ceil(at)] - low) * (at - math.floor(at))


def standardize(values, training):
    mean = math.fsum(training) / len(training)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in training) / len(training))
    return [(x - mean) / deviation for x in values]


def vocabulary(training):
    """Numbers from 3, the most frequent value first."""
    counted = sorted(collections.Counter(training).items(), key=lambda item: (-item[1], item[0]))
    return {value: number for number, (value, _) in enumerate(counted, 3)}


def features(rows):
    split = ["train" if int(hashlib.md5(str(row["user"]).encode()).hexdigest(), 16) < 0.8 * 16 ** 32 else "test" for row in rows]

    def of(values):
        return [value for value, part in zip(values, split) if part == "train"]

    amounts = [row["amount"] for row in rows]
    low, high = quantile(of(amounts), 0.01), quantile(of(amounts), 0.99)
    logs = [math.log1p(min(max(x, low), high)) for x in amounts]
    amounts, ages = standardize(logs, of(logs)), [row["age"] for row in rows]
    ages = standardize(ages, of(ages))
    numbers = {name: vocabulary(of(row[name] for row in rows)) for name in ("country", "page")}
    made = []
    for row, part, amount, age in zip(rows, split, amounts, ages):
        angle = 2 * math.pi * datetime.datetime.fromisoformat(row["ts"]).hour / 24
        made.append({"user": row["user"], "ts": row["ts"], "amount": amount, "amount_unknown": row["amount_unknown"], "age": age,
                     "hour_sin": math.sin(angle), "hour_cos": math.cos(angle),
                     **{name: numbers[name].get(row[name], 2) for name in numbers}, "split": part})
    return made


def shards(names):
    """Rows of the shards, through a feed."""
    kinds = {"amount": "float", "age": "float", "hour_sin": "float", "hour_cos": "float"}
    example = ", ".join(f"{name}={kinds.get(name, 'int64')}" for name in names)
    subprocess.run(["leat", "convert", f"tfrecord('out/shards/*.tfrecord') | example({example})", "-o", "made", "--format",
                    "npy", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    columns = []
    for name in names:
        data = pathlib.Path(f"made/{name}.npy").read_bytes()
        begin = 10 + struct.unpack("<H", data[8:10])[0]
        kind = "f" if name in kinds else "q"
        columns.append(struct.unpack(f"<{(len(data) - begin) // struct.calcsize(kind)}{kind}", data[begin:]))
    return list(zip(*columns))


def check_shards(training):
    """Each training row once, in another order; numbers have 32 bits."""
    names = [name for name in training[0] if name != "split"]
    wanted = []
    for row in training:
        row = {**row, "ts": int(datetime.datetime.fromisoformat(row["ts"] + "+00:00").timestamp()) * 1_000_000}
        wanted.append(tuple(row[name] for name in names))
    found = shards(names)
    assert found != sorted(found), "the shards are not shuffled"
    same("shards", [dict(zip(names, row)) for row in sorted(found, key=lambda row: (row[0], row[1], row[-1]))],
         [{name: struct.unpack("f", struct.pack("f", x))[0] if isinstance(x, float) else x for name, x in zip(names, row)}
          for row in sorted(wanted, key=lambda row: (row[0], row[1], row[-1]))])


def main():
    found = sorted((pathlib.Path(one["file"]).name, one["line"]) for one in leat("show", "events", "--rejects", "--json"))
    assert found == sorted((name, line) for name, lines in TRUTH["broken"].items() for line in lines), "other lines are rejected"
    assert found, "no lines are broken"
    events = read_events()
    same("events", table("events"), events)
    kept, bad = clean(events)
    assert [[row["user"], row["ts"], row["page"]] for row, _ in bad] == TRUTH["suspect"], "the generator counts otherwise"
    rejects = leat("show", "clean", "--rejects", "--json")
    same("quarantine", [{**json.loads(one["raw"]), "reason": one["reason"]} for one in rejects],
         [{**row, "reason": reason} for row, reason in bad])
    assert len({reason for _, reason in bad}) > 1, "a kind of error is not there"
    same("clean", table("clean"), kept)
    made = features(kept)
    same("features", table("features"), made)
    training = sorted((row for row in made if row["split"] == "train"), key=lambda row: (row["user"], row["ts"], row["page"]))
    same("train", table("train"), [{name: x for name, x in row.items() if name != "split"} for row in training])
    check_shards(training)


if __name__ == "__main__":
    main()
