#!/usr/bin/env python3
"""Write the tables that this example cleans: raw/events-DAY.csv.gz and raw/users.csv.

    make_events.py [--rows 20000] [--days 4] [--seed 1] [--folder raw]

They have what tables from the wild have: rows that are there twice, empty and impossible values, numbers with a comma in
quotes, users that nobody knows, and lines that are broken. The same arguments give the same bytes.
"""
import argparse
import csv
import datetime
import gzip
import io
import pathlib
import random

COUNTRIES = ["DE", "FR", "IT", "NL", "PL", "SE"]
PAGES = ["home", "search", "item", "cart", "pay", 'with "quotes"', "a, b"]


def text_of(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def event(rng, day, users):
    second = rng.randrange(86400)
    amount = f"{rng.lognormvariate(2, 1):.2f}"
    if rng.random() < 0.02:
        amount = ""  # not known
    return [rng.randrange(users), (day + datetime.timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S"), amount,
            rng.choice(PAGES)]


def broken(rng, row):
    """A line that no reader can take: too few or too many fields, words for numbers, a time that does not exist."""
    row = [str(field) for field in row]
    return rng.choice([
        ",".join(row[:2]),
        ",".join(row + ["more"]),
        ",".join(["user" + row[0]] + row[1:3] + ["home"]),
        ",".join([row[0], "2026-02-30 25:00:00", row[2], "home"]),
        ",".join([row[0], row[1], "12,5", "home"]),
    ]) + "\n"


def write_day(path, rng, day, rows, users):
    lines = ["user,ts,amount,page\n"]
    for _ in range(rows):
        row = event(rng, day, users)
        line = text_of([row])
        lines.append(line)
        if rng.random() < 0.01:
            lines.append(line)  # sent twice
        if rng.random() < 0.0005:
            lines.append(broken(rng, row))
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write("".join(lines).encode())


def write_users(path, rng, users):
    rows = [["user", "country", "born"]]
    for user in range(users):
        if rng.random() < 0.97:  # the rest is in no list
            rows.append([user, rng.choice(COUNTRIES), rng.randrange(1940, 2010)])
    path.write_text(text_of(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20000, help="events of all days")
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("raw"))
    args = parser.parse_args()
    users = max(args.rows // 20, 1)
    args.folder.mkdir(parents=True, exist_ok=True)
    write_users(args.folder / "users.csv", random.Random(f"{args.seed} users"), users)
    for i in range(args.days):
        day = datetime.datetime(2026, 1, 1) + datetime.timedelta(days=i)
        write_day(args.folder / f"events-{day:%Y-%m-%d}.csv.gz", random.Random(f"{args.seed} {i}"), day,
                  args.rows // args.days, users)


if __name__ == "__main__":
    main()
