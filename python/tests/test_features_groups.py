"""Features that read other rows or labels, lists and texts: each against plain Python, and the same bits everywhere."""
from __future__ import annotations

import bisect
import datetime
import hashlib
import json
import math
import random
import re
import statistics
import unicodedata

import pytest

import leat
from test_features import assert_same, files_of, missing, ran, read, run, same, split_of, text_of

duckdb = pytest.importorskip("duckdb")

ROWS = 3_000
SPLIT = "user: train 80%, valid 10%, test 10%"
TYPES = {"id": "BIGINT", "user": "BIGINT", "ts": "TIMESTAMP", "amount": "DOUBLE", "word": "VARCHAR", "tags": "VARCHAR[]",
         "codes": "DOUBLE[]", "text": "VARCHAR", "label": "BOOLEAN", "score": "DOUBLE"}
TEXTS = ["Tea, and TEA!", "", "naïve cafe\u0301 x2", "a  b\tc", "don't", "one two three four", "ÅNGSTRÖM 42", "---"]


def make_rows(count=ROWS, seed=5):
    """Out of order, with what goes wrong: missing groups, times and values, NaN, infinities, empty lists and texts."""
    draw = random.Random(seed)
    start = datetime.datetime(2024, 1, 1)
    rows = {name: [] for name in TYPES}
    for i in range(count):
        odd = draw.random()
        rows["id"].append(i)
        rows["user"].append(None if odd < 0.02 else draw.randrange(150))
        rows["ts"].append(None if 0.02 < odd < 0.04 else start + datetime.timedelta(minutes=draw.randrange(40_000)))
        rows["amount"].append(draw.choice([None, math.nan, math.inf, -math.inf]) if draw.random() < 0.05
                              else draw.uniform(-1, 1) * 10 ** draw.randrange(-8, 6))
        rows["word"].append(None if draw.random() < 0.05 else "w%d" % int(draw.expovariate(0.15)))
        rows["tags"].append(None if draw.random() < 0.05 else
                            [draw.choice([None, "t%d" % int(draw.expovariate(0.3))]) if draw.random() < 0.1
                             else "t%d" % int(draw.expovariate(0.3)) for _ in range(draw.randrange(5))])
        rows["codes"].append([draw.choice([1.5, 2.0, math.nan]) for _ in range(draw.randrange(4))])
        rows["text"].append(None if draw.random() < 0.05 else draw.choice(TEXTS))
        rows["label"].append(None if draw.random() < 0.05 else draw.random() < 0.3)
        rows["score"].append(draw.gauss(50, 20))
    return rows


def write(path, rows, types=TYPES):
    items = ", ".join(f"unnest(CAST(? AS {types[name]}[])) AS {name}" for name in rows)
    duckdb.connect().execute(f"COPY (SELECT {items}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)", list(rows.values()))
    return path


