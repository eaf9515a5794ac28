"""examples/ads: every planted error is found, no good row is lost, and only what changed runs; the small size."""
import collections
import datetime
import gzip
import hashlib
import json
import math
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys

import pytest

import leat

duckdb = pytest.importorskip("duckdb")

PATH = str(pathlib.Path(sys.executable).parent)
ROWS = 20_000
WRONG = ("null key", "orphan", "out of range", "late", "duplicate")  # events that can be read, and must not be used


def generate(root, folder, *options):
    command = [sys.executable, root / "examples/ads/generate.py", folder, "--rows", ROWS, *options]
    subprocess.run([str(word) for word in command], check=True)


@pytest.fixture(scope="module")
def project(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ads")
    generate(root, folder)
    return folder


@pytest.fixture(scope="module")
def truth(project):
    return json.loads((project / "raw/truth.json").read_text())


@pytest.fixture
def naive(root, monkeypatch):
    import importlib

    monkeypatch.syspath_prepend(str(root / "examples/ads"))
    return importlib.import_module("naive")


@pytest.fixture
def build(project, monkeypatch):
    """Builds with the interpreter of the tests."""
    monkeypatch.setenv("PATH", PATH + os.pathsep + os.environ["PATH"])
    return lambda *targets, folder=project: leat.build(folder, targets)


def ran(build):
    return {name: counts.ran + counts.same for name, counts in build.steps.items() if counts.ran + counts.same}


def rows(path):
    """Names and rows of a Parquet file."""
    found = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)])
    return [column[0] for column in found.description], found.fetchall()


def loaded(build, source):
    """The folders that loading a source made, one for each file."""
    return sorted(path.parent for path in build.path(source).rglob("counts.json"))


def planted(truth, kinds):
    return {(name, line) for name, found in truth["planted"].items() for kind in kinds for line in found[kind]}


def test_the_generator_gives_the_same_bytes_again(root, project, tmp_path):
    generate(root, tmp_path)
    for path in (project / "raw").iterdir():
        assert path.read_bytes() == (tmp_path / "raw" / path.name).read_bytes(), path.name


def test_the_truth_names_the_lines_that_are_bad(project, truth):
    for name, found in truth["planted"].items():
        lines = gzip.decompress((project / "raw" / name).read_bytes()).split(b"\n")
        for kind, numbers in found.items():
            for number in numbers:
                line = lines[number - 1]
                if kind == "null key":
                    assert line.startswith(b",")
                elif kind == "wrong columns":
                    assert line.count(b",") != 7
                elif kind == "bad utf-8":
                    with pytest.raises(UnicodeDecodeError):
                        line.decode()
                elif kind == "broken quote":
                    assert line.count(b'"') in (1, 2)
                elif kind == "duplicate":
                    assert lines.count(line) > 1


def test_rejected_records_are_exactly_the_planted_ones(build, truth, naive):
    done = build("clean")
    found = set()
    for folder in loaded(done, "events"):
        for line in (folder / "rejects.jsonl").read_text().splitlines():
            reject = json.loads(line)
            found.add((pathlib.Path(reject["file"]).name, reject["line"]))
    assert found == planted(truth, naive.UNREADABLE)


def values(line):
    """The fields of a line of events without quotes, as they are in the table."""
    event, session, product, campaign, ts, position, dwell, query = line.decode().split(",")
    return (int(event) if event else None, int(session), int(product), campaign or None,
            datetime.datetime.fromisoformat(ts), int(position), float(dwell), query or None)


def test_events_that_are_left_out_are_exactly_the_planted_ones(project, build, truth):
    found = {kind: [] for kind in WRONG}
    for reason, _, *row in rows(build("rejected").path("rejected"))[1]:
        found[reason].append(tuple(row))
    wanted = {kind: [] for kind in WRONG}
    for name, lines_of in truth["planted"].items():
        lines = gzip.decompress((project / "raw" / name).read_bytes()).split(b"\n")
        for kind in WRONG:
            wanted[kind] += [values(lines[number - 1]) for number in lines_of[kind]]
    for kind in WRONG:
        assert wanted[kind] and sorted(found[kind], key=repr) == sorted(wanted[kind], key=repr), kind


