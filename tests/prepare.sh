#!/bin/sh
# prepare.sh BUILD: the example of dirty tables, whose result is compared with what Python makes of them.
#
# Skipped without DuckDB, which not every machine has.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
PATH=$build:$PATH PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH PYTHONDONTWRITEBYTECODE XDG_CACHE_HOME=$work/cache
leat sql "SELECT 1" >/dev/null 2>&1 && leat load --help >/dev/null 2>&1 || exit 77

fail() {
	echo "$*"
	exit 1
}

cp "$root"/examples/prepare/* .
python3 make_events.py --rows 8000
leat build >built 2>&1 || fail "$(cat built)"
grep -q '^7 ran' built || fail "$(cat built)"
leat build 2>&1 | grep -q '^0 ran' || fail "the second build runs something"

leat convert "tfrecord('out/shards/*.tfrecord') | example(user=int64, ts=int64, amount=float)" -o made --format npy >/dev/null
cat >check.py <<'END'
import csv, datetime, glob, gzip, math, statistics, struct

def column(name, form):
    data = open(f"made/{name}.npy", "rb").read()
    size = struct.calcsize(form)
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // size}{form}", data[start:])

users = {int(row["user"]) for row in csv.DictReader(open("raw/users.csv"))}
events, amounts, broken = set(), {}, 0
for path in sorted(glob.glob("raw/events-*.csv.gz")):
    for row in list(csv.reader(gzip.open(path, "rt")))[1:]:
        try:
            user, ts, amount, page = row
            ts = datetime.datetime.strptime(ts, "%Y-%m-%d %H:%M:%S").replace(tzinfo=datetime.timezone.utc)
            event = int(user), int(ts.timestamp()) * 1000000, page, float(amount) if amount else None
        except ValueError:
            broken += 1
            continue
        events.add(event)
        amounts.setdefault(page, []).append(event[3])
assert broken > 0 and any(event[3] is None for event in events)
median = {page: statistics.median(a for a in some if a is not None) for page, some in amounts.items()}
want = sorted((user, ts, math.log(1 + (median[page] if amount is None else amount)))
              for user, ts, page, amount in events if user in users)
made = list(zip(column("user", "q"), column("ts", "q"), column("amount", "f")))
assert sorted(row[:2] for row in made) == [row[:2] for row in want], "other rows"
assert all(abs(a[2] - b[2]) < 1e-5 for a, b in zip(sorted(made), want)), "other amounts"
assert made != sorted(made), "not shuffled"
print(len(made), "rows are those that Python makes;", broken, "lines were broken")
END
python3 check.py
sed -i '1s/One row/Just one row/' clean.sql
leat build 2>&1 | grep -q '^0 ran' || fail "a comment runs something"
python3 make_events.py --rows 10000 --days 5 --folder more
cp more/events-2026-01-05.csv.gz raw
leat build >built 2>&1
grep -q '^3 ran, 5 made before' built || fail "a new file: $(cat built)"
leat fsck >/dev/null || fail "the store is damaged"