COLUMNS = {
    "last": "column(amount) | lag(1, by=user, order=[ts, id])",
    "third": "column(word) | lag(3, by=user, order=[ts, id]) | vocab",
    "before": "column(ts) | lag(by=[user, label], order=[ts, id])",
    "series": "column(amount) | lag(2, order=[ts, id]) | standardize",
    **{f"{what}_rows": f"column(amount) | rolling({what}, 5, by=user, order=[ts, id])"
       for what in ("mean", "sum", "min", "max", "count", "std")},
    **{f"{what}_time": f"column(amount) | rolling({what}, 3d, by=user, order=ts)"
       for what in ("mean", "sum", "min", "max", "count", "std")},
    "with_self": "column(amount) | rolling(sum, 4, by=user, order=[ts, id], current=true)",
    "with_now": "column(amount) | rolling(sum, 36h, by=user, order=ts, current=true) | standardize",
    "word": "rare(min_count=30)",
    "named": "column(word) | rare(40, other='the rest') | onehot",
    "mean_label": "column(word) | target(label)",
    "mean_score": "column(word) | target(score, folds=3, smoothing=0, key=id) | standardize",
    "tags": "multihot(max_size=6)",
    "tag_ids": "column(tags) | vocab(min_count=20)",
    "codes": "vocab",
    "tag_hash": "column(tags) | hash(100)",
    "text": "tokenize | vocab(max_size=9) | pad(5)",
    "pairs": "column(text) | tokenize(ngrams=2, shorter=true) | vocab",
    "letters": "column(text) | tokenize(char, ngrams=3) | hash(1000)",
    "bag": "column(text) | tokenize | multihot",
    "kept": "column(tags) | keep",
    "label": "keep",
}


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def fitted(build, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    table = write(folder / "table.parquet", rows)
    done = run(build, "features", table, "--columns", text_of(COLUMNS), "--split", SPLIT, "-o", folder / "out")
    assert done.stdout.startswith(f"{ROWS} rows, {len(COLUMNS)} features; train ")
    return folder


@pytest.fixture(scope="module")
def result(fitted):
    return read(fitted / "out" / "features.parquet")


def part(user):
    return split_of("" if user is None else user)


def trained(rows):
    parts = {user: part(user) for user in set(rows["user"])}
    return [i for i in range(len(rows["id"])) if parts[rows["user"][i]] == "train"]


# ---- earlier rows ----

def earlier(rows, by, order):
    """For each row, the rows of its group that are before it, in order; None: it has no group."""
    groups, found = {}, [None] * len(rows["id"])
    places = list(zip(*(rows[name] for name in order)))
    for i, place in enumerate(places):
        group = tuple(rows[name][i] for name in by)
        if None not in group and None not in place:
            groups.setdefault(group, []).append(i)
    for members in groups.values():
        members.sort(key=places.__getitem__)
        sorted_places = [places[i] for i in members]
        for i in members:
            found[i] = members[:bisect.bisect_left(sorted_places, places[i])]
    return found


def lagged(rows, name, n, by, order):
    return [rows[name][k[-n]] if k and len(k) >= n else None for k in earlier(rows, by, order)]


def test_lag_is_the_value_of_an_earlier_row(rows, result):
    clean = {**rows, "amount": [None if missing(x) else x for x in rows["amount"]]}
    assert_same({"x": result["last"]}, {"x": lagged(clean, "amount", 1, ["user"], ["ts", "id"])})
    assert result["before"] == lagged(rows, "ts", 1, ["user", "label"], ["ts", "id"])
    third = lagged(rows, "word", 3, ["user"], ["ts", "id"])
    assert [x is None for x in third] == [x == 1 for x in result["third"]]
    series = lagged(clean, "amount", 2, [], ["ts", "id"])
    train = [series[i] for i in trained(rows) if not missing(series[i]) and math.isfinite(series[i])]
    mean = math.fsum(train) / len(train)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in train) / len(train))
    for a, b in zip(result["series"], series):
        assert (a is None) == (b is None) and (a is None or a == pytest.approx((b - mean) / deviation, rel=1e-12))


def statistic(what, values):
    values = [x for x in values if not missing(x) and math.isfinite(x)]
    if what in ("sum", "count"):
        return math.fsum(values) if what == "sum" else len(values)
    if not values:
        return None
    return {"mean": lambda: math.fsum(values) / len(values), "min": lambda: min(values), "max": lambda: max(values),
            "std": lambda: statistics.pstdev(values)}[what]()


def center_of(rows):
    train = [rows["amount"][i] for i in trained(rows)]
    return statistic("mean", train)


def check_statistics(what, found, expected, values, center=0.0):
    """Sums and means are right but for the rounding of the result; see FEATURES.md for std."""
    for a, b, group in zip(found, expected, values):
        if b is None or what in ("min", "max", "count"):
            assert same(a, b)
        elif what == "std":
            assert a == pytest.approx(b, rel=1e-12, abs=2**-25 * max(abs(x - center) for x in group if math.isfinite(x or 0) and x is not None))
        else:
            assert abs(a - b) <= 2 * math.ulp(b)