def test_counts_add_up(build, truth, naive):
    done = build("joined", "audit")
    for source in truth["records"]:
        if source == "users":
            continue  # Parquet
        counts = [json.loads((folder / "counts.json").read_text()) for folder in loaded(done, source)]
        read, kept, rejected = (sum(one[name] for one in counts) for name in ("read", "kept", "rejected"))
        assert read == kept + rejected == truth["records"][source]
        assert rejected == (len(planted(truth, naive.UNREADABLE)) if source == "events" else 0)
    reasons = dict(rows(done.path("audit"))[1])
    assert reasons == {"kept": ROWS, **{kind: len(planted(truth, [kind])) for kind in WRONG}}
    assert sum(reasons.values()) == truth["records"]["events"] - len(planted(truth, naive.UNREADABLE))


def test_the_tidied_campaigns_are_those_of_plain_loops(project, build, naive):
    names, found = rows(build("campaign").path("campaign"))
    assert names == ["campaign", "channel", "budget", "first_day"]
    wanted = naive.campaigns(project / "raw")
    assert [row[0] for row in found] == sorted(wanted)
    for name, channel, budget, day in found:
        assert wanted[name] == {"channel": channel, "budget": None if budget is None else float(budget), "first_day": day}


def test_clean_events_are_those_of_plain_loops(project, build, truth, naive):
    names, found = rows(build("clean").path("clean"))
    sessions = {int(row["session"]) for row in naive.records(project / "raw", "sessions.csv")}
    kept, reasons = naive.clean(project / "raw", truth, sessions)
    wanted = [(int(row["event"]), int(row["session"]), int(row["product"]), row["campaign"] or None, naive.moment(row["ts"]),
               int(row["position"]), round(float(row["dwell"]) * 1000), row["query"]) for row in kept]
    assert found == sorted(wanted) and len(found) == reasons["kept"] == ROWS


def test_the_joined_table_is_that_of_plain_loops(project, build, truth, naive):
    names, found = rows(build("joined").path("joined"))
    wanted = list(naive.joined(project / "raw", truth))
    assert names == list(wanted[0])
    assert len(found) == len(wanted) == ROWS
    for row, other in zip(found, wanted):
        assert row == tuple(other.values())


class Plain:
    """Transforms of columns by plain Python, fitted on the training rows."""

    def __init__(self, table, training):
        self.table, self.training = table, training

    def fit(self, values):
        return [value for value, of_it in zip(values, self.training) if of_it and value is not None]

    def standardize(self, values):
        fit = self.fit(values)
        mean = math.fsum(fit) / len(fit)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in fit) / len(fit))
        return [None if value is None else (value - mean) / deviation for value in values]

    def clip(self, values, low, share):
        fit = sorted(self.fit(values))
        at = share * (len(fit) - 1)
        below, above = fit[math.floor(at)], fit[math.ceil(at)]
        return [min(max(value, low), below + (above - below) * (at - math.floor(at))) for value in values]

    def impute(self, values, value=None):
        value = statistics.median(self.fit(values)) if value is None else value
        return [value if one is None else one for one in values]

    def log1p(self, values):
        return [None if value is None else math.log1p(value) for value in values]

    def vocab(self, values, size=10**6):
        counted = sorted(collections.Counter(self.fit(values)).items(), key=lambda item: (-item[1], item[0]))
        numbers = {value: number for number, (value, _) in enumerate(counted[:size], 3)}
        return [1 if value is None else numbers.get(value, 2) for value in values]

    def features(self):
        """What leat.yaml says, once more."""
        t, std, log = self.table, self.standardize, self.log1p
        return {
            **{name: t[name] for name in ("event", "bought")},
            **{name: std(t[name]) for name in ("position", "query_words", "account_days", "price_level", "visitors", "degrees")},
            **{name: std(log(t[name])) for name in ("user_events", "session_events", "price")},
            "dwell_ms": std(log(self.clip(t["dwell_ms"], 0, 0.99))), "since_last": std(self.impute(log(t["since_last"]))),
            "age": std(self.impute(t["age"])), "budget": std(log(self.impute(t["budget"], 0))),
            "campaign_days": std(self.impute(t["campaign_days"], 0)),
            **{name: self.vocab(t[name]) for name in ("hour", "weekday", "device", "country", "plan", "category", "channel")},
            "brand": self.vocab(t["brand"], 100)}


def columns(path):
    names, found = rows(path)
    return dict(zip(names, map(list, zip(*found))))


