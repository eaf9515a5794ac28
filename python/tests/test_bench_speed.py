"""bench/speed makes a table, a picture and the section of README.md from results of other benchmarks."""
import json
import subprocess
import sys
import xml.etree.ElementTree

import pytest


def image_figures(rate, cpu_us):
    return {"images_per_s": {"median": rate}, "cpu_s_per_image": {"median": cpu_us / 1e6}}


@pytest.fixture
def results(tmp_path):
    """A build folder with results, and a copy of what is written."""
    for folder in "bench/results", "bench/rows", "docs/images":
        (tmp_path / folder).mkdir(parents=True)
    photos = {"leat": image_figures(3000, 700), "leat, decode only": image_figures(9000, 1),
              "torch_cv, 0 workers": image_figures(500, 2000), "torch_cv, 2 workers": image_figures(600, 3000)}
    save_images(tmp_path, photos, turns=9)
    tokens = {"Leat from Python, 2 threads": [{"rate": r, "cpu_us": 1.0} for r in (1, 9e5, 9e9)],
              "NumPy": [{"rate": 1e6, "cpu_us": 0.5}] * 3}
    run = {"smoke": False, "rounds": 3, "figures": {"tokens": tokens}}
    smoke = {"smoke": True, "rounds": 3, "figures": {"tokens": {}}}
    (tmp_path / "bench/rows/results.jsonl").write_text(json.dumps(run) + "\n" + json.dumps(smoke) + "\n")
    (tmp_path / "README.md").write_text("# Leat\n\n## What overlap gains\n\nold\n\n## Status\n\nrest\n")
    return tmp_path


def save_images(build, contenders, turns):
    (build / "bench/results/images.json").write_text(json.dumps({"turns": turns,
                                                                 "cases": {"photos": {"contenders": contenders}}}))


def speed(root, build, *more):
    return subprocess.run([sys.executable, root / "bench/speed", build, *more], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def test_the_best_of_each_loader_is_shown(root, results):
    done = speed(root, results)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[2:] == [
        "| photos: decode, crop, resize, normalize | **Leat** | 3,000 | 700 |  |  |",
        "|  | DataLoader, OpenCV | 600 | 3,000 | 5 | 4.29 |",
        "| windows of 1,024 tokens, shuffled | NumPy | 1,000,000 | 0.5 | 0.9 | 0.5 |",
        "|  | **Leat** | 900,000 | 1 |  |  |"]
    picture = xml.etree.ElementTree.parse(results / "bench/speed.svg").getroot()
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}rect"))) == 1 + 2 * 4


def test_the_section_is_written_and_renewed(root, results):
    for _ in range(2):
        assert speed(root, results, "--write", "--root", results).returncode == 0
        page = (results / "README.md").read_text()
        assert page.count("## ") == 2 and page.count("| **Leat** | 3,000 |") == 1 and "old" not in page
        assert page.endswith("\n\n## Status\n\nrest\n")
    assert (results / "docs/images/speed.svg").exists()


def test_a_short_look_is_not_shown(root, results):
    save_images(results, {"leat": image_figures(1, 1), "dali": image_figures(1, 1)}, turns=1)
    assert "photos" not in speed(root, results).stdout
    (results / "bench/rows/results.jsonl").unlink()
    done = speed(root, results)
    assert done.returncode == 1 and "there are no results" in done.stdout