@pytest.mark.parametrize("what", ["mean", "sum", "min", "max", "count", "std"])
def test_rolling_over_rows(rows, result, what):
    groups = earlier(rows, ["user"], ["ts", "id"])
    values = [None if k is None else [rows["amount"][j] for j in k[-5:]] for k in groups]
    expected = [None if v is None else statistic(what, v) for v in values]
    check_statistics(what, result[f"{what}_rows"], expected, values, center_of(rows))


@pytest.mark.parametrize("what", ["mean", "sum", "min", "max", "count", "std"])
def test_rolling_over_time_ends_before_the_row(rows, result, what):
    span = datetime.timedelta(days=3)
    groups = earlier(rows, ["user"], ["ts"])
    values = [None if k is None else [rows["amount"][j] for j in k if rows["ts"][j] >= rows["ts"][i] - span]
              for i, k in enumerate(groups)]
    expected = [None if v is None else statistic(what, v) for v in values]
    check_statistics(what, result[f"{what}_time"], expected, values, center_of(rows))


def test_rolling_can_count_the_row_itself(rows, result):
    groups = earlier(rows, ["user"], ["ts", "id"])
    values = [None if k is None else [rows["amount"][j] for j in [*k[-3:], i]] for i, k in enumerate(groups)]
    expected = [None if v is None else statistic("sum", v) for v in values]
    check_statistics("sum", result["with_self"], expected, values)


def test_rolling_over_time_is_that_of_pandas(rows, result):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: rows[name] for name in ("id", "user", "ts", "amount")}).dropna(subset=["user", "ts"])
    frame["amount"] = frame["amount"].replace([math.inf, -math.inf], math.nan)
    frame = frame.sort_values(["ts", "id"], kind="stable").set_index("ts")
    for user, group in frame.groupby("user"):
        found = group["amount"].rolling("3D", closed="left", min_periods=0).count()
        # Rows of the same time are one after the other in pandas; here, none of them is before another.
        distinct = ~group.index.duplicated(keep="first")
        assert list(found[distinct]) == [result["count_time"][i] for i in group["id"][distinct]]


# ---- labels ----

def fold(key, folds):
    text = "" if key is None else str(key)
    return int(hashlib.md5(f"{len(text)}:{text}".encode()).hexdigest()[-15:], 16) % folds


def encode(rows, train, label, folds, smoothing, key):
    """Out-of-fold means for training rows, those of all training rows for others."""
    def mean(word, used):
        labels = [float(rows[label][k]) for k in used if rows[label][k] is not None]
        own = [float(rows[label][k]) for k in used if rows[label][k] is not None and rows["word"][k] == word]
        prior = math.fsum(labels) / len(labels)
        return (math.fsum(own) + smoothing * prior) / (len(own) + smoothing) if own or smoothing else prior

    others = {f: [k for k in train if fold(rows[key][k], folds) != f] for f in range(folds)}
    known, in_train, found = {}, set(train), []
    for i, word in enumerate(rows["word"]):
        f = fold(rows[key][i], folds) if i in in_train else None
        if (word, f) not in known:
            known[word, f] = mean(word, others[f] if f is not None else train)
        found.append(known[word, f])
    return found


def test_target_uses_other_folds_for_training_rows(rows, result):
    train = trained(rows)
    for a, b in zip(result["mean_label"], encode(rows, train, "label", 5, 20, "user")):
        assert a == pytest.approx(b, rel=1e-14)
    raw = encode(rows, train, "score", 3, 0, "id")
    mean = math.fsum(raw[i] for i in train) / len(train)
    deviation = math.sqrt(math.fsum((raw[i] - mean) ** 2 for i in train) / len(train))
    for a, b in zip(result["mean_score"], raw):
        assert a == pytest.approx((b - mean) / deviation, rel=1e-9, abs=1e-12)


