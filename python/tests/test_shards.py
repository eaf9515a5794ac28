"""Tables as TFRecord shards: TensorFlow and Leat read the same rows from them, those of the table."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import leat

ROWS = 1003
TABLE = f"""
    SELECT i AS user, i * 37 % 101 / 8 AS amount, 'name ' || i AS name, i % 2 = 0 AS even,
           CASE WHEN i % 10 > 0 THEN i END AS sometimes, [i, -i] AS pair,
           TIMESTAMP '2026-01-01' + to_seconds(i) AS ts
    FROM range({ROWS}) t(i)"""
FIRST = 1767225600000000  # 2026-01-01 in microseconds


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path_factory.mktemp("shards")
    duckdb.sql(TABLE).write_parquet(str(folder / "table.parquet"))
    subprocess.run([sys.executable, "-m", "leat", "shards", "table.parquet", "-o", "shards", "--count", "7", "--seed", "1"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "shards"


def expected(user):
    amount = np.float32(user * 37 % 101 / 8)
    return (user, amount, f"name {user}".encode(), user % 2 == 0, user if user % 10 else -1, (user, -user),
            FIRST + user * 1000000)


def test_tensorflow_reads_the_rows_of_the_table(shards):
    tf = pytest.importorskip("tensorflow")
    features = {
        "user": tf.io.FixedLenFeature([], tf.int64),
        "amount": tf.io.FixedLenFeature([], tf.float32),
        "name": tf.io.FixedLenFeature([], tf.string),
        "even": tf.io.FixedLenFeature([], tf.int64),
        "sometimes": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
        "pair": tf.io.FixedLenFeature([2], tf.int64),
        "ts": tf.io.FixedLenFeature([], tf.int64),
    }
    rows, counts = [], []
    for path in sorted(shards.glob("*.tfrecord")):
        records = [tf.io.parse_single_example(record, features) for record in tf.data.TFRecordDataset(str(path))]
        counts.append(len(records))
        rows += [(int(r["user"]), r["amount"].numpy(), r["name"].numpy(), bool(r["even"]), int(r["sometimes"]),
                  tuple(r["pair"].numpy().tolist()), int(r["ts"])) for r in records]
    assert len(counts) == 7 and max(counts) - min(counts) <= 1
    assert sorted(rows) == [expected(user) for user in range(ROWS)]
    assert [row[0] for row in rows] != list(range(ROWS))


def test_a_feed_reads_the_rows_of_the_table(shards):
    feed = (leat.tfrecord(shards / "*.tfrecord")
            .example(user=int, amount=float, name=bytes, even=int, pair="int64[2]", ts=int).batch(64).feed(epochs=1))
    rows = []
    for batch in feed:
        for i, user in enumerate(batch["user"]):
            rows.append((int(user), batch["amount"][i], bytes(batch["name"][i]), tuple(batch["pair"][i].tolist()),
                         int(batch["ts"][i])))
    want = [expected(user) for user in range(ROWS)]
    assert sorted(rows) == [(user, amount, name, pair, ts) for user, amount, name, _, _, pair, ts in want]
