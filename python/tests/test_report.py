"""Reports: a closed feed leaves one page with its figures and its timeline."""
import json
import logging
import re

import pytest

import leat


def data(path, name):
    """The JSON that a page has under a name."""
    text = path.read_text(encoding="utf-8")
    found = re.search(rf'<script type="application/json" id="leat-{name}">(.*?)</script>', text, re.S)
    return found and json.loads(found[1])


def test_a_feed_writes_its_report_when_it_is_closed(images, tmp_path):
    path = tmp_path / "run.html"
    feed = images.shuffle().batch(16).feed(epochs=2, report=path)
    for _ in range(2):
        for batch in feed:
            batch["image"].sum()
    assert not path.exists()
    stats = feed.stats()
    feed.close()
    run, timeline = data(path, "run"), data(path, "timeline")
    assert run["samples"] == stats["samples"] == 400
    assert run["spec"].startswith("tfrecord(") and run["bad"] == []
    assert timeline["spans"] > 0 and timeline["dropped"] == 0
    batches = sum(row["count"] for lane in timeline["lanes"] for row in lane["rows"]
                  if timeline["tags"][row["tag"]] == "run batch")
    assert batches == stats["batches"]


def test_a_report_without_a_call_of_close(images, tmp_path, python):
    path = tmp_path / "run.html"
    python("import leat, sys; feed = leat.pipeline(sys.argv[1]).feed(epochs=1, report=sys.argv[2]); list(feed)",
           images.batch(16).spec, path)
    assert data(path, "run")["samples"] == 200


def test_a_recorder_of_the_program_writes_reports_while_it_records(numbers, tmp_path):
    path = tmp_path / "run.html"
    with leat.Recorder(timeline=True) as recorder:
        lane = recorder.lane("<b>device</b>")
        with numbers.batch(10).feed(epochs=1, trace=recorder) as feed:
            for number, _ in enumerate(feed):
                with recorder.measure(lane, "to device", number):
                    pass
            recorder.report(path, {**feed.stats(), "sentence": "</script><script>alert(1)</script>"})
    assert data(path, "run")["sentence"] == "</script><script>alert(1)</script>"
    lanes = {lane["name"]: lane for lane in data(path, "timeline")["lanes"]}
    assert sum(row["count"] for row in lanes["<b>device</b>"]["rows"]) == 10
    assert "<b>device" not in path.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written(numbers, tmp_path, caplog):
    with pytest.raises(leat.errors.InvalidError, match="there is no folder"):
        numbers.batch(10).feed(report=tmp_path / "none" / "run.html")
    folder = tmp_path / "later"
    folder.mkdir()
    feed = numbers.batch(10).feed(report=folder / "run.html")
    next(iter(feed))
    folder.rmdir()
    with caplog.at_level(logging.WARNING, "leat"):
        feed.close()
    assert "cannot write the report" in caplog.text


def test_figures_must_be_json(tmp_path):
    with leat.Recorder(samplers=False) as recorder:
        with pytest.raises(ValueError):
            recorder.report(tmp_path / "run.html", {"rate": float("nan")})
    assert not (tmp_path / "run.html").exists()
