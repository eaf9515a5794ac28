"""pandas_tables.py RAW OUT: the table of examples/ads, by pandas."""
import glob
import sys

import pandas as pd

from columns import COLUMNS, FILES, TYPES, WHOLE

TIME = "%Y-%m-%d %H:%M:%S"


def typed(column, kind):
    """Values of a column of text; what is no value of that kind is missing."""
    if kind == "text":
        return column
    if kind == "timestamp":
        return pd.to_datetime(column, format=TIME, errors="coerce")
    number = pd.to_numeric(column, errors="coerce")
    return number.where(number % 1 == 0).astype("Int64") if kind == "int64" else number


def read_text(path):
    """As text; only an empty field without quotes is missing."""
    return pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""], on_bad_lines="skip",
                       encoding_errors="replace")


def read(raw, name):
    """A CSV source with declared types; rows with a value of another type are left out."""
    parts = []
    for path in sorted(glob.glob(f"{raw}/{FILES.get(name, name + '.csv')}")):
        text = read_text(path)
        values = pd.DataFrame({column: typed(text[column], kind) for column, kind in TYPES[name].items()})
        parts.append(values[~(text.notna() & values.isna()).any(axis=1)])
    return pd.concat(parts, ignore_index=True)


def campaigns(raw):
    text = read_text(f"{raw}/campaigns.csv")
    day = text["first_day"].str.strip()
    return pd.DataFrame({
        "campaign": text["campaign"].str.strip().str.upper(), "channel": text["channel"].str.strip().str.lower(),
        "budget": pd.to_numeric(text["budget"].str.replace("[^0-9.]", "", regex=True), errors="coerce"),
        "first_day": pd.to_datetime(day, format="%Y-%m-%d", errors="coerce").fillna(
            pd.to_datetime(day, format="%d.%m.%Y", errors="coerce"))}).drop_duplicates()


def clean(raw, sessions):
    events = read(raw, "events")
    begin, end = pd.Timestamp(2026, 1, 1), pd.Timestamp(2026, 3, 2)
    good = (events["event"].notna() & events["position"].between(1, 20) & events["dwell"].between(0, 3600)
            & (events["ts"] >= begin) & (events["ts"] < end))
    events = events[good].drop_duplicates().merge(sessions[["session", "user", "device"]], on="session")
    events["dwell_ms"] = (events["dwell"] * 1000).round().astype("int64")
    return events


def joined(raw):
    prices = read(raw, "prices")
    prices["highest"] = prices.groupby("product")["price"].transform("max")
    prices = prices[prices["since"] != prices["until"]].sort_values("since")
    rows = clean(raw, read(raw, "sessions")).sort_values(["ts", "event"], kind="stable")
    rows["user_events"] = rows.groupby("user").cumcount()
    rows["session_events"] = rows.groupby("session").cumcount()
    rows["since_last"] = rows.groupby("user")["ts"].diff() // pd.Timedelta(seconds=1)
    rows = pd.merge_asof(rows, prices, left_on="ts", right_on="since", by="product")
    rows = pd.merge_asof(rows, read(raw, "demand").sort_values("hour"), left_on="ts", right_on="hour")
    users = pd.read_parquet(f"{raw}/users.parquet")
    rows = rows.merge(users, on="user").merge(read(raw, "products"), on="product")
    rows = rows.merge(campaigns(raw), on="campaign", how="left").merge(read(raw, "labels"), on="event")
    day = rows["ts"].dt.normalize()
    rows = rows.assign(hour=rows["ts"].dt.hour, weekday=rows["ts"].dt.isocalendar().day,
                       query_words=rows["query"].fillna("").str.count(r"[^ ,\n]+"),
                       account_days=(day - pd.to_datetime(rows["signup"])).dt.days,
                       price_level=rows["price"] / rows["highest"], channel=rows["channel"].fillna("none"),
                       campaign_days=(day - rows["first_day"]).dt.days)
    return rows[COLUMNS].astype(dict.fromkeys(WHOLE, "Int64")).sort_values("event")


if __name__ == "__main__":
    joined(sys.argv[1]).to_parquet(sys.argv[2], compression="zstd", index=False)