def close(one, other):
    return one == other or isinstance(one, float) and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def test_features_are_those_of_plain_python_fitted_on_training_users(build):
    done = build()
    joined, found = columns(done.path("joined")), columns(done.path("features") / "features.parquet")
    digests = [int(hashlib.md5(str(user).encode()).hexdigest(), 16) for user in joined["user"]]
    training = [digest < 0.8 * 16**32 for digest in digests]
    assert [part == "train" for part in found.pop("split")] == training and 0.7 < sum(training) / ROWS < 0.9
    wanted = Plain(joined, training).features()
    assert sorted(found) == sorted(wanted)
    for name, values in wanted.items():
        assert all(map(close, found[name], values)), name


def test_shards_hold_each_row_of_their_part_once_with_all_columns(build):
    done = build()
    names, features = rows(done.path("features") / "features.parquet")
    for part in ("train", "test"):
        wanted = {row[0]: row[:-1] for row in features if row[-1] == part}
        assert rows(done.path(f"{part}_rows"))[1] == [wanted[event] for event in sorted(wanted)]
        kinds = {name: float if isinstance(value, float) else int for name, value in zip(names[:-1], features[0])}
        feed = leat.tfrecord(done.path(f"{part}_shards") / "*.tfrecord").example(**kinds).batch(1000).feed()
        found = [row for batch in feed for row in zip(*(batch[name].tolist() for name in kinds))]
        assert len(found) == len(wanted) and {row[0] for row in found} == wanted.keys()
        for row in found:  # doubles are rounded to 32 bits
            assert row == tuple(struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value
                                for value in wanted[row[0]])
        assert part == "test" or [row[0] for row in found] != sorted(wanted)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_the_joined_table_is_that_of_other_libraries(root, tmp_path, build, library):
    """On files whose errors are in values: what a broken quote spoils, libraries disagree on."""
    pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    generate(root, tmp_path, "--errors", "values")
    ours, other = build("joined", folder=tmp_path).path("joined"), tmp_path / "other.parquet"
    bench = root / "bench/prepare"
    subprocess.run([sys.executable, bench / f"peers/{library}_tables.py", tmp_path / "raw", other], check=True)
    same = subprocess.run([sys.executable, bench / "same.py", ours, other], check=True, stdout=subprocess.PIPE).stdout
    assert json.loads(same) == {"rows": ROWS, "other_rows": ROWS, "only_one": 0, "only_other": 0}


def digests(folder):
    """{path: SHA-256} of all results."""
    paths = [pathlib.Path(at, name) for at, _, names in os.walk(folder, followlinks=True) for name in names]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_two_cold_builds_give_the_same_bytes_for_one_and_two_threads(project, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", PATH + os.pathsep + os.environ["PATH"])
    found = []
    for threads in (1, 2):
        folder = tmp_path / str(threads)
        shutil.copytree(project, folder, ignore=shutil.ignore_patterns("out", ".leat"))
        leat.build(folder, (), jobs=threads)
        found.append(digests(folder / "out"))
    assert len(found[0]) > 40 and found[0] == found[1]


def test_the_model_learns(build):
    metrics = json.loads(build().path("train").read_text())
    assert metrics["auc"] > 0.7 and metrics["test_rows"] > 0.1 * ROWS


def test_nothing_runs_twice(build):
    build()
    assert ran(build()) == {}


def test_a_feature_reruns_features_and_what_follows(project, build):
    build()
    path = project / "leat.yaml"
    text = path.read_text()
    changed = text.replace("price: log1p | standardize", "price: standardize")
    assert changed != text
    path.write_text(changed)
    assert set(ran(build())) == {"features", "train_rows", "test_rows", "train_shards", "test_shards", "train"}
    path.write_text(text)
    assert ran(build()) == {}


def test_a_new_file_of_events_is_loaded_alone(project, build):
    build()
    raw = project / "raw"
    (raw / "events-90.csv.gz").write_bytes((raw / "events-00.csv.gz").read_bytes())
    try:
        again = build("joined")
        assert ran(again)["events"] == 1 and ran(again)["clean"] == 1
        assert "joined" not in ran(again)  # all of its rows are duplicates
    finally:
        (raw / "events-90.csv.gz").unlink()


def test_a_truncated_file_fails_with_its_name(root, tmp_path, build):
    generate(root, tmp_path, "--truncate")
    with pytest.raises(leat.BuildError, match="events-03.csv.gz"):
        build("clean", folder=tmp_path)


def test_a_truncated_parquet_file_fails_with_its_name(project, tmp_path, build):
    shutil.copytree(project, tmp_path, ignore=shutil.ignore_patterns("out", ".leat"), dirs_exist_ok=True)
    path = tmp_path / "raw/users.parquet"
    path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
    with pytest.raises(leat.BuildError, match="users"):
        build("joined", folder=tmp_path)