def test_the_label_of_a_row_does_not_reach_its_own_feature(build, rows, result, tmp_path):
    i = next(i for i in trained(rows) if rows["word"][i] == "w0" and rows["label"][i] is not None)
    changed = {**rows, "label": [not x if k == i else x for k, x in enumerate(rows["label"])]}
    run(build, "features", write(tmp_path / "t.parquet", changed), "--columns", "mean_label: column(word) | target(label)",
        "--split", SPLIT, "-o", tmp_path / "out")
    found = read(tmp_path / "out" / "features.parquet")["mean_label"]
    assert found[i] == result["mean_label"][i]
    assert sum(a != b for a, b in zip(found, result["mean_label"])) > ROWS / 2  # but those of others


def test_new_rows_get_the_means_that_scikit_learn_has(build, fitted, rows, tmp_path):
    pytest.importorskip("sklearn")
    import numpy as np
    from sklearn.preprocessing import TargetEncoder

    run(build, "apply", fitted / "out", fitted / "table.parquet", "-o", tmp_path / "new.parquet")
    found = read(tmp_path / "new.parquet")["mean_label"]
    train = [i for i in trained(rows) if rows["label"][i] is not None]
    encoder = TargetEncoder(smooth=20.0, target_type="continuous")
    words = np.array([["-" if word is None else word] for word in rows["word"]], dtype=object)
    encoder.fit(words[train], np.array([float(rows["label"][i]) for i in train]))
    for a, b in zip(found, encoder.transform(words)[:, 0]):
        assert a == pytest.approx(b, rel=1e-12)


# ---- categories, lists and texts ----

def vocabulary(values, min_count=1, max_size=10**9):
    counts = {}
    for x in values:
        if x is not None:
            counts[x] = counts.get(x, 0) + 1
    order = sorted(counts, key=lambda x: (-counts[x], x.encode()))
    return {x: i for i, x in enumerate([x for x in order if counts[x] >= min_count][:max_size])}


def items(rows, lists):
    return [x for i in trained(rows) for x in lists[i] or []]


def numbers(known, values):
    return [1] if values is None else [1 if x is None else known[x] + 3 if x in known else 2 for x in values]


def test_rare_values_become_one(rows, result):
    common = vocabulary([rows["word"][i] for i in trained(rows)], 30)
    assert 3 < len(common) < len(set(rows["word"])) - 3
    assert result["word"] == [x if x is None or x in common else "other" for x in rows["word"]]
    assert {sum(x) for x in result["named"]} == {0, 1}
    assert [sum(x) for x in result["named"]] == [int(x is not None) for x in rows["word"]]


def test_lists_of_values(rows, result):
    top = vocabulary(items(rows, rows["tags"]), 1, 6)
    assert result["tags"] == [[int(x in {top.get(t) for t in tags or []}) for x in range(6)] for tags in rows["tags"]]
    known = vocabulary(items(rows, rows["tags"]), 20)
    assert result["tag_ids"] == [numbers(known, tags) for tags in rows["tags"]]
    codes = [[None if math.isnan(x) else str(x) for x in codes] for codes in rows["codes"]]
    known = vocabulary(items(rows, codes))
    assert result["codes"] == [numbers(known, x) for x in codes]
    assert result["tag_hash"] == [[1] if tags is None else
                                  [1 if x is None else 2 + int(hashlib.md5(x.encode()).hexdigest()[:15], 16) % 100 for x in tags]
                                  for tags in rows["tags"]]
    assert result["kept"] == rows["tags"]


def words(text):
    return None if text is None else re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text).lower())


def test_texts_become_tokens(rows, result):
    tokens = [words(text) for text in rows["text"]]
    known = vocabulary(items(rows, tokens), 1, 9)
    assert result["text"] == [(numbers(known, x) + [0] * 5)[:5] for x in tokens]
    everything = vocabulary(items(rows, tokens), 1, 100)
    assert result["bag"] == [[int(w in (x or [])) for w in everything] for x in tokens]
    pairs = [None if x is None else x + [" ".join(p) for p in zip(x, x[1:])] for x in tokens]
    known = vocabulary(items(rows, pairs))
    assert result["pairs"] == [numbers(known, x) for x in pairs]
    plain = [None if x is None else re.sub(r"\s+", " ", unicodedata.normalize("NFC", x).lower()) for x in rows["text"]]
    assert result["letters"] == [[1] if x is None else [2 + int(hashlib.md5(x[i:i + 3].encode()).hexdigest()[:15], 16) % 1000
                                                        for i in range(len(x) - 2)] for x in plain]


