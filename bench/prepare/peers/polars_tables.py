"""polars_tables.py RAW OUT: the table of examples/ads, by Polars."""
import sys

import polars as pl

from columns import COLUMNS, TYPES, WHOLE

KINDS = {"int64": pl.Int64, "double": pl.Float64, "text": pl.String}


def read(raw, name, pattern):
    """A CSV source with declared types; rows with a value of another type are left out."""
    text = pl.scan_csv(f"{raw}/{pattern}", infer_schema=False, encoding="utf8-lossy", ignore_errors=True)
    typed = {}
    for column, kind in TYPES[name].items():
        if kind == "timestamp":
            typed[column] = pl.col(column).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
        else:
            typed[column] = pl.col(column).cast(KINDS[kind], strict=False)
    wrong = pl.any_horizontal([pl.col(column).is_not_null() & value.is_null() for column, value in typed.items()])
    return text.filter(~wrong).select(**typed)


def campaigns(raw):
    text = pl.scan_csv(f"{raw}/campaigns.csv", infer_schema=False, encoding="utf8-lossy", ignore_errors=True)
    day = pl.col("first_day").str.strip_chars()
    return text.select(
        campaign=pl.col("campaign").str.strip_chars().str.to_uppercase(),
        channel=pl.col("channel").str.strip_chars().str.to_lowercase(),
        budget=pl.col("budget").str.replace_all("[^0-9.]", "").cast(pl.Float64, strict=False),
        first_day=pl.coalesce(*(day.str.to_date(form, strict=False) for form in ("%Y-%m-%d", "%d.%m.%Y")))).unique()


def clean(raw, sessions):
    begin, end = pl.datetime(2026, 1, 1), pl.datetime(2026, 3, 2)
    return (read(raw, "events", "events-*.csv.gz")
            .filter(pl.col("event").is_not_null(), pl.col("position").is_between(1, 20), pl.col("dwell").is_between(0, 3600),
                    pl.col("ts") >= begin, pl.col("ts") < end)
            .join(sessions.select("session", "user", "device"), on="session").unique()
            .with_columns(dwell_ms=(pl.col("dwell") * 1000).round().cast(pl.Int64), query=pl.col("query").fill_null("")))


def joined(raw):
    prices = (read(raw, "prices", "prices.csv").with_columns(highest=pl.col("price").max().over("product"))
              .filter(pl.col("since").ne_missing(pl.col("until"))).sort("since"))
    demand = read(raw, "demand", "demand.csv").sort("hour")
    day = pl.col("ts").dt.date()
    return (clean(raw, read(raw, "sessions", "sessions.csv")).sort("ts", "event")
            .with_columns(user_events=pl.int_range(pl.len()).over("user"),
                          session_events=pl.int_range(pl.len()).over("session"),
                          since_last=pl.col("ts").diff().over("user").dt.total_seconds())
            .join_asof(prices, left_on="ts", right_on="since", by="product", check_sortedness=False)
            .join_asof(demand, left_on="ts", right_on="hour", check_sortedness=False)
            .join(pl.scan_parquet(f"{raw}/users.parquet"), on="user")
            .join(read(raw, "products", "products.csv"), on="product")
            .join(campaigns(raw), on="campaign", how="left")
            .join(read(raw, "labels", "labels-*.csv.gz"), on="event")
            .with_columns(hour=pl.col("ts").dt.hour(), weekday=pl.col("ts").dt.weekday(),
                          query_words=pl.col("query").str.extract_all(r"[^ ,\n]+").list.len(),
                          account_days=(day - pl.col("signup")).dt.total_days(),
                          price_level=pl.col("price") / pl.col("highest"), channel=pl.col("channel").fill_null("none"),
                          campaign_days=(day - pl.col("first_day")).dt.total_days())
            .with_columns(pl.col(WHOLE).cast(pl.Int64))
            .select(COLUMNS).sort("event"))


if __name__ == "__main__":
    joined(sys.argv[1]).sink_parquet(sys.argv[2], compression="zstd")
