"""Fitted features: the command against plain arithmetic, and leat.features against the command, to the bit."""
from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import random
import subprocess

import pytest

import leat

duckdb = pytest.importorskip("duckdb")

NASTY = 'we"ird \'na;me--'
USERS = 300
ROWS = 4_000


def run(build, *arguments, check=True, **options):
    environment = {**os.environ, "LEAT_DUCKDB": os.environ.get("LEAT_DUCKDB", _library())}
    done = subprocess.run([build / "leat", *map(str, arguments)], capture_output=True, text=True, env=environment, **options)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def _library():
    import importlib.util

    spec = importlib.util.find_spec("_duckdb")
    return spec.origin if spec else duckdb.__file__


def make_rows(count=ROWS, seed=1):
    """Rows with what goes wrong: missing values, NaN, infinities, empty texts, a constant, quotes in a name."""
    draw = random.Random(seed)
    rows = {"id": list(range(count)), "user": [], "amount": [], "count": [], "constant": [], "word": [], "ts": [], "day": [], "label": [], NASTY: []}
    for i in range(count):
        rows["user"].append(draw.randrange(USERS))
        rows["amount"].append(draw.choice([None, math.nan, math.inf, -math.inf]) if draw.random() < 0.02
                              else draw.lognormvariate(0, 3) - 0.5)
        rows["count"].append(None if draw.random() < 0.02 else draw.randrange(-5, 100))
        rows["constant"].append(0.1)
        rows["word"].append(None if draw.random() < 0.02 else draw.choice(["", "tea", "kö'x\"", "a", "b", "rare%d" % i])
                            if draw.random() < 0.3 else "w%d" % int(draw.expovariate(0.1)))
        rows["ts"].append(datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=draw.randrange(400 * 86400)))
        rows["day"].append(datetime.date(2024, 1, 1) + datetime.timedelta(days=draw.randrange(400)))
        rows["label"].append(draw.randrange(2))
        rows[NASTY].append(draw.random())
    return rows


TYPES = {"id": "BIGINT", "user": "BIGINT", "amount": "DOUBLE", "count": "INTEGER", "constant": "DOUBLE", "word": "VARCHAR",
         "ts": "TIMESTAMP", "day": "DATE", "label": "TINYINT", NASTY: "FLOAT"}


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def write(path, rows):
    connection = duckdb.connect()
    items = ", ".join(f"unnest(CAST(? AS {TYPES[name]}[])) AS {quoted(name)}" for name in rows)
    connection.execute(f"COPY (SELECT {items}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 5000)", list(rows.values()))
    return path


def read(path):
    result = duckdb.connect().execute(f"SELECT * FROM read_parquet('{path}')")
    names = [column[0] for column in result.description]
    found = result.fetchall()
    return {name: [row[i] for row in found] for i, name in enumerate(names)}