# ---- dedupe ----

def kept(rows, by, order, last):
    best = {}
    for i in range(len(rows["id"])):
        key = tuple(rows[name][i] for name in by)
        if None in key:
            key += (i,)
        place = tuple((rows[name][i] is not None) == last if rows[name][i] is None else rows[name][i] for name in order)
        lacks = any(rows[name][i] is None for name in order)
        known = best.get(key)
        if known is None or (known[0] and not lacks) or (known[0] == lacks and (
                lacks and last or not lacks and (place >= known[1] if last else place < known[1]))):
            best[key] = (lacks, place, i)
    return sorted(i for _, _, i in best.values())


@pytest.mark.parametrize("order, keep", [("ts", "last"), ("ts", "first"), (None, "last"), (None, "first")])
def test_dedupe_keeps_one_row_per_key(build, fitted, rows, tmp_path, order, keep):
    rule = f"user, word, keep={keep}" + (f", order={order}" if order else "")
    done = run(build, "features", fitted / "table.parquet", "--columns", "id: keep; amount: impute(mean)", "--split", SPLIT,
               "--dedupe", rule, "-o", tmp_path / "out")
    expected = kept(rows, ["user", "word"], [order] if order else [], keep == "last")
    found = read(tmp_path / "out" / "features.parquet")
    assert found["id"] == expected
    assert f"{len(expected)} rows, 2 features, {ROWS - len(expected)} duplicates dropped" in done.stdout
    train = [rows["amount"][i] for i in expected if part(rows["user"][i]) == "train"]
    train = [x for x in train if not missing(x) and math.isfinite(x)]
    state = json.loads((tmp_path / "out" / "state" / "features.json").read_text())
    assert state["fitted"][0]["values"] == [math.fsum(train) / len(train)]
    run(build, "apply", tmp_path / "out", fitted / "table.parquet", "-o", tmp_path / "again.parquet")
    assert read(tmp_path / "again.parquet")["id"] == expected
    assert leat.features.load(tmp_path / "out").transform(rows, history={})["id"] == expected


# ---- the same everywhere ----

TRAINED = ("mean_label", "mean_score", "split")  # training rows have another value when they are applied


def test_apply_and_python_give_the_same_bits(build, fitted, rows, result, tmp_path):
    run(build, "apply", fitted / "out", fitted / "table.parquet", "-o", tmp_path / "again.parquet")
    again = read(tmp_path / "again.parquet")
    assert_same({n: v for n, v in again.items() if n not in TRAINED}, {n: v for n, v in result.items() if n not in TRAINED})
    others = [i for i in range(ROWS) if result["split"][i] != "train"]
    for name in TRAINED[:2]:
        assert [again[name][i] for i in others] == [result[name][i] for i in others]
        assert again[name] != result[name]
    features = leat.features.load(fitted / "out")
    assert_same(features.transform(rows, history={}), again)
    new = range(ROWS - 40, ROWS)
    for name in ("pandas", "pyarrow"):
        module = pytest.importorskip(name)
        table = module.DataFrame if name == "pandas" else module.table
        columns = ("id", "user", "ts", "amount", "word", "tags", "codes", "text", "label")
        halves = [table({n: v[at] for n, v in rows.items() if n in columns}) for at in (slice(0, new[0]), slice(new[0], ROWS))]
        found = features.transform(halves[1], history=halves[0])
        for column in ("sum_time", "mean_rows", "tags", "text"):
            values = found[column].to_pylist() if name == "pyarrow" else [list(x) if hasattr(x, "__len__") else x for x in found[column]]
            assert [None if missing(x) else x for x in values] == again[column][new[0]:]


