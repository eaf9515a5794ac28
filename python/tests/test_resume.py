"""Checkpoints across changes: of the batch size, of augmentations, of the data, of the process."""
from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import leat


def positions(feed, epoch):
    return [int(p) for batch in feed if batch.epoch == epoch for p in batch.positions[batch.valid]]


def test_another_batch_size_goes_on_at_the_next_sample(images):
    with images.shuffle().batch(32).feed(seed=3) as feed:
        seen = [next(iter(feed)) for _ in range(2)]
        state = feed.state_dict()
    with images.shuffle().batch(25).feed() as feed:
        with pytest.raises(leat.MismatchError, match="strict=False"):
            feed.load_state_dict(state)
        with pytest.warns(UserWarning, match=r"resumed with changes: batch\(size=32.* became batch\(size=25"):
            feed.load_state_dict(state, strict=False)
        assert (feed.epoch, feed.position, feed.seed) == (0, 64, 3)
        rest = np.concatenate([batch["label"].copy() for batch in feed])
    with images.shuffle().batch(200).feed(seed=3) as feed:
        whole = next(iter(feed))["label"].copy()
    assert np.array_equal(np.concatenate([seen[0]["label"], seen[1]["label"], rest]), whole)


def test_other_augmentations_keep_the_order(images):
    with images.shuffle().batch(50).feed(seed=3) as feed:
        next(iter(feed))
        state = feed.state_dict()
    with images.random_flip().shuffle().batch(50).feed() as feed:
        with pytest.warns(UserWarning, match=r"new: random_flip"):
            feed.load_state_dict(state, strict=False)
        assert positions(feed, 0) == list(range(50, 200))


def test_an_unchanged_pipeline_does_not_warn(images, recwarn):
    with images.batch(50).feed() as feed:
        next(iter(feed))
        feed.load_state_dict(feed.state_dict(), strict=False)
        assert feed.position == 50
    assert not recwarn.list


@pytest.mark.parametrize("change", ["shuffle", "data"])
def test_another_order_is_refused_even_if_not_strict(images, numbers, change):
    with images.shuffle().batch(50).feed() as feed:
        state = feed.state_dict()
    other = images.batch(50) if change == "shuffle" else numbers.shuffle().batch(50)
    with other.feed() as feed:
        with pytest.raises(leat.MismatchError) as strict:
            feed.load_state_dict(state)
        assert "strict=False" not in str(strict.value)
        with pytest.raises(leat.MismatchError, match="order of samples"):
            feed.load_state_dict(state, strict=False)


def test_a_full_fingerprint_finds_changed_bytes(cells, tmp_path):
    for file in cells.glob("cells-*.tfrecord"):
        shutil.copy(file, tmp_path)
    pipeline = leat.tfrecord(tmp_path / "cells-*.tfrecord").batch(50)
    with pipeline.feed() as feed, pipeline.feed(fingerprint="full") as full:
        quick, state = feed.state_dict(), full.state_dict()
        assert "contents" not in quick and state == full.state_dict()
        full.load_state_dict(state)
    with leat.tfrecord(cells / "cells-*.tfrecord").batch(50).feed() as feed:
        feed.load_state_dict(state)  # a copy elsewhere

    changed = sorted(tmp_path.glob("cells-*.tfrecord"))[1]
    content = bytearray(changed.read_bytes())
    content[100] ^= 1
    changed.write_bytes(content)
    with pipeline.feed(on_error="skip") as feed:
        feed.load_state_dict(quick)  # names and sizes are the same
        with pytest.raises(leat.MismatchError, match="contents of some files have changed"):
            feed.load_state_dict(state)
        with pytest.warns(UserWarning, match="contents of some files have changed"):
            feed.load_state_dict(state, strict=False)


def test_a_full_fingerprint_works_without_files(numbers):
    with numbers.batch(10).feed(fingerprint="full") as feed:
        state = json.loads(json.dumps(feed.state_dict()))
        feed.load_state_dict(state)
    other = leat.array(x=np.arange(100)[::-1], y=np.zeros((100, 2))).batch(10)
    with other.feed(fingerprint="full") as feed, pytest.raises(leat.MismatchError, match="contents"):
        feed.load_state_dict(state)


def test_arrays_resume_in_another_process(python):
    code = """if True:
        import json, sys, numpy as np, leat
        spare = [open("/dev/null") for _ in range(int(sys.argv[1]))]  # other descriptors
        with leat.array(x=np.arange(100), y=np.ones((100, 3))).shuffle().batch(10).feed(seed=1) as feed:
            if len(sys.argv) > 2:
                feed.load_state_dict(json.loads(sys.argv[2]))
            x = next(iter(feed))["x"].tolist()
            print(json.dumps([x, feed.state_dict()]))
    """
    first, state = json.loads(python(code, 0))
    second, _ = json.loads(python(code, 7, json.dumps(state)))
    assert len(set(first + second)) == 20 and state["position"] == 10


def test_a_killed_process_leaves_no_files(python, tmp_path):
    code = """if True:
        import os, signal, numpy as np, leat
        feed = leat.array(x=np.zeros((100, 10000))).batch(10).feed()
        next(iter(feed))
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        os.wait()
    """
    killed = "import os, signal, numpy as np, leat; f = leat.array(x=np.zeros(9)).batch(3).feed(); next(iter(f)); " \
        "os.kill(os.getpid(), signal.SIGKILL)"
    for program in (code, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {killed!r}])"):
        python(program, TMPDIR=str(tmp_path), TMP=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_interrupts_a_full_fingerprint(python, tmp_path):
    rows = 2**30  # a sparse file of 4 TiB, which would take hours
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (rows, 4096)})
        file.truncate(file.tell() + rows * 4096)
    out = python("""if True:
        import signal, sys, leat
        feed = leat.npy(x=sys.argv[1]).batch(1).feed(fingerprint="full")
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            feed.state_dict()
        except KeyboardInterrupt:
            print("interrupted")
        feed.close()
    """, tmp_path / "x.npy")
    assert out == "interrupted\n"


def test_an_unknown_fingerprint_is_refused(numbers):
    with pytest.raises(leat.InvalidError, match="names, full"):
        numbers.batch(10).feed(fingerprint="md5")