def same(a, b):
    """Equal to the bit; NaN equals NaN, 0.0 is not -0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and a == b


def assert_same(left, right):
    assert list(left) == list(right)
    for name in left:
        assert len(left[name]) == len(right[name])
        for i, (a, b) in enumerate(zip(left[name], right[name])):
            assert same(a, b), f"{name}[{i}]: {a!r} {b!r}"


SPLIT = "user: train 80%, valid 10%, test 10%"
COLUMNS = {
    "amount": "clip(p01, p99) | log1p | standardize",
    "raw": "column(amount) | impute(mean, indicator=true) | minmax",
    "robust": "column(amount) | robust",
    "count": "impute(median) | standardize",
    "filled": "column(count) | impute(-1)",
    "bucket": "column(count) | bucketize(0, 10, 50)",
    "quantile": "column(amount) | bucketize(quantiles=7)",
    "constant": "standardize",
    "constant_minmax": "column(constant) | minmax",
    "word": "vocab(min_count=5)",
    "top": "column(word) | vocab(max_size=3)",
    "one": "column(word) | onehot(max_size=4)",
    "often": "column(word) | count",
    "said": "column(word) | impute(mode) | hash(50)",
    "hashed": "column(word) | hash(1000)",
    "pair": "cross(user, word, buckets=10000)",
    "hour": "column(ts) | hour | cyclic(24)",
    "weekday": "column(ts) | weekday",
    "month": "column(day) | month",
    "yearday": "column(day) | yearday",
    "week": "column(day) | week",
    "quarter": "column(day) | quarter",
    "year": "column(day) | year",
    "minute": "column(ts) | minute",
    "second": "column(ts) | second",
    "dayofmonth": "column(ts) | day",
    "epoch": "column(ts) | epoch",
    NASTY: "standardize",
    "label": "keep",
}


def text_of(columns):
    return "; ".join("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "': " + chain for name, chain in columns.items())


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def fitted(build, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    table = write(folder / "table.parquet", rows)
    done = run(build, "features", table, "--columns", text_of(COLUMNS), "--split", SPLIT, "-o", folder / "out")
    assert done.stdout.startswith(f"{ROWS} rows, {len(COLUMNS)} features; train ")
    return folder


@pytest.fixture(scope="module")
def result(fitted):
    return read(fitted / "out" / "features.parquet")


# ---- plain arithmetic ----

def split_of(user):
    share = int(hashlib.md5(str(user).encode()).hexdigest(), 16) / 2**128
    return "train" if share < 0.8 else "valid" if share < 0.9 else "test"


def missing(x):
    return x is None or (isinstance(x, float) and math.isnan(x))


def training(rows, values):
    return [x for x, user in zip(values, rows["user"]) if split_of(user) == "train"]


def finite(values):
    return [float(x) for x in values if not missing(x) and math.isfinite(x)]


def each(values, function):
    return [None if missing(x) else function(x) for x in values]


def quantile(values, share):
    values = sorted(values)
    place = share * (len(values) - 1)
    low = math.floor(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def standardize(rows, values):
    train = finite(training(rows, values))
    mean = math.fsum(train) / len(train)
    deviation = math.sqrt(math.fsum((x - mean) * (x - mean) for x in train) / len(train))
    return each(values, lambda x: (x - mean) / deviation if deviation else x - mean)


def log1p(x):
    y = 1.0 + x
    return None if x <= -1 else x if y == 1 or math.isinf(x) else math.log(y) * (x / (y - 1))


def vocabulary(rows, values, min_count=1, max_size=10**9):
    counts = {}
    for x in training(rows, values):
        if x is not None:
            counts[x] = counts.get(x, 0) + 1
    order = sorted(counts, key=lambda x: (-counts[x], x.encode()))
    return {x: i for i, x in enumerate([x for x in order if counts[x] >= min_count][:max_size])}, counts


def bucket(text, buckets):
    return 2 + int(hashlib.md5(text.encode()).hexdigest()[:15], 16) % buckets


def close(left, right):
    for a, b in zip(left, right):
        if not same(a, b):
            assert a is not None and b is not None and a == pytest.approx(b, rel=1e-12), (a, b)


def test_rows_are_split_by_the_hash_of_their_key(rows, result):
    assert result["split"] == [split_of(user) for user in rows["user"]]
    assert {name: round(result["split"].count(name) / ROWS, 1) for name in set(result["split"])} == {
        "train": 0.8, "valid": 0.1, "test": 0.1}


def test_rows_keep_their_order(rows, result):
    assert result["label"] == rows["label"]


def test_standardize_is_the_correctly_rounded_one(rows, result):
    values = [float(x) for x in duckdb_floats(rows[NASTY])]
    assert_same({"x": result[NASTY]}, {"x": standardize(rows, values)})


def duckdb_floats(values):
    import struct

    return [struct.unpack("f", struct.pack("f", x))[0] for x in values]


def test_a_constant_column_becomes_zero(result):
    assert set(result["constant"]) == {0.0}
    assert set(result["constant_minmax"]) == {0.0}


def test_clip_log1p_and_standardize_are_applied_in_order(rows, result):
    train = finite(training(rows, rows["amount"]))
    low, high = quantile(train, 0.01), quantile(train, 0.99)
    values = each(rows["amount"], lambda x: log1p(min(max(x, low), high)))
    close(result["amount"], standardize(rows, values))
    assert [x is None for x in result["amount"]] == [missing(x) for x in rows["amount"]]


def test_impute_fills_what_is_missing_and_says_where(rows, result):
    assert result["raw_missing"] == [int(missing(x)) for x in rows["amount"]]
    train = finite(training(rows, rows["amount"]))
    mean = math.fsum(train) / len(train)
    values = [mean if missing(x) else x for x in rows["amount"]]
    low, high = min(finite(training(rows, values))), max(finite(training(rows, values)))
    assert_same({"x": result["raw"]}, {"x": [(x - low) / (high - low) for x in values]})
    assert result["filled"] == [-1 if x is None else x for x in rows["count"]]
    train = [x for x in training(rows, rows["count"]) if x is not None]
    values = [quantile(train, 0.5) if x is None else float(x) for x in rows["count"]]
    assert_same({"x": result["count"]}, {"x": standardize(rows, values)})


def test_robust_uses_median_and_quartiles(rows, result):
    train = finite(training(rows, rows["amount"]))
    median, width = quantile(train, 0.5), quantile(train, 0.75) - quantile(train, 0.25)
    close(result["robust"], each(rows["amount"], lambda x: (x - median) / width))


def test_bucketize_counts_edges_at_or_below(rows, result):
    assert result["bucket"] == [None if x is None else sum(edge <= x for edge in (0, 10, 50)) for x in rows["count"]]
    train = finite(training(rows, rows["amount"]))
    edges = [quantile(train, i / 7) for i in range(1, 7)]
    assert result["quantile"] == each(rows["amount"], lambda x: sum(edge <= x for edge in edges))


def test_vocab_numbers_by_frequency_then_name(rows, result):
    def ids(min_count, max_size):
        known, _ = vocabulary(rows, rows["word"], min_count, max_size)
        return [1 if x is None else known[x] + 3 if x in known else 2 for x in rows["word"]]

    assert result["word"] == ids(5, 10**6)
    assert result["top"] == ids(1, 3)
    assert set(result["top"]) == {1, 2, 3, 4, 5}


def test_onehot_and_count(rows, result):
    known, counts = vocabulary(rows, rows["word"], 1, 4)
    assert result["one"] == [[int(known.get(x) == i) for i in range(4)] for x in rows["word"]]
    assert result["often"] == [None if x is None else counts.get(x, 0) for x in rows["word"]]
    assert 0 in result["often"]  # a word that only other rows have


def test_hashes_are_md5(rows, result):
    assert result["hashed"] == [1 if x is None else bucket(x, 1000) for x in rows["word"]]
    assert result["pair"] == [1 if x is None else bucket(f"{len(str(u))}:{u}{len(x)}:{x}", 10000)
                              for u, x in zip(rows["user"], rows["word"])]
    known, _ = vocabulary(rows, rows["word"], 1, 1)
    assert result["said"] == [bucket(next(iter(known)) if x is None else x, 50) for x in rows["word"]]


def test_parts_of_times(rows, result):
    assert result["weekday"] == [x.isoweekday() for x in rows["ts"]]
    assert result["month"] == [x.month for x in rows["day"]]
    assert result["yearday"] == [x.timetuple().tm_yday for x in rows["day"]]
    assert result["week"] == [x.isocalendar()[1] for x in rows["day"]]
    assert result["quarter"] == [(x.month + 2) // 3 for x in rows["day"]]
    assert result["year"] == [x.year for x in rows["day"]]
    assert result["minute"] == [x.minute for x in rows["ts"]]
    assert result["second"] == [x.second for x in rows["ts"]]
    assert result["dayofmonth"] == [x.day for x in rows["ts"]]
    assert result["epoch"] == [(x - datetime.datetime(1970, 1, 1)).total_seconds() for x in rows["ts"]]
    turn = 2 * math.pi / 24
    close(result["hour_sin"], [math.sin(x.hour * turn) for x in rows["ts"]])
    close(result["hour_cos"], [math.cos(x.hour * turn) for x in rows["ts"]])


# ---- the same everywhere ----

def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_threads_do_not_change_a_byte(build, tmp_path):
    # Three row groups and more: what is written in parallel.
    table = tmp_path / "table.parquet"
    duckdb.connect().execute(f"""COPY (SELECT i % 977 AS user, sin(i) * exp(i % 40) AS amount, 'w' || (i * i % 1009) AS word
        FROM range(700000) t(i)) TO '{table}' (FORMAT parquet)""")
    columns = ("amount: standardize; a: column(amount) | impute(mean) | robust; word: vocab(min_count=3); "
               "o: column(word) | count")
    found = []
    for threads in (1, 2, 2):
        out = tmp_path / f"out{len(found)}"
        run(build, "features", table, "--columns", columns, "--split", SPLIT, "-o", out, "--threads", threads)
        found.append(files_of(out))
    assert found[0] == found[1] == found[2]
    order = read(tmp_path / "out0" / "features.parquet")["o"]
    assert order[:3] == read(tmp_path / "out1" / "features.parquet")["o"][:3]


def without_split(result):
    return {name: values for name, values in result.items() if name != "split"}


def test_apply_gives_the_same_bits_as_fitting(build, fitted, result, tmp_path):
    run(build, "apply", fitted / "out", fitted / "table.parquet", "-o", tmp_path / "again.parquet")
    assert_same(read(tmp_path / "again.parquet"), without_split(result))


def test_one_row_gives_the_same_bits_as_all(build, fitted, rows, result, tmp_path):
    strange = [i for i, x in enumerate(rows["amount"]) if missing(x) or math.isinf(x)][:6]
    for i in [0, 7, ROWS - 1, *strange]:
        table = write(tmp_path / "row.parquet", {name: values[i:i + 1] for name, values in rows.items()})
        run(build, "apply", fitted / "out" / "state", table, "-o", tmp_path / "one.parquet")
        assert_same(read(tmp_path / "one.parquet"), {n: v[i:i + 1] for n, v in without_split(result).items()})


def test_python_gives_the_same_bits_as_the_command(fitted, rows, result):
    features = leat.features.load(fitted / "out")
    assert_same(features.transform(rows), without_split(result))
    for i in range(0, 30):
        one = features.transform({name: [values[i]] for name, values in rows.items()})
        assert_same(one, {n: v[i:i + 1] for n, v in without_split(result).items()})


def test_new_data_may_lack_what_is_kept_and_have_new_words(build, fitted, rows, tmp_path):
    new = {name: values[:3] for name, values in rows.items() if name != "label"}
    new["word"] = ["never seen", None, "w0"]
    run(build, "apply", fitted / "out", write(tmp_path / "new.parquet", new), "-o", tmp_path / "new-out.parquet")
    found = read(tmp_path / "new-out.parquet")
    assert "label" not in found
    assert found["word"][:2] == [2, 1] and found["often"][:2] == [0, None] and sum(found["one"][0]) == 0
    assert_same(leat.features.load(fitted / "out").transform(new), found)


def test_pandas_and_arrow_rows(fitted, rows, result):
    features = leat.features.load(fitted / "out" / "state")
    some = {name: values[:50] for name, values in rows.items()}
    try:
        import pyarrow
    except ModuleNotFoundError:
        pass
    else:
        table = features.transform(pyarrow.table(some))
        assert_same({name: table.column(name).to_pylist() for name in table.column_names},
                    {n: v[:50] for n, v in without_split(result).items()})
    pandas = pytest.importorskip("pandas")
    frame = features.transform(pandas.DataFrame(some))
    assert list(frame["word"]) == result["word"][:50]
    assert list(frame[NASTY]) == result[NASTY][:50]


# ---- fitting on training rows only ----

def test_outliers_in_other_parts_change_nothing(build, fitted, rows, tmp_path):
    planted = {name: list(values) for name, values in rows.items()}
    for i, user in enumerate(rows["user"]):
        if split_of(user) != "train":
            planted["amount"][i] = 1e9 * i
            planted["count"][i] = 1_000_000
            planted["word"][i] = "planted"
            planted[NASTY][i] = 1e30
    table = write(tmp_path / "planted.parquet", planted)
    run(build, "features", table, "--columns", text_of(COLUMNS), "--split", SPLIT, "-o", tmp_path / "out")
    assert files_of(tmp_path / "out" / "state") == files_of(fitted / "out" / "state")


def test_a_split_by_time(build, fitted, rows, tmp_path):
    run(build, "features", fitted / "table.parquet", "--columns", "count: impute(mean)",
        "--split", "ts: train before '2024-06-01', test rest", "-o", tmp_path / "out")
    found = read(tmp_path / "out" / "features.parquet")
    limit = datetime.datetime(2024, 6, 1)
    assert found["split"] == ["train" if x < limit else "test" for x in rows["ts"]]
    train = [float(x) for x, ts in zip(rows["count"], rows["ts"]) if ts < limit and x is not None]
    mean = math.fsum(train) / len(train)
    assert found["count"] == [mean if x is None else float(x) for x in rows["count"]]


# ---- edges ----

def test_an_empty_table(build, tmp_path):
    table = write(tmp_path / "empty.parquet", {name: [] for name in TYPES})
    done = run(build, "features", table, "--columns", "amount: standardize", "-o", tmp_path / "a", check=False)
    assert done.returncode == 1 and "feature 'amount', standardize: no training row has a value" in done.stderr
    assert not (tmp_path / "a").exists() and not (tmp_path / ".a.tmp").exists()
    run(build, "features", table, "--columns", "word: vocab; w: column(word) | onehot; c: column(word) | count; amount: log1p",
        "-o", tmp_path / "b")
    assert read(tmp_path / "b" / "features.parquet") == {name: [] for name in ("word", "w", "c", "amount", "split")}
    found = leat.features.load(tmp_path / "b").transform({"word": ["x", None], "amount": [0, -1]})
    assert found == {"word": [2, 1], "w": [[], []], "c": [0, None], "amount": [0.0, None]}


def test_small_numbers_keep_their_digits_in_log1p(build, tmp_path):
    values = [1e-20, -1e-20, 1e-10, 0.5, -0.999, 1e300, 0.0]
    table = write(tmp_path / "t.parquet", {"amount": values})
    run(build, "features", table, "--columns", "amount: log1p", "-o", tmp_path / "out")
    for found, x in zip(read(tmp_path / "out" / "features.parquet")["amount"], values):
        assert found == pytest.approx(math.log1p(x), rel=1e-15)


def test_sums_of_any_size_are_exact(build, tmp_path):
    draw = random.Random(3)
    values = [math.ldexp(draw.uniform(-1, 1), draw.randrange(-900, 1000)) for _ in range(5000)]
    values += [-x for x in values[:4000]] + [5e-324, 2.0**-1000, 2.0**1000, 1.0, 2.0, 4.0, 0.1]
    table = write(tmp_path / "t.parquet", {"amount": [*values, None]})
    run(build, "features", table, "--columns", "amount: impute(mean)", "-o", tmp_path / "out")
    state = json.loads((tmp_path / "out" / "state" / "features.json").read_text())
    assert state["fitted"][0]["values"] == [math.fsum(values) / len(values)]


@pytest.mark.parametrize("columns, message", [
    ("amuont: log1p", "the table has no column 'amuont', did you mean 'amount'?"),
    ("word: log1p", "feature 'word': 'log1p' needs a number, but what it gets is a text; CAST the column in SQL"),
    ("amount: hour", "'hour' needs a time, but what it gets is a number"),
    ("word: impute(3)", "it is a text, so 'impute' needs a text in quotes or 'mode'"),
    ("count: impute(lots)", "'impute' needs a number, mean, median or mode, not 'lots'"),
    ("hour: column(ts) | hour | cyclic(24); hour_sin: column(ts) | hour",
     "feature 'hour' adds a column 'hour_sin', but there is a feature with that name; rename one"),
    ("amount: log2p", "there is no transform 'log2p', did you mean 'log1p'?"),
])
def test_mistakes_are_explained(build, fitted, tmp_path, columns, message):
    done = run(build, "features", fitted / "table.parquet", "--columns", columns, "-o", tmp_path / "out", check=False)
    assert done.returncode != 0 and message in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_left_alone(build, fitted):
    done = run(build, "features", fitted / "table.parquet", "--columns", "amount: log1p", "-o", fitted / "out", check=False)
    assert done.returncode == 2 and "exists" in done.stderr


# ---- states ----

def copy_state(made, folder, changes):
    import shutil

    shutil.copytree(made / "out" / "state", folder)
    path = folder / "features.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def test_a_state_that_was_edited_is_refused(build, fitted, tmp_path):
    state = copy_state(fitted, tmp_path / "state", {"layers": ["1 AS v0"]})
    done = run(build, "apply", state, fitted / "table.parquet", "-o", tmp_path / "x.parquet", check=False)
    assert done.returncode == 1 and "the SQL in the state is not what its features mean" in done.stderr
    assert not (tmp_path / "x.parquet").exists()


def test_the_sql_of_a_state_cannot_read_files(fitted, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    layers = [f"(SELECT max(a) FROM read_csv('{secret}')) AS v0", 'v0 AS "amount"']
    state = copy_state(fitted, tmp_path / "state", {"layers": layers, "outputs": [{"name": "amount"}]})
    with pytest.raises(duckdb.Error):
        leat.features.load(state).transform({name: values[:1] for name, values in make_rows(1).items()})


@pytest.mark.parametrize("change", [{"leat_features": 2}, {"inputs": 3}, {"layers": []}, {"outputs": [1]},
                                    {"inputs": [{"name": "x", "type": "DOUBLE); --", "needed": True}]},
                                    {"fitted": [{"dictionary": "../x", "entries": 1}]}])
def test_python_refuses_hostile_states(fitted, tmp_path, change):
    with pytest.raises(leat.DataError):
        leat.features.load(copy_state(fitted, tmp_path / "state", change))


def test_python_explains_wrong_rows(fitted, tmp_path):
    features = leat.features.load(fitted / "out")
    one = {name: values[:1] for name, values in make_rows(1).items()}
    with pytest.raises(leat.InvalidError, match="rows have no column 'amount'"):
        features.transform({name: values for name, values in one.items() if name != "amount"})
    with pytest.raises(leat.InvalidError, match="different lengths"):
        features.transform({**one, "amount": [1.0, 2.0]})
    with pytest.raises(leat.InvalidError, match="must be a list"):
        features.transform({**one, "amount": 1.0})
    with pytest.raises(leat.InvalidError, match="not int"):
        features.transform(3)
    with pytest.raises(leat.InvalidError, match="features.json"):
        leat.features.load(tmp_path)


# ---- steps ----

PROJECT = """
sources:
  events: events.parquet
