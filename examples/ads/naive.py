"""The table of the step `joined`, by plain loops, for comparison: python naive.py [RAW] prints it as CSV.

It knows from raw/truth.json which lines cannot be read, and leaves them out; everything else is decided here again.
Slow and simple on purpose. DuckDB only reads users.parquet.
"""
import bisect
import collections
import csv
import datetime
import decimal
import gzip
import io
import json
import pathlib
import re
import sys

import duckdb

UNREADABLE = ("wrong type", "broken quote", "wrong columns", "bad utf-8")  # `leat load` rejects them
BEGIN, END = datetime.datetime(2026, 1, 1), datetime.datetime(2026, 3, 2)


def lines_of(path, without=()):
    """The text of a CSV file without some of its lines, counted from 1."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    kept = [line for number, line in enumerate(data.split(b"\n"), 1) if number not in without]
    return b"\n".join(kept).decode()


def records(raw, pattern, truth=None):
    for path in sorted(raw.glob(pattern)):
        bad = {line for kind in UNREADABLE for line in truth["planted"][path.name].get(kind, ())} if truth else ()
        yield from csv.DictReader(io.StringIO(lines_of(path, bad), newline=""))


def moment(text):
    return datetime.datetime.fromisoformat(text)


def users(raw):
    found = duckdb.execute("SELECT \"user\", country, age, signup, plan FROM read_parquet(?)", [str(raw / "users.parquet")])
    return {row[0]: dict(zip(("country", "age", "signup", "plan"), row[1:])) for row in found.fetchall()}


def campaigns(raw):
    found = {}
    for row in records(raw, "campaigns.csv"):
        amount = re.sub("[^0-9.]", "", row["budget"])
        day = row["first_day"].strip()
        form = "%d.%m.%Y" if "." in day else "%Y-%m-%d"
        found[row["campaign"].strip().upper()] = {
            "channel": row["channel"].strip().lower(), "budget": float(amount) if amount else None,
            "first_day": datetime.datetime.strptime(day, form).date()}
    return found


def prices(raw):
    """{product: ([since, ...], [price, ...])}"""
    found = collections.defaultdict(list)
    for row in records(raw, "prices.csv"):
        if row["since"] != row["until"]:  # else it never holds
            found[int(row["product"])].append((moment(row["since"]), decimal.Decimal(row["price"])))
    highest = collections.defaultdict(decimal.Decimal)
    for row in records(raw, "prices.csv"):
        highest[int(row["product"])] = max(highest[int(row["product"])], decimal.Decimal(row["price"]))
    return {product: tuple(zip(*sorted(rows))) for product, rows in found.items()}, highest


def judge(row, sessions):
    """Why an event cannot be used; None if it can."""
    if not row["event"]:
        return "null key"
    if int(row["session"]) not in sessions:
        return "orphan"
    if not (1 <= int(row["position"]) <= 20 and 0 <= float(row["dwell"]) <= 3600 and moment(row["ts"]) < END):
        return "out of range"
    if moment(row["ts"]) < BEGIN:
        return "late"
    return None


def clean(raw, truth, sessions):
    """Good events, each once, and how many there are of each reason."""
    kept, reasons = {}, collections.Counter()
    for row in records(raw, "events-*.csv.gz", truth):
        reason = judge(row, sessions)
        if not reason and row["event"] in kept:
            reason = "duplicate"
        reasons[reason or "kept"] += 1
        if not reason:
            kept[row["event"]] = row
    return list(kept.values()), reasons


def counts_before(events, key):
    """How many earlier events have the same key, and when the last one was, for each event."""
    found, number, last = {}, collections.Counter(), {}
    for row in sorted(events, key=lambda row: (row["ts"], int(row["event"]))):
        which = key(row)
        found[row["event"]] = number[which], last.get(which)
        number[which] += 1
        last[which] = moment(row["ts"])
    return found


def joined(raw, truth):
    """Rows as dicts, by event."""
    sessions = {int(row["session"]): row for row in records(raw, "sessions.csv")}
    products = {int(row["product"]): row for row in records(raw, "products.csv")}
    demand = [(moment(row["hour"]), int(row["visitors"]), float(row["degrees"])) for row in records(raw, "demand.csv")]
    hours = [row[0] for row in demand]
    bought = {row["event"]: int(row["bought"]) for row in records(raw, "labels-*.csv.gz")}
    people, plans, (price_of, highest) = users(raw), campaigns(raw), prices(raw)
    events, _ = clean(raw, truth, sessions)
    of_user = counts_before(events, lambda row: sessions[int(row["session"])]["user"])
    of_session = counts_before(events, lambda row: row["session"])
    for row in sorted(events, key=lambda row: int(row["event"])):
        session, product, ts = sessions[int(row["session"])], int(row["product"]), moment(row["ts"])
        user = people[int(session["user"])]
        since, levels = price_of[product]
        price = levels[bisect.bisect_right(since, ts) - 1]
        _, visitors, degrees = demand[bisect.bisect_right(hours, ts) - 1]
        campaign = plans.get(row["campaign"])
        earlier, last = of_user[row["event"]]
        yield {
            "event": int(row["event"]), "user": int(session["user"]), "ts": ts, "hour": ts.hour, "weekday": ts.isoweekday(),
            "position": int(row["position"]), "dwell_ms": round(float(row["dwell"]) * 1000), "user_events": earlier,
            "session_events": of_session[row["event"]][0],
            "since_last": None if last is None else int((ts - last).total_seconds()),
            "query_words": len(re.findall("[^ ,\n]+", row["query"])),
            "device": session["device"], "country": user["country"], "age": user["age"], "plan": user["plan"],
            "account_days": (ts.date() - user["signup"]).days, "category": products[product]["category"],
            "brand": products[product]["brand"], "price": float(price),
            "price_level": float(price) / float(highest[product]),
            "visitors": visitors, "degrees": degrees, "channel": campaign["channel"] if campaign else "none",
            "budget": campaign and campaign["budget"],
            "campaign_days": campaign and (ts.date() - campaign["first_day"]).days, "bought": bought[row["event"]],
        }


def main():
    raw = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "raw")
    rows = joined(raw, json.loads((raw / "truth.json").read_text()))
    first = next(rows)
    out = csv.DictWriter(sys.stdout, first)
    out.writeheader()
    out.writerow(first)
    out.writerows(rows)


if __name__ == "__main__":
    main()
