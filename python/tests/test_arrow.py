"""Arrow tables as a source and batches as Arrow record batches: values, lifetimes, hostile structs; and CSV tables."""
from __future__ import annotations

import ctypes
import datetime
import decimal
import gc

import numpy as np
import pytest

import leat
from leat import _lib

pa = pytest.importorskip("pyarrow")
from test_parquet import compare, make_table, read  # noqa: E402


def chunked(table, rows=700):
    return pa.Table.from_batches([batch for batch in table.to_batches(rows)])


@pytest.mark.parametrize("change", [lambda table: table, chunked, lambda table: table.slice(13, 900),
                                    lambda table: chunked(table, 256).slice(100, 1000)])
def test_values_are_those_of_pyarrow_however_the_table_is_cut(change):
    table = make_table()
    table = table.drop_columns(["f16"]) if "f16" in table.column_names else table
    table = change(table)
    compare(table, read(leat.arrow(table)))


def test_types_that_parquet_does_not_have():
    table = pa.table({
        "large": pa.array(["a", "", "bcd"], pa.large_string()), "view": pa.array(["x", "y" * 40, ""], pa.string_view()),
        "large_list": pa.array([[1], [], [2, 3]], pa.large_list(pa.int32())),
        "codes": pa.array(["u", "v", "u"]).dictionary_encode(),
        "numbers": pa.array([10, 20, 10]).dictionary_encode(),
        "fixed": pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
        "grid": pa.array([[[1, 2], [3, 4]]] * 3, pa.list_(pa.list_(pa.int16(), 2), 2)),
        "time": pa.array([1, 2, 3], pa.time32("ms")), "took": pa.array([1, 2, 3], pa.duration("s")),
        "small": pa.array([decimal.Decimal("1.25")] * 3, pa.decimal128(4, 2)),
        "half": pa.array(np.arange(3, dtype=np.float16)),
    })
    batch = next(iter(leat.arrow(table).batch(3).feed()))
    assert batch["large"].to_bytes() == [b"a", b"", b"bcd"]
    assert batch["view"].to_bytes() == [b"x", b"y" * 40, b""]
    assert batch["large_list"].to_list() == [[1], [], [2, 3]]
    assert batch["codes"].to_bytes() == [b"u", b"v", b"u"]
    assert batch["numbers"].tolist() == [10, 20, 10]
    assert batch["fixed"].tolist() == [[97, 98], [99, 100], [101, 102]]
    assert batch["grid"].tolist() == [[[1, 2], [3, 4]]] * 3
    assert batch["time"].tolist() == [1000, 2000, 3000] and batch["took"].tolist() == [10**6, 2 * 10**6, 3 * 10**6]
    assert batch["small"].tolist() == [1.25] * 3 and batch["half"].dtype == np.float16


def test_nulls_are_bad_samples_or_filled():
    table = pa.table({"x": [1.0, None, 3.0], "n": [1, 2, None], "t": ["a", None, "c"],
                      "l": pa.array([[1.0], [None], None], pa.list_(pa.float32()))})
    feed = leat.arrow(table).batch(3).feed(epochs=1, on_error="skip")
    assert [batch.count for batch in feed] == [1]
    assert [bad.reason for bad in feed.bad()] == [
        "the Arrow table, row 1: column 'x' is null; use null=zero or null=nan, or replace nulls in the table",
        "the Arrow table, row 2: column 'n' is null; use null=zero, or replace nulls in the table"]
    batch = next(iter(leat.arrow(table, null="zero").batch(3).feed()))
    assert batch["x"].tolist() == [1, 0, 3] and batch["n"].tolist() == [1, 2, 0]
    assert batch["t"].to_bytes() == [b"a", b"", b"c"] and batch["l"].to_list() == [[1], [0], []]
    batch = next(iter(leat.arrow(table, columns=["x"], null="nan").batch(3).feed()))
    assert np.isnan(batch["x"][1])


