#!/usr/bin/env python3
"""Write the tables that this example cleans: raw/events-DAY.csv.gz and raw/users.csv.

    make_events.py [--rows 20000] [--days 4] [--seed 1] [--folder raw]

They have what tables from the wild have: events that were sent twice, missing and impossible amounts, fields in quotes,
unknown users, and broken lines. truth.json, which no step reads, says what was planted: records in each file, line numbers
of the broken ones, and the events that must not reach the training data. The same arguments give the same bytes.
"""
import argparse
import csv
import datetime
import gzip
import io
import json
import pathlib
import random

COUNTRIES = ["DE", "FR", "IT", "NL", "PL", "SE"]
PAGES = ["home", "search", "item", "cart", "pay", 'with "quotes"', "a, b"]
TWICE, BROKEN, UNKNOWN_AMOUNT, IMPOSSIBLE, UNKNOWN_USER = 0.01, 0.0005, 0.02, 0.0005, 0.03  # shares


def text_of(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def event(rng, day, users):
    second = rng.randrange(86400)
    amount = f"{rng.lognormvariate(2, 1):.2f}"
    chance = rng.random()
    if chance < UNKNOWN_AMOUNT:
        amount = ""
    elif chance > 1 - IMPOSSIBLE:
        amount = rng.choice(["-1.00", "99999999.00"])
    return [rng.randrange(users), (day + datetime.timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S"), amount,
            rng.choice(PAGES)]


def broken(rng, row):
    """A line that no reader can take, as bytes: wrong number of fields, type, time, quotes or encoding."""
    user, ts, amount, _ = map(str, row)
    return rng.choice([
        f"{user},{ts}",
        f"{user},{ts},{amount},home,more",
        f"user{user},{ts},{amount},home",
        f"{user},2026-02-30 25:00:00,{amount},home",
        f"{user},{ts},12 EUR,home",
        f'{user},{ts},{amount},"home',
        f"{user},{ts},{amount},caf\udce9",  # a byte that is not UTF-8
    ]).encode(errors="surrogateescape") + b"\n"


def write_day(path, rng, day, rows, users):
    """Writes a file of events; returns its rows, the numbers of broken lines, and how many records there are."""
    lines, good, bad = [b"user,ts,amount,page\n"], [], []
    for _ in range(rows):
        row = event(rng, day, users)
        line = text_of([row]).encode()
        lines.append(line)
        good.append(row)
        if rng.random() < TWICE:
            lines.append(line)
        if rng.random() < BROKEN:
            lines.append(broken(rng, row))
            bad.append(len(lines))
    with gzip.GzipFile(path, "wb", compresslevel=6, mtime=0) as out:
        out.write(b"".join(lines))
    return good, bad, len(lines) - 1


def write_users(path, rng, users):
    """Writes the list of users, which lacks some; returns those it has."""
    known = [user for user in range(users) if rng.random() >= UNKNOWN_USER]
    path.write_text(text_of([["user", "country", "born"],
                             *([user, rng.choice(COUNTRIES), rng.randrange(1940, 2010)] for user in known)]))
    return set(known)


def suspect(rows, known):
    """Events with an unknown user or an impossible amount, each once, as [user, time, page]."""
    amounts = {}
    for user, ts, amount, page in rows:
        amounts.setdefault((user, ts, page), []).append(float(amount or 0))
    return sorted([*key] for key, all_of_it in amounts.items()
                  if key[0] not in known or not 0 <= max(all_of_it) <= 10000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20000, help="events of all days")
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("raw"))
    args = parser.parse_args()
    users = max(args.rows // 20, 1)
    args.folder.mkdir(parents=True, exist_ok=True)
    known = write_users(args.folder / "users.csv", random.Random(f"{args.seed} users"), users)
    rows, truth = [], {"records": {}, "broken": {}}
    for i in range(args.days):
        day = datetime.datetime(2026, 1, 1) + datetime.timedelta(days=i)
        name = f"events-{day:%Y-%m-%d}.csv.gz"
        good, truth["broken"][name], truth["records"][name] = write_day(
            args.folder / name, random.Random(f"{args.seed} {i}"), day, args.rows // args.days, users)
        rows += good
    truth["suspect"] = suspect(rows, known)
    (args.folder / "truth.json").write_text(json.dumps(truth) + "\n")


if __name__ == "__main__":
    main()
