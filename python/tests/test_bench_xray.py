"""bench/xray/run makes its table, traces and pictures; full size is left to `make bench-xray`."""
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("PIL.Image")


@pytest.mark.skipif(not shutil.which("nginx"), reason="there is no nginx")
@pytest.mark.parametrize("words", [("remote", "plain", "PyTorch"), ("local", "Lightning", "Leat")], ids="-".join)
def test_a_small_run(root, build, words):
    work = build / "bench/xray"
    only = [part for word in ("stand-in", *words) for part in ("--only", word)]
    done = subprocess.run([sys.executable, root / "bench/xray/run", build, "--python", sys.executable, "--images", "32",
                           "--batch", "8", "--epochs", "2", "--workers", "2", "--latency", "20", "--step-ms", "5", *only],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
    assert done.returncode == 0, done.stdout
    row = re.search(r"^\| (\w+) \| (\w+) \| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", done.stdout, re.MULTILINE)
    assert row.groups()[:3] == words and float(row[5]) > 0
    if words[0] == "remote":  # 16 samples of each worker at 20 ms, one after another
        assert float(row[4]) > 2 * 16 * 0.02 and float(row[6]) > 50
    name = work / "runs" / "-".join(("stand-in", *words)).lower()
    tags = [event.get("cat") for event in json.loads(name.with_suffix(".trace.json").read_text())]
    assert tags.count("run batch") == 8
    picture = xml.etree.ElementTree.parse(name.with_suffix(".svg")).getroot()
    assert sum(one.get("fill") == "#2e7d6b" for one in picture.iter("{http://www.w3.org/2000/svg}rect")) == 8
    assert json.loads((work / "results.jsonl").read_text().splitlines()[-1])["runs"][0]["images"] == 64