def test_one_row_with_its_history_gives_the_same_bits(fitted, rows, result):
    features = leat.features.load(fitted / "out")
    by_place = [i for i in range(0, ROWS, 300)]
    for i in by_place:
        # All rows that come earlier, though in another order, and no later ones: nothing later was read.
        before = [k for k in reversed(range(ROWS)) if rows["ts"][k] is not None and rows["ts"][i] is not None
                  and (rows["ts"][k], k) < (rows["ts"][i], i)]
        one = features.transform({n: [v[i]] for n, v in rows.items()}, history={n: [v[k] for k in before] for n, v in rows.items()})
        assert_same({n: v for n, v in one.items() if n not in TRAINED}, {n: v[i:i + 1] for n, v in result.items() if n not in TRAINED})


def test_a_row_alone_is_refused_if_features_read_others(fitted, rows):
    features = leat.features.load(fitted / "out")
    one = {name: values[:1] for name, values in rows.items()}
    with pytest.raises(leat.InvalidError, match=r"feature 'last' \(lag\) reads other rows .* history="):
        features.transform(one)
    with pytest.raises(leat.InvalidError, match="history has no column 'amount'"):
        features.transform(one, history={"user": [1]})
    with pytest.raises(leat.InvalidError, match="same kind"):
        features.transform(one, history=[1])


def test_target_and_lists_need_no_history(build, fitted, rows, tmp_path):
    columns = {name: COLUMNS[name] for name in ("mean_label", "word", "tags", "text", "pairs", "kept")}
    run(build, "features", fitted / "table.parquet", "--columns", text_of(columns), "--split", SPLIT, "-o", tmp_path / "out")
    run(build, "apply", tmp_path / "out", fitted / "table.parquet", "-o", tmp_path / "all.parquet")
    everything, features = read(tmp_path / "all.parquet"), leat.features.load(tmp_path / "out")
    assert features.inputs == ["word", "tags", "text"]
    for i in range(0, 60):
        one = features.transform({name: [rows[name][i]] for name in ("word", "tags", "text")})
        assert_same(one, {name: [values[i]] for name, values in everything.items()})


def test_threads_do_not_change_a_byte(build, tmp_path):
    table = tmp_path / "table.parquet"
    duckdb.connect().execute(f"""COPY (SELECT i AS id, i * 7919 % 3001 AS user, TIMESTAMP '2024-01-01' + INTERVAL (i * 31 % 250000) MINUTE AS ts,
        sin(i) * exp(i % 30) AS amount, 'w' || (i * i % 1009) AS word, cos(i) AS label FROM range(130000) t(i)) TO '{table}' (FORMAT parquet)""")
    columns = ("a: column(amount) | rolling(mean, 30d, by=user, order=ts) | standardize; s: column(amount) | "
               "rolling(std, 9, by=user, order=[ts, id]); l: column(amount) | lag(by=user, order=[ts, id]); word: target(label)")
    found = []
    for threads in (1, 2, 4):
        out = tmp_path / f"out{threads}"
        run(build, "features", table, "--columns", columns, "--split", SPLIT, "--dedupe", "user, word, order=ts, keep=last",
            "-o", out, "--threads", threads)
        found.append(files_of(out))
    assert found[0] == found[1] == found[2]


def test_values_of_other_parts_change_no_state(build, fitted, rows, tmp_path):
    planted = {name: list(values) for name, values in rows.items()}
    for i, user in enumerate(rows["user"]):
        if part(user) != "train":
            planted["amount"][i], planted["word"][i], planted["tags"][i] = 1e18, "planted", ["planted"] * 50
            planted["text"][i], planted["label"][i], planted["score"][i] = "planted planted", True, 1e9
    columns = {name: chain for name, chain in COLUMNS.items() if name not in ("series",)}  # one series for all users
    for name, table in (("was", rows), ("now", planted)):
        run(build, "features", write(tmp_path / f"{name}.parquet", table), "--columns", text_of(columns), "--split", SPLIT,
            "-o", tmp_path / name)
    assert files_of(tmp_path / "was" / "state") == files_of(tmp_path / "now" / "state")


