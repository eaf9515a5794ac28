"""spark_tables.py RAW OUT [warm]: the table of examples/ads, by Spark SQL with two threads; OUT becomes a folder.

With `warm`, it makes the table twice in one session, and prints seconds and processor time of the second time as JSON.
"""
import json
import os
import pathlib
import sys
import time

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f

from columns import COLUMNS, FILES, TYPES, WHOLE

KINDS = {"int64": "bigint", "double": "double", "text": "string", "timestamp": "timestamp"}


def start():
    return (SparkSession.builder.master("local[2]").config("spark.driver.memory", os.environ.get("SPARK_MEMORY", "8g"))
            .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "8")
            .config("spark.sql.parquet.compression.codec", "zstd").config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false").getOrCreate())


def read_text(spark, raw, name):
    return (spark.read.option("header", True).option("multiLine", True).option("escape", '"')
            .csv(f"{raw}/{FILES.get(name, name + '.csv')}"))


def read(spark, raw, name):
    """A CSV source with declared types; rows with a value of another type are left out."""
    text = read_text(spark, raw, name)
    typed = {column: f.expr(f"try_cast(`{column}` AS {KINDS[kind]})") for column, kind in TYPES[name].items()}
    wrong = f.lit(False)
    for column, value in typed.items():
        wrong = wrong | (f.col(column).isNotNull() & value.isNull())
    return text.where(~wrong).select([value.alias(column) for column, value in typed.items()])


def campaigns(spark, raw):
    text = read_text(spark, raw, "campaigns")
    return text.select(
        f.upper(f.trim("campaign")).alias("campaign"), f.lower(f.trim("channel")).alias("channel"),
        f.expr("try_cast(regexp_replace(budget, '[^0-9.]', '') AS double)").alias("budget"),
        f.coalesce(*(f.to_date(f.try_to_timestamp(f.trim("first_day"), f.lit(form)))
                     for form in ("yyyy-MM-dd", "dd.MM.yyyy"))).alias("first_day")).distinct()


def clean(spark, raw):
    events, sessions = read(spark, raw, "events"), read(spark, raw, "sessions")
    good = (f.col("event").isNotNull() & f.col("position").between(1, 20) & f.col("dwell").between(0, 3600)
            & (f.col("ts") >= "2026-01-01") & (f.col("ts") < "2026-03-02"))
    return (events.where(good).distinct().join(sessions.select("session", "user", "device"), "session")
            .withColumn("dwell_ms", f.round(f.col("dwell") * 1000).cast("bigint"))
            .withColumn("query", f.coalesce("query", f.lit(""))))


def hourly(demand):
    """The series without gaps: each value until the next one; Spark has no join for the last value before a time."""
    following = f.lead("hour").over(Window.orderBy("hour"))
    last = f.coalesce(following - f.expr("INTERVAL 1 HOUR"), f.lit("2026-03-02").cast("timestamp"))
    hours = f.explode(f.sequence("hour", "last", f.expr("INTERVAL 1 HOUR")))
    return demand.withColumn("last", last).withColumn("at", hours).drop("hour", "last")


def joined(spark, raw):
    of_user, of_session = (Window.partitionBy(name).orderBy("ts", "event") for name in ("user", "session"))
    prices = read(spark, raw, "prices").withColumn("highest", f.max("price").over(Window.partitionBy("product")))
    rows = (clean(spark, raw).withColumn("user_events", f.row_number().over(of_user) - 1)
            .withColumn("session_events", f.row_number().over(of_session) - 1)
            .withColumn("since_last", f.unix_timestamp("ts") - f.unix_timestamp(f.lag("ts").over(of_user))))
    holds = (f.col("ts") >= f.col("since")) & ((f.col("ts") < f.col("until")) | f.col("until").isNull())
    rows = rows.join(prices, "product").where(holds)
    rows = rows.withColumn("at", f.date_trunc("hour", "ts")).join(hourly(read(spark, raw, "demand")), "at")
    rows = rows.join(spark.read.parquet(f"{raw}/users.parquet"), "user").join(read(spark, raw, "products"), "product")
    rows = rows.join(campaigns(spark, raw), "campaign", "left").join(read(spark, raw, "labels"), "event")
    rows = (rows.withColumn("hour", f.hour("ts")).withColumn("weekday", f.weekday("ts") + 1)
            .withColumn("query_words", f.expr(r"size(regexp_extract_all(query, '[^ ,\\n]+', 0))"))
            .withColumn("account_days", f.datediff("ts", "signup"))
            .withColumn("campaign_days", f.datediff("ts", "first_day"))
            .withColumn("price_level", f.col("price") / f.col("highest"))
            .withColumn("channel", f.coalesce("channel", f.lit("none"))))
    whole = [f.col(name).cast("bigint") if name in WHOLE else f.col(name) for name in COLUMNS]
    return rows.select(whole).orderBy("event")


def make_again(spark, raw, out):
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
    import measure

    cpu, begin = measure.cpu_seconds(os.getpid()), time.perf_counter()
    joined(spark, raw).write.parquet(f"{out}-again")
    print(json.dumps({"wall": time.perf_counter() - begin, "cpu": measure.cpu_seconds(os.getpid()) - cpu}))


if __name__ == "__main__":
    session = start()
    joined(session, sys.argv[1]).write.parquet(sys.argv[2])
    if sys.argv[3:] == ["warm"]:
        make_again(session, *sys.argv[1:3])
    session.stop()