def test_pandas_and_polars_plug_in():
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    frame = polars.DataFrame({"x": [1.5, 2.5], "name": ["a", "a text that is longer than a view"]})
    for batch in leat.arrow(frame).batch(2).feed(epochs=1).arrow():
        assert polars.DataFrame(batch)["x"].to_list() == [1.5, 2.5]
        assert pa.table(batch).to_pandas()["name"].tolist() == [b"a", b"a text that is longer than a view"]
    frame = pandas.DataFrame({"x": np.arange(4, dtype=np.float32), "kind": pandas.Categorical(["a", "b", "a", "b"])})
    batch = next(iter(leat.arrow(frame).batch(4).feed()))
    assert batch["x"].tolist() == [0, 1, 2, 3] and batch["kind"].to_bytes() == [b"a", b"b", b"a", b"b"]


def test_shuffled_batches_do_not_depend_on_batches_threads_or_the_process():
    table = make_table().select(["f32", "int64", "name", "list"])
    first = read(leat.arrow(table).shuffle(), seed=3, threads=1, epochs=1)
    again = read(leat.arrow(chunked(table, 123)).shuffle(), seed=3, threads=2, epochs=1)
    for name in first:
        assert all(np.array_equal(a, b) for a, b in zip(first[name], again[name])), name


def test_a_table_is_released_once_after_the_feed():
    released = []

    class Watched(np.ndarray):
        def __del__(self):
            released.append(True)

    def open_feed():
        values = np.arange(5000, dtype=np.float32).view(Watched)
        return leat.arrow(pa.table({"x": pa.Array.from_buffers(pa.float32(), 5000, [None, pa.py_buffer(values)])})).batch(50).feed()

    feed = open_feed()
    gc.collect()
    assert not released, "the feed still reads it"
    batch = next(iter(feed))
    feed.close()
    del feed
    gc.collect()
    assert released == [True]
    assert batch["x"][49] == 49  # batches have their own memory


def test_exported_batches_outlive_feed_and_batch_and_share_memory():
    table = make_table().drop_columns(["f16"])
    feed = leat.arrow(table).batch(500).feed(epochs=1)
    batches = [pa.record_batch(batch) for batch in feed.arrow()]
    for batch in batches:
        batch.validate(full=True)
    feed.close()
    del feed
    gc.collect()
    out = pa.Table.from_batches(batches)
    assert out.num_rows == table.num_rows
    for name in ("f32", "int64", "flag"):
        assert out[name].to_pylist() == table[name].to_pylist()
    assert out["fixed"].to_pylist() == table["fixed"].to_pylist()
    assert out["list"].to_pylist() == table["list"].to_pylist()
    assert out["raw"].to_pylist() == table["raw"].to_pylist()
    batch = next(iter(leat.arrow(table).batch(8).feed().arrow()))
    assert pa.record_batch(batch)["f32"].buffers()[1].address == batch.batch["f32"].__array_interface__["data"][0]