steps:
  clean:
    sql: SELECT * FROM events WHERE user < 200
    key: id
  feats:
    features: clean
    split: {by: user, train: 80%%, valid: 10%%, test: 10%%}
    columns:
      amount: %s
      word: vocab(min_count=5)
      hour: column(ts) | hour | cyclic(24)
      label: keep
  last:
    run: ls "$feats" > "$out"
    in: feats
"""


def ran(build, folder):
    """Names of the steps that ran."""
    done = run(build, "build", cwd=folder)
    return sorted({line.split(":")[0].rsplit("-", 1)[0] for line in (done.stdout + done.stderr).splitlines() if ": ran in" in line})


def test_a_features_step_runs_again_when_a_feature_changes(build, rows, tmp_path):
    write(tmp_path / "events.parquet", rows)
    project = tmp_path / "leat.yaml"
    project.write_text(PROJECT % "clip(p01, p99) | log1p")
    assert ran(build, tmp_path) == ["clean", "feats", "last"]
    assert ran(build, tmp_path) == []
    project.write_text(PROJECT % "'clip( low=p01, high=[p99] )   | log1p'")  # the same, written differently
    assert ran(build, tmp_path) == []
    project.write_text(PROJECT % "clip(p02, p99) | log1p")
    assert ran(build, tmp_path) == ["feats", "last"]
    assert leat.features.load(tmp_path / "out" / "feats").inputs == ["amount", "word", "ts"]
    assert (tmp_path / "out" / "feats" / "features.parquet").exists()


@pytest.mark.parametrize("was, now, message", [
    ("vocab(min_count=5)", "vocap(min_count=5)", "there is no transform 'vocap', did you mean 'vocab'?"),
    ("by: user, ", "", "a split needs 'by'"),
    ("80%", "70%", "the parts of the split are 90% together"),
    ("80%", "most", "part 'train' must be a percentage"),
    ("label: keep", "label: [keep]", "feature 'label' of step 'feats' must be a text"),
    ("label: keep", "AMOUNT: keep", "there are two features called 'AMOUNT'"),
    ("features: clean", "features: cleen", "did you mean 'clean'?"),
    ("features: clean", "run: x", "'split' is a key of 'features', and step 'feats' has 'run'"),
])
def test_mistakes_in_leat_yaml_are_explained(build, tmp_path, was, now, message):
    (tmp_path / "leat.yaml").write_text((PROJECT % "log1p").replace(was, now))
    done = run(build, "status", cwd=tmp_path, check=False)
    assert done.returncode != 0 and message in done.stderr
