"""Tables as shards: TensorFlow, pyarrow, NumPy and Leat read the same rows from them, those of the table."""
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


def make(shards, name, *options, table="table.parquet"):
    subprocess.run([sys.executable, "-m", "leat", "shards", table, "-o", name, "--count", "7", "--seed", "1", *options],
                   cwd=shards.parent, check=True, stdout=subprocess.DEVNULL)
    return shards.parent / name


def test_tensorflow_reads_compressed_shards(shards):
    tf = pytest.importorskip("tensorflow")
    folder = make(shards, "gzip", "--compression", "gzip")
    packed = tf.data.TFRecordDataset([str(p) for p in sorted(folder.glob("*.gz"))], compression_type="GZIP")
    plain = tf.data.TFRecordDataset([str(p) for p in sorted(shards.glob("*.tfrecord"))])
    assert [r.numpy() for r in packed] == [r.numpy() for r in plain]


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_pyarrow_reads_the_rows_of_the_table(shards, compression):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = make(shards, compression, "--format", "parquet", "--compression", compression)
    paths = sorted(folder.glob("*.parquet"))
    counts = [parquet.ParquetFile(path).metadata.num_rows for path in paths]
    assert len(counts) == 7 and max(counts) - min(counts) <= 1
    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    table = parquet.read_table(shards.parent / "table.parquet")
    assert parquet.read_schema(paths[0]).names == table.schema.names
    assert sorted(rows, key=lambda row: row["user"]) == table.to_pylist()
    assert [row["user"] for row in rows] != list(range(ROWS))


def test_numpy_reads_the_columns_of_the_table(shards):
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql(f"SELECT * EXCLUDE (name, sometimes) FROM ({TABLE})").write_parquet(str(shards.parent / "numbers.parquet"))
    folder = make(shards, "npy", "--format", "npy", table="numbers.parquet")
    columns = {name: np.concatenate([np.load(path) for path in sorted(folder.glob(f"{name}-*.npy"))])
               for name in ("user", "amount", "even", "pair", "ts")}
    user = columns["user"]
    assert sorted(user) == list(range(ROWS)) and list(user) != list(range(ROWS))
    assert (columns["amount"] == user * 37 % 101 / 8).all() and (columns["even"] == (user % 2 == 0)).all()
    assert (columns["pair"] == np.stack([user, -user], axis=1)).all() and columns["pair"].shape == (ROWS, 2)
    assert (columns["ts"] == FIRST + user * 1000000).all()
    feed = leat.npy(user=str(folder / "user-*.npy"), pair=str(folder / "pair-*.npy")).batch(64).feed(epochs=1)
    assert np.concatenate([batch["user"].copy() for batch in feed]).tolist() == user.tolist()
