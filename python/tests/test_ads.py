"""examples/ads: every planted error is found, no good row is lost, and only what changed runs; the small size."""
import gzip
import json
import os
import pathlib
import subprocess
import sys

import pytest

import leat

duckdb = pytest.importorskip("duckdb")

PATH = str(pathlib.Path(sys.executable).parent)
ROWS = 20_000


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
    assert reasons == {"kept": ROWS, **{kind: len(planted(truth, [kind]))
                                        for kind in ("null key", "orphan", "out of range", "duplicate")}}
    assert sum(reasons.values()) == truth["records"]["events"] - len(planted(truth, naive.UNREADABLE))


def test_the_joined_table_is_that_of_plain_loops(project, build, truth, naive):
    names, found = rows(build("joined").path("joined"))
    wanted = list(naive.joined(project / "raw", truth))
    assert names == list(wanted[0])
    assert len(found) == len(wanted) == ROWS
    for row, other in zip(found, wanted):
        assert row == tuple(other.values())


def test_features_are_fitted_on_training_rows_and_shards_hold_each_row_once(build):
    done = build()
    names, joined = rows(done.path("joined"))
    users = {row[names.index("event")]: row[names.index("user")] for row in joined}
    assert len(users) == ROWS
    names, features = rows(done.path("features") / "features.parquet")
    training = [row for row in features if row[names.index("split")] == "train"]
    for name in ("dwell_ms", "price", "since_last", "age"):
        values = [row[names.index(name)] for row in training]
        mean = sum(values) / len(values)
        assert abs(mean) < 1e-9 and abs(sum((value - mean) ** 2 for value in values) / len(values) - 1) < 1e-9
    counts = {}
    for part in ("train", "test"):
        feed = leat.tfrecord(done.path(f"{part}_shards") / "*.tfrecord").example(bought=int).batch(1000).feed()
        counts[part] = sum(batch.count for batch in feed), sum(int(batch["bought"].sum()) for batch in feed)
    assert counts["train"][0] == len(training) and counts["train"][0] + counts["test"][0] == ROWS
    assert counts["train"][1] + counts["test"][1] == sum(row[-1] for row in joined)


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
