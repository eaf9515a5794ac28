"""Rows of Parquet tables as pyarrow and DuckDB read them, whoever wrote the files."""
from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

import leat

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
import pyarrow.parquet as pq

ROWS = 3000
EPOCH = datetime.datetime(1970, 1, 1)


def make_table(seed=1, rows=ROWS):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, rows)
    times = rng.integers(-(2**50), 2**50, rows)
    columns = {
        "flag": pa.array(rng.integers(0, 2, rows) == 1),
        "f16": pa.array(rng.normal(size=rows).astype(np.float16)),
        "f32": pa.array(rng.normal(size=rows).astype(np.float32)),
        "f64": pa.array(rng.normal(size=rows)),
        "few": pa.array(rng.integers(0, 3, rows)),
        "day": pa.array((times // 2**26).astype(np.int32), pa.date32()),
        "us": pa.array(times, pa.timestamp("us")),
        "ms": pa.array(times // 1000, pa.timestamp("ms", tz="UTC")),
        "ns": pa.array(times * 1000, pa.timestamp("ns")),
        "price": pa.array([decimal.Decimal(int(n)).scaleb(-2) for n in rng.integers(-(10**6), 10**6, rows)], pa.decimal128(18, 2)),
        "name": pa.array([f"name {n}" * int(n % 3) for n in rng.integers(0, 40, rows)], pa.string()),
        "raw": pa.array([rng.bytes(int(n)) for n in lengths], pa.binary()),
        "list": pa.array([rng.normal(size=int(n)).astype(np.float32) for n in lengths], pa.list_(pa.float32())),
        "codes": pa.array([list(range(int(n))) for n in lengths], pa.list_(pa.int16())),
        "fixed": pa.array(rng.normal(size=(rows, 4)).astype(np.float32).tolist(), pa.list_(pa.float32(), 4)),
    }
    for bits in 8, 16, 32, 64:
        for kind in "int", "uint":
            info = np.iinfo(f"{kind}{bits}")
            columns[f"{kind}{bits}"] = pa.array(rng.integers(info.min, info.max, rows, dtype=info.dtype, endpoint=True))
    return pa.table(columns)


def expected(column):
    """A column as Leat gives it: an array, or a list of arrays."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False).cast(pa.int64()).to_numpy()
    if pa.types.is_decimal(kind):
        return np.array([float(value) for value in column.to_pylist()])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return [np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8) for value in column.to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return [np.array(value, {"float": np.float32, "int16": np.int16}[str(kind.value_type)]) for value in column.to_pylist()]
    if pa.types.is_float16(kind):
        return column.to_numpy(zero_copy_only=False).astype(np.float32)
    return column.to_numpy(zero_copy_only=False)


def read(spec, **options):
    """All samples of an epoch, by field: an array, or a list of arrays."""
    found = {}
    for batch in spec.batch(256).feed(**options):
        for name in batch:
            found.setdefault(name, []).extend(np.array(row) for row in batch[name])
    return found


def compare(table, found):
    assert sorted(found) == sorted(table.column_names)
    for name in table.column_names:
        rows = expected(table[name].combine_chunks())
        assert len(rows) == len(found[name])
        for row, (is_, wanted) in enumerate(zip(found[name], rows)):
            assert is_.dtype == np.asarray(wanted).dtype, name
            np.testing.assert_array_equal(is_, wanted, err_msg=f"{name}, row {row}")


@pytest.mark.parametrize("keep", ["auto", "never"])
@pytest.mark.parametrize("writing", [
    {},
    {"compression": "zstd", "use_dictionary": False, "row_group_size": 700},
    {"compression": "gzip", "data_page_version": "2.0", "row_group_size": 1000, "data_page_size": 1000},
    {"compression": "none", "use_dictionary": False, "column_encoding": {"int32": "DELTA_BINARY_PACKED", "name": "DELTA_BYTE_ARRAY", "f64": "BYTE_STREAM_SPLIT"}},
    {"compression": "lz4", "use_deprecated_int96_timestamps": True},
    {"compression": "brotli", "version": "1.0", "store_schema": False},
], ids=["snappy", "zstd", "gzip", "encodings", "int96", "old"])
def test_samples_are_the_rows_that_pyarrow_wrote(tmp_path, writing, keep):
    table = make_table()
    if writing.get("version") == "1.0":
        table = table.drop_columns(["f16", "ns", "uint32"])  # not in this version
    pq.write_table(table, tmp_path / "t.parquet", **writing)
    compare(table, read(leat.parquet(tmp_path / "t.parquet", keep=keep)))


def test_samples_are_the_rows_of_several_files(tmp_path):
    tables = [make_table(seed, rows) for seed, rows in ((1, 500), (2, 0), (3, 700))]
    for i, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"part-{i:05}-x.snappy.parquet", row_group_size=300)
    (tmp_path / "_SUCCESS").touch()
    compare(pa.concat_tables(tables), read(leat.parquet(tmp_path)))
    compare(pa.concat_tables(tables), read(leat.parquet(tmp_path / "part-*.parquet", keep="never")))


def test_samples_are_the_rows_that_duckdb_reads(tmp_path):
    pq.write_table(make_table(), tmp_path / "t.parquet", row_group_size=500)
    duckdb.sql(f"COPY (SELECT f64, name, list, int64 FROM '{tmp_path}/t.parquet' ORDER BY f64) TO '{tmp_path}/sorted.parquet' (ROW_GROUP_SIZE 2048)")
    wanted = duckdb.sql(f"SELECT * FROM '{tmp_path}/sorted.parquet'").fetchall()
    found = read(leat.parquet(tmp_path / "sorted.parquet", columns=["name", "f64", "int64"]))
    assert [row[0] for row in wanted] == [float(x) for x in found["f64"]]
    assert [row[1] for row in wanted] == [x.tobytes().decode() for x in found["name"]]
    assert [row[3] for row in wanted] == [int(x) for x in found["int64"]]


def test_a_list_with_a_shape_is_dense(tmp_path):
    table = make_table()
    pq.write_table(table, tmp_path / "t.parquet")
    batch = next(iter(leat.parquet(tmp_path / "t.parquet", columns=["fixed[2, 2]", "int8"]).batch(100).feed()))
    assert batch["fixed"].shape == (100, 2, 2)
    np.testing.assert_array_equal(batch["fixed"].reshape(100, 4), np.array(table["fixed"].to_pylist()[:100], np.float32))


@pytest.mark.parametrize("keep", ["auto", "never"])
def test_nulls_follow_the_option(tmp_path, keep):
    table = pa.table({"x": [1.5, None, 2.5], "n": [1, 2, None]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(leat.Error, match=r"t.parquet', row 1: column 'x' is null; use null=zero or null=nan"):
        read(leat.parquet(tmp_path / "t.parquet", keep=keep))
    assert [float(x) for x in read(leat.parquet(tmp_path / "t.parquet", null="zero", keep=keep))["x"]] == [1.5, 0, 2.5]
    found = read(leat.parquet(tmp_path / "t.parquet", columns=["x"], null="nan", keep=keep))["x"]
    np.testing.assert_array_equal(found, [1.5, np.nan, 2.5])
    assert len(read(leat.parquet(tmp_path / "t.parquet", keep=keep), on_error="skip")["x"]) == 1


@pytest.mark.parametrize("keep", ["auto", "never"])
def test_a_feed_resumes_in_the_middle(tmp_path, keep):
    pq.write_table(make_table(), tmp_path / "t.parquet", row_group_size=400)

    def open_feed(threads):
        return leat.parquet(tmp_path / "t.parquet", columns=["f64", "name"], keep=keep).shuffle(window=300).batch(50).feed(seed=7, threads=threads)

    whole = [np.array(batch["f64"]) for batch in open_feed(1)]
    feed, parts = open_feed(2), []
    for batch in feed:
        parts.append(np.array(batch["f64"]))
        if len(parts) == 25:
            state = feed.state_dict()
            break
    feed = open_feed(1)
    feed.load_state_dict(state)
    parts += [np.array(batch["f64"]) for batch in feed]
    np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(whole))


def test_a_checkpoint_fits_either_way_of_keeping(tmp_path):
    pq.write_table(make_table(), tmp_path / "t.parquet", row_group_size=400)
    feeds = [leat.parquet(tmp_path / "t.parquet", columns=["f64"], keep=keep).batch(50).feed() for keep in ("auto", "never")]
    for _, batch in zip(range(3), feeds[0]):
        pass
    feeds[1].load_state_dict(feeds[0].state_dict())


# ---- folders of others, steps, splits ----

def test_a_folder_that_spark_wrote_is_a_table(tmp_path):
    table = make_table(rows=400)
    folder = tmp_path / "table.parquet"
    folder.mkdir()
    for i in range(2):
        part = f"part-0000{i}-6c1e-c000.snappy.parquet"
        pq.write_table(table.slice(200 * i, 200), folder / part, compression="snappy")
        (folder / f".{part}.crc").write_bytes(b"crc")
    for name in "_SUCCESS", "_common_metadata", "_metadata":
        (folder / name).write_bytes(b"")
    compare(table, read(leat.parquet(folder), epochs=1))


def test_partition_folders_are_named_in_the_error(tmp_path):
    for day in "2026-01-01", "2026-01-02":
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / f"day={day}" / "part-0.parquet")
    with pytest.raises(leat.IOError, match=r"partition folders.*\*/\*\.parquet"):
        leat.parquet(tmp_path).batch(1).feed()
    assert len(read(leat.parquet(f"{tmp_path}/*/*.parquet"), epochs=1)["x"]) == 4


def test_tfrecord_folders_of_spark(tmp_path):
    import gzip

    data = pytest.importorskip("tensorflow", reason="writes records", exc_type=ImportError)
    for i in range(2):
        with data.io.TFRecordWriter(str(tmp_path / f"part-r-0000{i}.tfrecord")) as out:
            out.write(b"record %d" % i)
    (tmp_path / "_SUCCESS").touch()
    assert [bytes(row) for row in read(leat.tfrecord(tmp_path), epochs=1)["record"]] == [b"record 0", b"record 1"]
    for i in range(2):
        plain = tmp_path / f"part-r-0000{i}.tfrecord"
        (tmp_path / f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    assert [bytes(row) for row in read(leat.tfrecord(tmp_path), epochs=1)["record"]] == [b"record 0", b"record 1"]


def test_images_that_petastorm_compressed_are_decoded(tmp_path):
    image = pytest.importorskip("PIL.Image")
    import io

    pixels, encoded = np.random.default_rng(1).integers(0, 255, (3, 8, 9, 3), np.uint8), []
    for one in pixels:
        out = io.BytesIO()
        image.fromarray(one).save(out, "png")
        encoded.append(out.getvalue())
    pq.write_table(pa.table({"image": encoded, "id": [1, 2, 3]}), tmp_path / "part-0.parquet")
    batch = next(iter(leat.parquet(tmp_path).decode(field="image").batch(3).feed()))
    np.testing.assert_array_equal([np.asarray(row) for row in batch["image"]], pixels)


def split_table(rows=1000):
    table = make_table(rows=rows).select(["f32", "int64", "name"])
    return table.append_column("split", pa.array(["train", "train", "valid", "test"] * (rows // 4)))


def test_a_split_is_its_rows_in_their_order(tmp_path):
    table = split_table()
    for i in range(4):  # the third one has no row of "late"
        pq.write_table(table.slice(250 * i, 250), tmp_path / f"{i}.parquet", row_group_size=60)
    wanted = table.filter(pa.compute.equal(table["split"], "valid"))
    found = read(leat.parquet(tmp_path, split="valid"), epochs=1)
    compare(wanted, found)
    dense = read(leat.parquet(tmp_path, split="valid", columns=["f32", "int64"]), epochs=1)  # in bulk
    np.testing.assert_array_equal(np.array(dense["f32"]), wanted["f32"].to_numpy())
    assert leat.parquet(tmp_path, split="train").batch(10).feed().samples == 500
    with pytest.raises(leat.DataError, match="no row has this value"):
        leat.parquet(tmp_path, split="nope").batch(1).feed()
    with pytest.raises(leat.LimitError, match="needs the table in memory: use keep=auto"):
        leat.parquet(tmp_path, split="valid", keep="never").batch(1).feed()


def test_table_reads_the_last_result_of_a_step(tmp_path, monkeypatch):
    table = split_table()
    (tmp_path / "leat.yaml").write_text("steps: {}\n")
    out, deep = tmp_path / "out", tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (out / "feats" / "state").mkdir(parents=True)
    pq.write_table(table, out / "clean.parquet")
    pq.write_table(table, out / "feats" / "features.parquet")
    pq.write_table(pa.table({"value": ["a"]}), out / "feats" / "state" / "dictionary_0.parquet")
    for i in range(2):
        (out / "events" / f"raw-{i}.csv").mkdir(parents=True)
        pq.write_table(table.slice(500 * i, 500), out / "events" / f"raw-{i}.csv" / "rows.parquet")
    monkeypatch.chdir(deep)
    for step in "clean", "feats", "events":
        compare(table, read(leat.table(step), epochs=1))
    assert leat.table("feats", split="test").batch(5).feed().samples == 250
    monkeypatch.chdir("/")
    assert leat.table("clean", project=str(tmp_path)).batch(5).feed().samples == 1000
    with pytest.raises(leat.IOError, match="leat build nope"):
        leat.table("nope", project=str(tmp_path)).batch(5).feed()
    with pytest.raises(leat.InvalidError, match="project="):
        leat.table("clean").batch(5).feed()


@pytest.mark.parametrize("options", [
    dict(use_dictionary=True), dict(use_dictionary=False, column_encoding={"f32": "BYTE_STREAM_SPLIT", "int64": "DELTA_BINARY_PACKED"}),
    dict(data_page_version="2.0", compression="zstd"), dict(compression="gzip"), dict(compression="lz4"),
    dict(compression="brotli"), dict(compression="none", row_group_size=1), dict(use_dictionary=False,
    column_encoding={"name": "DELTA_BYTE_ARRAY"}), dict(use_dictionary=False, column_encoding={"name": "DELTA_LENGTH_BYTE_ARRAY"})])
def test_encodings_and_compressions(tmp_path, options):
    table = make_table(rows=200).select(["f32", "int64", "name", "list"])
    if "column_encoding" in options:
        table = table.select(["f32", "int64", "name"])
    pq.write_table(table, tmp_path / "a.parquet", **options)
    for keep in "auto", "never":
        compare(table, read(leat.parquet(tmp_path, keep=keep), epochs=1))


def test_tables_without_rows(tmp_path):
    table = make_table(rows=10).select(["f32", "name"])
    with pq.ParquetWriter(tmp_path / "b.parquet", table.schema) as writer:  # an empty row group between two
        for part in table.slice(0, 4), table.slice(0, 0), table.slice(4):
            writer.write_table(part)
    compare(table, read(leat.parquet(tmp_path), epochs=1))
    pq.write_table(table.slice(0, 0), tmp_path / "b.parquet")
    assert list(leat.parquet(tmp_path).batch(4).feed(epochs=1)) == []
    assert list(leat.arrow(table.slice(0, 0)).batch(4).feed(epochs=1)) == []