def test_exported_images_of_any_shape_and_fill(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    for i in range(3):
        image.fromarray(np.full((4 + i, 5, 3), i, np.uint8)).save(tmp_path / "a" / f"{i}.png")
    feed = leat.folder(tmp_path).decode().batch(2, tail="pad").feed(epochs=1)
    batches = [pa.record_batch(batch) for batch in feed.arrow()]
    for batch in batches:
        batch.validate(full=True)
    assert [row["shape"] for row in batches[0]["image"].to_pylist()] == [[4, 5, 3], [5, 5, 3]]
    assert batches[0]["image"].to_pylist()[1]["values"] == [1] * 75
    assert batches[1]["valid"].to_pylist() == [True, False]


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                   ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]
Array._fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")] + [
    (name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private_data")]


class Tampered:
    """A table of one batch, of whose first column `change` edits the array before Leat gets it."""

    def __init__(self, table, change):
        self.batch, self.change = table.to_batches()[0], change

    def __arrow_c_stream__(self, requested_schema=None):
        schema, array = self.batch.__arrow_c_array__()
        pointer = Array.from_address(_lib.capsule_pointer(array, b"arrow_array"))
        child = Array.from_address((ctypes.c_void_p * 1).from_address(pointer.children)[0])
        self.before = [(ctypes.addressof(one), bytes(one)) for one in (pointer, child)]
        self.change(pointer, child)
        self.kept = Stream(Schema.from_address(_lib.capsule_pointer(schema, b"arrow_schema")), pointer, (schema, array))
        return self.kept.capsule

    def restore(self):
        """Before pyarrow releases what it exported."""
        for address, was in self.before:
            ctypes.memmove(address, was, len(was))


class Stream:
    """A stream of one batch. Nothing in it is released: that is for the capsules."""

    def __init__(self, schema, array, held):
        self.held, self.given = held, False
        get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        one = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self.no_release = one(lambda pointer: None)

        def copy(source, target, size):
            ctypes.memmove(target, ctypes.addressof(source), size)

        def get_schema(_, out):
            copy(schema, out, 72)
            Schema.from_address(out).release = ctypes.cast(self.no_release, ctypes.c_void_p).value
            return 0

        def get_next(_, out):
            if self.given:
                ctypes.memset(out, 0, 80)
                return 0
            self.given = True
            copy(array, out, 80)
            Array.from_address(out).release = ctypes.cast(self.no_release, ctypes.c_void_p).value
            return 0

        self.calls = get(get_schema), get(get_next), self.no_release
        self.struct = (ctypes.c_void_p * 5)(ctypes.cast(self.calls[0], ctypes.c_void_p).value,
                                            ctypes.cast(self.calls[1], ctypes.c_void_p).value, None,
                                            ctypes.cast(self.no_release, ctypes.c_void_p).value, None)
        self.capsule = _lib.capsule_new(ctypes.c_void_p(ctypes.addressof(self.struct)), b"arrow_array_stream", None)


def poke(index, value):
    def change(parent, child):
        buffers = (ctypes.c_void_p * 2).from_address(child.buffers)
        (ctypes.c_int32 * 8).from_address(buffers[1])[index] = value
    return change


def put(name, value, of_parent=False):
    def change(parent, child):
        setattr(parent if of_parent else child, name, value)
    return change


@pytest.mark.parametrize("column, change, why", [
    ("t", poke(2, -5), "offsets do not ascend"), ("t", poke(0, -1), "an offset is negative"),
    ("l", poke(4, 1000), "an offset is beyond the end"), ("l", put("n_children", 0), "lack their elements"),
    ("t", put("n_buffers", 1), "it lacks buffers"), ("x", put("n_buffers", 0), "it lacks buffers"),
    ("x", put("offset", -1), "fewer rows"), ("x", put("length", 2), "fewer rows"),
    ("x", put("offset", 2**62), "length or offset is invalid"),
    ("x", put("length", -3, True), "number of rows"), ("x", put("length", 2**60, True), "number of rows"),
    ("x", put("n_children", 2, True), "other columns"), ("x", put("offset", 2**63 - 1, True), "number of rows"),
])
def test_hostile_arrays_are_errors(column, change, why):
    table = pa.table({"t": ["a", "b", "c", "d"], "l": [[1], [2], [3], [4]], "x": [1.0, 2.0, 3.0, 4.0]}).select([column])
    table = pa.ipc.open_stream(_written(table)).read_all()  # its own buffers: they are damaged
    tampered = Tampered(table, change)
    try:
        with pytest.raises(leat.DataError, match=why):
            leat.arrow(tampered).batch(2).feed()
    finally:
        tampered.restore()


def _written(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.py_buffer(bytearray(sink.getvalue()))


def test_errors_say_what_to_do():
    with pytest.raises(leat.InvalidError, match="__arrow_c_stream__"):
        leat.arrow([1, 2]).batch(2).feed()
    with pytest.raises(leat.InvalidError, match="leat.arrow"):
        leat.feed("arrow | batch(2)")
    with pytest.raises(leat.SpecError, match="did you mean 'user'"):
        leat.arrow(pa.table({"user": [1]}), columns=["usr"]).batch(1).feed()
    with pytest.raises(leat.SpecError, match="none of numbers, text, and lists of numbers"):
        leat.arrow(pa.table({"s": [{"a": 1}]})).batch(1).feed()


def test_concat_gives_one_matrix_by_every_way():
    table = make_table().select(["f32", "int32", "f64", "fixed"])
    wanted = np.column_stack([table[name].to_numpy().astype(np.float32) for name in ("f32", "int32", "f64")]
                             + [np.array(table["fixed"].to_pylist(), np.float32)])
    for pipeline in (leat.arrow(table), leat.arrow(chunked(table))):
        bulk = pipeline.concat(x=["f32", "int32", "f64", "fixed"])
        one_by_one = bulk.cache()
        for way in (bulk, one_by_one):
            found = np.concatenate([batch["x"].copy() for batch in way.batch(64).feed(epochs=1)])
            np.testing.assert_array_equal(found, wanted)


# ---- csv ----

def test_csv_rows_and_bad_records(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('user,ts,ok,note,price,junk\n1,2026-01-01T00:00:01,true,"a ""b""\nc",1.25,x\n2,nope,true,b,1.25,x\n'
                    '3,2026-01-01,false,,9.99,x\n"4,2026\n5,2026-01-02,1,d,0.01,x\n')
    rows = leat.csv(path, columns={"user": int, "ts": "timestamp", "ok": "bool", "note": str, "price": "decimal(4,2)",
                                   "junk": "skip"}, null="zero")
    feed = rows.batch(9).feed(epochs=1, on_error="skip")
    batch = next(iter(feed))
    assert batch["user"].tolist() == [1, 3, 5] and batch["ok"].tolist() == [True, False, True]
    assert batch["note"].to_bytes() == [b'a "b"\nc', b"", b"d"] and batch["price"].tolist() == [1.25, 9.99, 0.01]
    day = int(datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc).timestamp()) * 10**6
    assert batch["ts"].tolist() == [day + 10**6, day, day + 86400 * 10**6]
    assert [(bad.sample, bad.reason.split(": ", 1)[1]) for bad in feed.bad()] == [
        (1, "line 4, column 'ts': 'nope' is no timestamp such as 2026-11-18T12:30:00"),
        (3, "line 6, column 'user': a quoted field is not closed")]
    with pytest.raises(leat.DataError, match="line 4, column 'ts'"):
        list(rows.batch(9).feed())


def test_csv_reads_many_files_compressed_and_json_lines(tmp_path):
    import gzip

    rng = np.random.default_rng(1)
    values = rng.normal(size=(4, 500))
    for i in range(3):
        text = "x,n\n" + "".join(f"{value!r},{row}\n" for row, value in enumerate(map(float, values[i])))
        (tmp_path / f"{i}.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "3.jsonl").write_text("".join(f'{{"n":{row},"x":{float(value)!r}}}\n' for row, value in enumerate(values[3])))
    rows = leat.csv(str(tmp_path / "*.csv.gz"), str(tmp_path / "3.jsonl"), columns=["x double", "n int32"])
    found = read(rows, epochs=1)
    np.testing.assert_array_equal(np.array(found["x"]), values.ravel())
    assert sorted(map(int, found["n"])) == sorted(list(range(500)) * 4)
    mixed = read(rows.shuffle(), epochs=1, seed=1, threads=1)
    assert [float(x) for x in mixed["x"]] == [float(x) for x in read(rows.shuffle(), epochs=1, seed=1, threads=2)["x"]]


def test_csv_that_does_not_fit_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "1\n" * 3_000_000)
    with pytest.raises(leat.LimitError, match="leat load"):
        leat.csv(path, columns={"x": float}).batch(10).feed(memory="2MiB")
