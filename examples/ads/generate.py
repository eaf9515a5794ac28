"""Draw two months of an online shop, as eight sources that have to be joined, with known errors in them.

    python generate.py [FOLDER] [--rows 100000] [--seed 1] [--errors all | values | none] [--truncate]

Each of --rows events is a product that somebody saw in a session. FOLDER/raw gets

    users.parquet         who: country, age, plan
    sessions.csv          a visit of a user, with its device
    events-NN.csv.gz      what was seen, when, where on the page and for how long, and the query that led to it
    products.csv          category, brand and name
    prices.csv            price of a product from one time until another
    demand.csv            visitors and temperature, by the hour, with gaps
    labels-NN.csv.gz      whether an event ended in a purchase
    campaigns.csv         a table that people keep by hand: spaces, mixed case, two date formats, "n/a", rows twice

and truth.json, which no step reads: how many records each source has, and file and line of each error in the events.
Errors are records of their own, added to the good ones. --errors values leaves out those that break the syntax of CSV,
on which libraries disagree; --truncate also cuts the last file of events short.

The same arguments give the same bytes. If FOLDER is not the folder of this file, leat.yaml and what it names are copied
there, so that FOLDER is a project, too.
"""
import argparse
import gzip
import json
import pathlib
import shutil

import duckdb
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, DAYS = np.datetime64("2026-01-01T00:00:00"), 60
FILE_ROWS = 500_000  # of one file of events, if there are more than four files
SHARE = 0.0004  # of each kind of error among the events; a few at least

COUNTRIES = ["AT", "BR", "CH", "DE", "ES", "FR", "GB", "IN", "IT", "JP", "SE", "US"]
PLANS, DEVICES = ["free", "plus", "pro"], ["desktop", "phone", "tablet", "tv"]
CATEGORIES = ["bags", "books", "chairs", "garden", "lamps", "music", "shoes", "tools", "toys", "watches"]
BRANDS = [f"brand {chr(65 + n // 10)}{n % 10}" for n in range(60)]
CHANNELS = ["display", "email", "search", "social", "video"]
CAMPAIGNS = 40
WORDS = ["red", "blue", "small", "large", "cheap", "new", "used", "leather", "wooden", "grün", "décor", "靴"]
EVENT_COLUMNS = ["event", "session", "product", "campaign", "ts", "position", "dwell", "query"]
NEWLINE = "\x01"  # stands for a line break inside a field until lines have been counted


def phrases():
    """Queries. Some have commas, quotes or line breaks; with these there is a comma, so that DuckDB quotes them."""
    found = []
    for n, word in enumerate(WORDS):
        thing = CATEGORIES[n % len(CATEGORIES)]
        last = f"{thing},{NEWLINE}{word}" if n % 4 == 0 else word
        found += [f"{word} {thing}", f"{word}, {thing}", f'{thing} "{word}"', last]
    return [*found, ""]


PHRASES = phrases()
LINE_BREAKS = np.array([NEWLINE in phrase for phrase in PHRASES])


def seconds(stamps):
    """Times as SQL takes them from NumPy."""
    return BEGIN + stamps.astype("timedelta64[s]")