# ---- mistakes ----

@pytest.mark.parametrize("columns, message", [
    ("amount: lag(by=user, order=word)", "feature 'amount': 'lag' needs rows of a group in an order, but two have the same"),
    ("amount: rolling(mean, 3, by=user, order=[word])", "'rolling' needs rows of a group in an order, but two have the same"),
    ("amount: lag(by=usr, order=ts)", "the table has no column 'usr', did you mean 'user'?"),
    ("amount: rolling(mean, 7d, by=user, order=id)", "'rolling' over a time needs a time as its order, but 'id' is none"),
    ("word: target(label)", "feature 'word': 'target' needs key=COLUMN"),
    ("word: target(tags, key=id)", "the label 'tags' is not a number"),
    ("word: target(label, key=text, folds=2) | lag", "'lag'"),
    ("word: multihot", "'multihot' needs a list, but what it gets is a text"),
    ("tags: onehot", "'onehot' needs a text, but what it gets is a list"),
    ("text: tokenize | pad(3)", "'pad' needs a list of numbers"),
])
def test_mistakes_are_explained(build, fitted, tmp_path, columns, message):
    done = run(build, "features", fitted / "table.parquet", "--columns", columns, "-o", tmp_path / "out", check=False)
    assert done.returncode != 0 and message in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


def test_groups_that_cross_parts_are_warned_of(build, fitted, tmp_path):
    columns = "amount: lag(by=word, order=[ts, id])"
    done = run(build, "features", fitted / "table.parquet", "--columns", columns, "--split", SPLIT, "-o", tmp_path / "a")
    assert "a group may be in several parts of the split" in done.stderr
    for i, (by, split) in enumerate([("user", SPLIT), ("word", "ts: train before '2024-01-15', test rest")]):
        columns = f"amount: lag(by={by}, order=[ts, id])"
        done = run(build, "features", fitted / "table.parquet", "--columns", columns, "--split", split, "-o", tmp_path / str(i))
        assert done.stderr == ""


# ---- steps ----

PROJECT = """
sources:
  events: events.parquet
steps:
  clean: {sql: SELECT * FROM events WHERE id < 2000, key: id}
  feats:
    features: clean
    split: {by: user, train: 80%%, test: 20%%}
    dedupe: {by: [user, word], order: ts, keep: %s}
    columns:
      spent: column(amount) | rolling(sum, %s, by=user, order=ts)
      word: target(label)
"""


def test_a_step_with_groups_runs_again_when_they_change(build, rows, tmp_path):
    write(tmp_path / "events.parquet", rows)
    for keep, window, expected in [("last", "7d", ["clean", "feats"]), ("last", "7d", []), ("last", "8d", ["feats"]),
                                   ("first", "8d", ["feats"]), ("last", "8d", [])]:
        (tmp_path / "leat.yaml").write_text(PROJECT % (keep, window))
        assert ran(build, tmp_path) == expected
    (tmp_path / "leat.yaml").write_text((PROJECT % ("last", "8d")).replace("keep: last", "kep: last"))
    done = run(build, "status", cwd=tmp_path, check=False)
    assert done.returncode != 0 and "dedupe has no key 'kep'" in done.stderr


@pytest.mark.parametrize("change", [{"groups": [1]}, {"qualify": [1]}, {"qualify": "x"}, {"groups": [{"feature": 1, "transform": "x"}]},
                                    {"fitted": [{"dictionary": "x", "entries": 1, "lookup": "x FROM y"}]}])
def test_python_refuses_hostile_states(fitted, tmp_path, change):
    import shutil

    shutil.copytree(fitted / "out" / "state", tmp_path / "state")
    path = tmp_path / "state" / "features.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(leat.DataError):
        leat.features.load(tmp_path / "state")
