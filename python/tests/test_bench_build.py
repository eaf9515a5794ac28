"""bench/build/run makes its table and picture; the peers and full size are left to `make bench-build`."""
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

pytest.importorskip("matplotlib")


def test_a_small_run(root, build):
    work = build / "bench/build"
    done = subprocess.run([sys.executable, root / "bench/build/run", build, "echo", "--count", "8", "--rounds", "2", "--venv",
                           pathlib.Path(sys.executable).parents[1], "--only", "Leat", "--only", "bare"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\| bare posix_spawn \| [\d.e-]+ \(", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^\| ms per action over the bare spawn \| [\d.e-]+ \| at most 1.5 \| (reached|missed) \|$", done.stdout,
                     re.MULTILINE), done.stdout
    figures = json.loads((work / "results.jsonl").read_text().splitlines()[-1])["figures"]
    assert len(figures["echo"]["cold"]["Leat"]) == 2 and figures["echo"]["count"] == 8
    assert xml.etree.ElementTree.parse(work / "results.svg").getroot().tag.endswith("svg")