class Shop:
    """What events refer to: arrays whose index is an id, minus one."""

    def __init__(self, rows, seed):
        rng = np.random.default_rng([seed, 0])
        self.rows, self.seed = rows, seed
        users, sessions, products = max(50, rows // 20), max(100, rows // 5), max(40, min(20_000, rows // 50))
        self.country = rng.integers(0, len(COUNTRIES), users)
        self.age = rng.integers(16, 90, users)
        self.age_known = rng.random(users) > 0.05
        self.signup = rng.integers(0, 2000, users)  # days before the beginning
        self.plan = np.minimum(rng.geometric(0.6, users) - 1, 2)
        self.user = (users * rng.random(sessions) ** 1.5).astype(np.int64)
        self.device = np.minimum(rng.geometric(0.5, sessions) - 1, 3)
        self.started = rng.integers(0, (DAYS - 1) * 86400, sessions)
        self.category = rng.integers(0, len(CATEGORIES), products)
        self.brand = rng.integers(0, len(BRANDS), products)
        self.changes = np.sort(rng.integers(1, DAYS * 24, (products, 4)) * 3600, axis=1)
        price = rng.lognormal(3.5, 0.8, (products, 1)) * rng.uniform(0.7, 1.1, (products, 5))
        self.cents = (100 * price).astype(np.int64) + 99
        hours = np.flatnonzero(rng.random(DAYS * 24) > 0.03)
        self.hours = np.union1d([0], hours)  # the first hour has a value, so every event finds one
        wave = np.sin(2 * np.pi * self.hours / 24)
        self.visitors = (1000 + 600 * wave + rng.integers(0, 200, len(self.hours))).astype(np.int64)
        self.degrees = np.round(5 + 8 * wave + rng.normal(0, 2, len(self.hours)), 1)
        self.channel = rng.integers(0, len(CHANNELS), CAMPAIGNS)
        self.budget = rng.integers(1, 90, CAMPAIGNS) * 100
        self.first_day = rng.integers(0, DAYS, CAMPAIGNS)

    def events(self, number, first, count):
        """Columns of the good events `first` to `first + count`; each file has its own random numbers."""
        rng = np.random.default_rng([self.seed, 1, number])
        session = rng.integers(0, len(self.started), count)
        return {
            "event": 1_000_000 + np.arange(first, first + count),
            "session": session + 1,
            "product": (len(self.category) * rng.random(count) ** 2).astype(np.int64) + 1,
            "campaign": np.where(rng.random(count) < 0.3, -1, rng.integers(0, CAMPAIGNS, count)),
            "ts": self.started[session] + np.minimum(rng.exponential(600, count), 3600).astype(np.int64),
            "position": np.minimum(rng.geometric(0.15, count), 20),
            "dwell": (1000 * np.minimum(rng.lognormal(2, 1.2, count), 3000)).astype(np.int64),  # milliseconds
            "query": rng.integers(0, len(PHRASES), count),
        }

    def bought(self, number, events):
        """What a model can learn: labels that depend on most of the sources."""
        product, session = events["product"] - 1, events["session"] - 1
        level = (events["ts"][:, None] >= self.changes[product]).sum(1)
        price = self.cents[product, level] / 100
        score = (0.9 * np.log1p(events["dwell"] / 1000) - 0.12 * events["position"] - 0.5 * np.log(price)
                 + 0.6 * self.plan[self.user[session]] - 0.4 * (self.device[session] == 1)
                 + 0.5 * np.sin(self.brand[product]) + 0.4 * (self.category[product] % 3) - 0.8)
        return np.random.default_rng([self.seed, 2, number]).random(len(score)) < 1 / (1 + np.exp(-score))


# ---- writing ----

class Writer:
    """Tables from arrays to files, by DuckDB."""

    def __init__(self, raw):
        self.raw, self.tables = raw, duckdb.connect()
        for name, texts in {"countries": COUNTRIES, "plans": PLANS, "devices": DEVICES, "categories": CATEGORIES,
                            "brands": BRANDS, "phrases": PHRASES}.items():
            self.tables.execute(f"SET VARIABLE {name} = ?", [texts])

    def write(self, name, arrays, select, how="FORMAT csv, HEADER"):
        self.tables.register("arrays", arrays)
        self.tables.execute(f"COPY (SELECT {select} FROM arrays) TO '{self.raw / name}' ({how})")
        self.tables.unregister("arrays")
        return len(next(iter(arrays.values())))

    def lines(self, arrays, select):
        """The lines of a CSV file, without its header."""
        self.write("part.tmp", arrays, select, "FORMAT csv, HEADER false")
        path = self.raw / "part.tmp"
        found = path.read_bytes().split(b"\n")
        path.unlink()
        return found[:-1]


def compress(path, header, lines):
    text = b"\n".join([header, *lines, b""]).replace(NEWLINE.encode(), b"\n")
    path.write_bytes(gzip.compress(text, 1, mtime=0))


def write_small(writer, shop):
    """All sources but events, labels and campaigns; returns how many records each has."""
    users, products = len(shop.country), len(shop.category)
    ends = np.column_stack([np.zeros((products, 1), np.int64), shop.changes, np.full((products, 1), -1)])
    counts = {}
    counts["users"] = writer.write(
        "users.parquet", {"n": np.arange(users), "country": shop.country, "age": shop.age, "known": shop.age_known,
                          "signup": BEGIN - shop.signup.astype("timedelta64[D]"), "plan": shop.plan},
        "n + 1 AS user, getvariable('countries')[country + 1] AS country, CASE WHEN known THEN age::INTEGER END AS age, "
        "signup::DATE AS signup, getvariable('plans')[plan + 1] AS plan", "FORMAT parquet")
    counts["sessions"] = writer.write(
        "sessions.csv", {"n": np.arange(len(shop.user)), "user": shop.user, "device": shop.device,
                         "started": seconds(shop.started)},
        "n + 1 AS session, \"user\" + 1 AS \"user\", getvariable('devices')[device + 1] AS device, "
        "started::TIMESTAMP AS started")
    counts["products"] = writer.write(
        "products.csv", {"n": np.arange(products), "category": shop.category, "brand": shop.brand},
        "n + 1 AS product, getvariable('categories')[category + 1] AS category, getvariable('brands')[brand + 1] AS brand, "
        "getvariable('categories')[category + 1] || ', no. ' || n AS name")
    counts["prices"] = writer.write(
        "prices.csv", {"product": np.repeat(np.arange(products) + 1, 5), "since": ends[:, :-1].ravel(),
                       "until": ends[:, 1:].ravel(), "cents": shop.cents.ravel()},
        f"product, TIMESTAMP '{BEGIN}' + to_seconds(since) AS since, "
        f"CASE WHEN until >= 0 THEN TIMESTAMP '{BEGIN}' + to_seconds(until) END AS until, "
        "(cents::DECIMAL(12,2) / 100)::DECIMAL(12,2) AS price")
    counts["demand"] = writer.write(
        "demand.csv", {"hour": seconds(shop.hours * 3600), "visitors": shop.visitors, "degrees": shop.degrees},
        "hour::TIMESTAMP AS hour, visitors, degrees")
    return counts


def write_campaigns(raw, shop):
    """As people write: four spellings of a channel, two of a date, amounts with and without signs; some rows twice."""
    rng = np.random.default_rng([shop.seed, 3])
    rows = []
    for n in range(CAMPAIGNS):
        day = BEGIN.astype("datetime64[D]") + int(shop.first_day[n])
        year, month, date = str(day).split("-")
        channel, budget = CHANNELS[shop.channel[n]], int(shop.budget[n])
        channel = [channel, channel.upper(), f" {channel}", f"{channel.title()} "][rng.integers(4)]
        amount = [f"{budget}", f'"{budget:,}.00"', f"${budget}", f"{budget} USD", "n/a"][rng.integers(5)]
        when = [str(day), f"{date}.{month}.{year}"][rng.integers(2)]
        rows += [f"{['C', 'c'][rng.integers(2)]}{n:03},{channel},{amount},{when}"] * (1 + (rng.random() < 0.1))
    (raw / "campaigns.csv").write_bytes("\r\n".join(["campaign,channel,budget,first_day", *rows, ""]).encode())
    return len(rows)


# ---- errors ----

SYNTAX = ("broken quote", "wrong columns", "bad utf-8")


def bad_line(kind, rng, good, shop):
    """A line with an error, made from the fields of a good one that has no quotes."""
    fields = good.split(b",")
    if kind == "wrong type":
        wrong = [(1, b"12x4"), (2, b"1003.7"), (4, b"2026-13-45 00:00:00"), (5, b"first"), (6, b"n/a")]
        place, fields[place] = wrong[rng.integers(5)]
    elif kind == "null key":
        fields[0] = b""
    elif kind == "orphan":
        fields[1] = b"%d" % (len(shop.started) + rng.integers(1, 1000))
    elif kind == "out of range":
        place, fields[place] = [(5, b"-3"), (5, b"900"), (6, b"-1.500"), (4, b"2031-01-01 00:00:00")][rng.integers(4)]
    elif kind == "late":  # of a year that was closed before it came
        fields[4] = b"2025-12-%02d 12:00:00" % rng.integers(1, 32)
    elif kind == "broken quote":
        fields[7] = [b'"red" shoes', b'"red shoes'][rng.integers(2)]
    elif kind == "wrong columns":
        fields = [fields[:-1], [*fields, b"more"], fields[:3]][rng.integers(3)]
    elif kind == "bad utf-8":
        fields[7] = [b"gr\xfcn", b"d\xc3cor", b"\xff\xfe"][rng.integers(3)]
    return b",".join(fields)


KINDS = ("wrong type", "null key", "orphan", "out of range", "late", "duplicate", *SYNTAX)


def plant(lines, breaks, number, shop, kinds):
    """Adds bad lines; returns the new list, and for each kind the numbers of its lines in the file."""
    rng = np.random.default_rng([shop.seed, 4, number])
    each = max(3, int(SHARE * len(lines)))
    plain = [n for n in rng.integers(0, len(lines), 20 * each) if lines[n].count(b",") == 7 and b'"' not in lines[n]]
    wanted = [kind for kind in kinds for _ in range(each)]
    before = np.sort(rng.integers(0, len(lines) + 1, len(wanted)))
    above = np.concatenate([[0], np.cumsum(breaks)])
    out, found, last = [], {kind: [] for kind in kinds}, 0
    for done, (place, kind) in enumerate(zip(before, rng.permutation(wanted))):
        good = lines[plain[rng.integers(len(plain))]]
        bad = good if kind == "duplicate" else bad_line(kind, rng, good, shop)
        out += [*lines[last:place], bad]
        last = place
        found[str(kind)].append(int(place + above[place] + done + 2))  # lines count from 1, and the first is the header
    return out + lines[last:], found


EVENT_SQL = """event, session, product, CASE WHEN campaign >= 0 THEN printf('C%03d', campaign) END, ts::TIMESTAMP,
    position, (dwell::DECIMAL(12,3) / 1000)::DECIMAL(12,3), getvariable('phrases')[query + 1]"""


def write_events(writer, shop, kinds, truncate):
    """Events and labels, file by file; returns counts and the errors of each file."""
    files = max(4, -(-shop.rows // FILE_ROWS))
    ends = [shop.rows * n // files for n in range(files + 1)]
    counts, planted = {"events": 0, "labels": 0}, {}
    for number, (first, end) in enumerate(zip(ends, ends[1:])):
        events = shop.events(number, first, end - first)
        lines = writer.lines({**events, "ts": seconds(events["ts"])}, EVENT_SQL)
        name = f"events-{number:02}.csv.gz"
        lines, planted[name] = plant(lines, LINE_BREAKS[events["query"]], number, shop, kinds)
        compress(writer.raw / name, ",".join(EVENT_COLUMNS).encode(), lines)
        labels = writer.lines({"event": events["event"], "bought": shop.bought(number, events)}, "event, bought::INTEGER")
        compress(writer.raw / f"labels-{number:02}.csv.gz", b"event,bought", labels)
        counts["events"] += len(lines)
        counts["labels"] += len(labels)
    if truncate:
        path = writer.raw / name
        path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    return counts, planted


def generate(folder, rows=100_000, seed=1, errors="all", truncate=False):
    folder = pathlib.Path(folder).resolve()
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    if folder != HERE:
        for name in ("leat.yaml", "train.py"):
            shutil.copy(HERE / name, folder)
        shutil.copytree(HERE / "sql", folder / "sql", dirs_exist_ok=True)
    shop, writer = Shop(rows, seed), Writer(raw)
    kinds = {"all": KINDS, "values": [kind for kind in KINDS if kind not in SYNTAX], "none": ()}[errors]
    records = write_small(writer, shop)
    records["campaigns"] = write_campaigns(raw, shop)
    more, planted = write_events(writer, shop, kinds, truncate)
    truth = {"rows": rows, "records": {**records, **more}, "planted": planted}
    (raw / "truth.json").write_text(json.dumps(truth) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Draw two months of an online shop, with known errors.")
    parser.add_argument("folder", nargs="?", default=HERE, help="where to put raw/ (the folder of this file)")
    parser.add_argument("--rows", type=int, default=100_000, help="good events (100000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--errors", choices=("all", "values", "none"), default="all",
                        help="values: none that break the syntax of CSV (all)")
    parser.add_argument("--truncate", action="store_true", help="cut the last file of events short")
    args = parser.parse_args()
    if args.rows < 1000:
        parser.error("--rows must be at least 1000")
    generate(args.folder, args.rows, args.seed, args.errors, args.truncate)


if __name__ == "__main__":
    main()
