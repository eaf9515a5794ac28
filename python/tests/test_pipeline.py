"""The builder writes the spec that one would write by hand."""
import inspect
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import leat
from leat import _ops, _text


def test_methods_make_the_text_of_a_spec():
    pipeline = (leat.tfrecord("train-*.tfrecord").example(image=bytes, label=int).decode().resize(100, 100)
                .scale(1 / 255).rotate("40deg").random_flip().batch(32))
    assert pipeline.spec == ("tfrecord('train-*.tfrecord') | example(image=bytes, label=int64) | decode | "
                             "resize(100, 100) | scale(0.00392156862745098) | rotate(40deg) | random_flip | batch(32)")
    assert repr(pipeline) == f"<{pipeline.spec}>"


def test_a_pipeline_is_the_same_as_its_text(images):
    built, written = images.batch(8).feed(), leat.feed(images.batch(8).spec)
    assert built.spec == written.spec
    for a, b in zip(built, written):
        assert np.array_equal(a["image"], b["image"])


def test_one_over_255_is_the_same_number_as_in_a_spec(images):
    by_hand = (leat.pipeline(images.spec.rpartition(" | ")[0]) | "scale(1/255)").batch(8).feed()
    assert by_hand.state_dict()["pipeline"] == images.batch(8).feed().state_dict()["pipeline"]


def test_pipelines_are_immutable():
    base = leat.tfrecord("a")
    assert base.batch(1) != base.batch(2)
    assert base.spec == "tfrecord('a')"


@pytest.mark.parametrize("value, kind, text", [
    ("it's", "string", r"'it\'s'"), ("a\nb\\", "string", r"'a\x0ab\\'"), ("\x01", "string", r"'\x01'"),
    (pathlib.Path("a/b"), "string", "'a/b'"),
    (b"a", "string", "'a'"), ("ü", "string", "'ü'"), ("a\udcff", "string", r"'a\xff'"),
    (True, "bool", "true"), (np.bool_(False), "bool", "false"), (3, "int", "3"), (np.int32(3), "int", "3"),
    (0.1, "float", "0.1"), (np.float32(0.5), "float", "0.5"), (1e-9, "float", "1e-09"),
    ("40deg", "angle", "40deg"), ("4MiB", "size", "4MiB"), ("10k", "int", "10k"), ("1/255", "float", "1/255"),
    ([0.5, 1], "floats", "[0.5, 1]"), (np.array([1.0, 2.0]), "floats", "[1.0, 2.0]"),
    (["a", "b"], "strings", "['a', 'b']"),
    (np.float32, "enum", "float32"), (np.dtype("uint8"), "enum", "uint8"), (int, "", "int64"), (bytes, "", "bytes"),
    (float, "enum", "float32"),
])
def test_values_as_text(value, kind, text):
    assert _text.to_text(value, kind) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {"a": 1}, "a\0b"])
def test_what_cannot_be_written_is_refused(value):
    with pytest.raises(leat.InvalidError):
        _text.to_text(value)


def test_strings_that_look_like_code_stay_strings(numbers):
    with pytest.raises(leat.SpecError, match="1; drop"):
        numbers.batch("1; drop").feed()
    with pytest.raises(leat.IOError):
        leat.tfrecord("a') | batch(1) #").batch(1).feed()


def test_a_pipeline_without_batch_is_refused_with_what_to_add(numbers):
    with pytest.raises(leat.SpecError, match=r"has no batch: add '\| batch\(32\)' at the end, or '\| batch\(1\)'"):
        numbers.feed()


def test_features_of_examples():
    assert leat.tfrecord("a").example(a="int64[]", b=leat.feature(float, [2], default=0), c=leat.feature(
        bytes, key="image/encoded")).spec == (
            "tfrecord('a') | example(a=int64[], b=float[2](default=0), c=bytes(key='image/encoded'))")
    with pytest.raises(leat.InvalidError, match="not a feature type"):
        leat.tfrecord("a").example(a="strings")


def test_wrong_arguments_are_told_like_pythons_own():
    with pytest.raises(TypeError, match="random_crop.*width"):
        leat.tfrecord("a").random_crop(100)
    with pytest.raises(TypeError, match="resize.*hight"):
        leat.tfrecord("a").resize(100, 100, hight=3)
    with pytest.raises(AttributeError):
        leat.tfrecord("a").resise(100, 100)


def test_every_source_and_op_has_signature_and_words():
    # map takes a function, arrow a table, and neither its name.
    items = [item for item in _ops.load() if item["name"] not in ("map", "arrow")]
    assert len(items) > 40
    for item in items:
        function = getattr(leat if item["kind"] == "source" else leat.Pipeline, item["name"])
        assert item["doc"] in function.__doc__
        for option in item["options"]:
            assert option["name"] in inspect.signature(function).parameters
            assert option["doc"] in function.__doc__
    assert str(inspect.signature(leat.Pipeline.resize)) == (
        "(self, height=0, width=0, method='bilinear', mode='tf', antialias=False, *, shorter=0, longer=0, field=[]) "
        "-> 'Pipeline'")


def test_an_options_earlier_name_is_taken_and_stays_in_the_identity(images):
    """Checkpoints that were made before an option was renamed stay valid."""
    now, then = images.random_erasing(probability=0.25), images.random_erasing(p=0.25)
    assert now.spec == then.spec and now.spec.endswith("random_erasing(0.25)")
    with images.random_erasing(probability=0.25).batch(1).feed() as feed:
        state = feed.state_dict()
        assert "random_erasing@1(p=0.25, " in json.dumps(state)
    with leat.feed(images.spec + " | random_erasing(p=0.25) | batch(1)") as feed:
        feed.load_state_dict(state)
    with pytest.raises(TypeError, match="p"):
        images.random_erasing(p=0.25, probability=0.25)
    assert "also p" in leat.Pipeline.random_erasing.__doc__


def test_every_default_can_be_given(numbers):
    """What the signature shows as default is understood, and changes nothing."""
    for item in _ops.load():
        given = {option["name"]: _ops.default_of(option) for option in item["options"]}
        given = {name: value for name, value in given.items() if value is not inspect.Parameter.empty}
        for name, value in given.items():
            kind = next(option["type"] for option in item["options"] if option["name"] == name)
            assert _text.to_text(value, kind)
    plain = leat.pipeline("npy(x='x.npy')")
    assert plain.shuffle(window=0).spec == "npy(x='x.npy') | shuffle(0)"


def test_stubs_are_those_of_the_tables(root, build):
    out = subprocess.run([sys.executable, root / "python/stubs.py", build / "leat"], check=True, stdout=subprocess.PIPE,
                         text=True).stdout
    compile(out, "__init__.pyi", "exec")
    installed = pathlib.Path(leat.__file__).with_name("__init__.pyi")
    if installed.exists():
        assert installed.read_text() == out
    for item in json.loads(subprocess.run([build / "leat", "ops", "--json"], stdout=subprocess.PIPE).stdout)["items"]:
        assert f"def {item['name']}(" in out


def test_errors_of_a_spec_have_a_caret():
    with pytest.raises(leat.SpecError) as caught:
        leat.feed("npy(x='x.npy') | resise(3)")
    assert str(caught.value) == ("there is no op 'resise', did you mean 'resize'?\n"
                                 "npy(x='x.npy') | resise(3)\n                 ^^^^^^")
    assert isinstance(caught.value, leat.Error) and isinstance(caught.value, ValueError)


def test_an_array_is_shown_by_its_type_and_shape():
    pipeline = leat.array(x=np.zeros((9, 2), np.float32), y=np.arange(9)).batch(3)
    assert repr(pipeline) == "<array(x=float32[9, 2], y=int64[9]) | batch(3)>"
    with pytest.raises(leat.UnsupportedError, match="array 's'.*<U1"):
        leat.array(s=np.array(["a", "b"])).batch(1).feed()


def test_paths_may_be_pathlib_objects_and_start_at_home(cells, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").symlink_to(cells)
    np.save(tmp_path / "x.npy", np.arange(8))
    home = pathlib.Path("~")
    for source, count in [(leat.folder(home / "data/cells"), 200), (leat.npy(x=home / "x.npy"), 8),
                          (leat.tfrecord(home / "data/cells-*.tfrecord"), 200), (leat.npy(x="~/x.npy"), 8),
                          (leat.pipeline("folder('~/data/cells')"), 200)]:
        with source.batch(4).feed() as feed:
            assert feed.samples == count
    with leat.npy(x=home / "x.npy").cache(dir=home / "cached").batch(4).feed() as feed:
        assert len(list(feed)) == 2
    assert list((tmp_path / "cached").iterdir())


def test_dir_shows_what_is_for_users():
    names = dir(leat)
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    assert {"folder", "feed", "Feed", "array", "torch", "DataError"} < set(names)
    assert not {"Any", "List", "Union", "TYPE_CHECKING", "annotations"} & set(names)
    assert all(hasattr(leat, name) for name in names if name not in ("torch", "jax", "tensorflow"))


def test_pipelines_and_feeds_are_readable():
    pipeline = leat.array(x=np.arange(6)).shuffle().batch(2)
    assert repr(pipeline) == "<array(x=int64[6]) | shuffle | batch(2)>"
    feed = pipeline.feed(seed=3)
    assert repr(feed) == "<leat.Feed array(x=int64[6]) | shuffle | batch(2), seed=3>"
    feed.close()
    assert repr(feed).endswith(", seed=3, closed>")


@pytest.mark.parametrize("option, instead", [
    ({"num_workers": 4}, "a feed has no option 'num_workers': use threads=, or leave it out"),
    ({"workers": 4}, "use threads="),
    ({"endpoint": "http://a"}, "use storage={'endpoint': 'http://a'}"),
    ({"batch_size": 32}, r"add \.batch\(32\) to the pipeline"),
    ({"shuffle": True}, r"add \.shuffle\(\) to the pipeline"),
    ({"prefetch_factor": 2}, r"add \.prefetch\(2\) to the pipeline"),
    ({"pin_memory": True}, r"feed\.torch\('cuda'\)"),
    ({"drop_last": True}, "tail='drop'"),
    ({"thread": 2}, "did you mean 'threads'"),
    ({"seeds": 2}, "did you mean 'seed'"),
    ({"qwertz": 2}, "there are seed, epochs, threads, memory,"),
])
def test_unknown_options_say_what_to_use(option, instead):
    for open_feed in (leat.array(x=np.arange(4)).batch(2).feed, lambda **options: leat.feed("npy(x='x')", **options)):
        with pytest.raises(leat.OptionError, match=instead) as caught:
            open_feed(**option)
        assert isinstance(caught.value, TypeError) and isinstance(caught.value, leat.InvalidError)


def test_explain_says_what_a_feed_does(images):
    pipeline = images.shuffle().batch(32)
    told = pipeline.explain(as_dict=True, threads=2, memory="64MiB")
    assert told["epoch"]["samples"] == 200 and told["epoch"]["batches"] == 7 and told["epoch"]["last_batch"] == 8
    assert [one["op"].split("(")[0] for one in told["order"]] == ["shuffle"]
    last = told["stages"][-1]
    assert last["passes"] == [{"ops": ["decode", "resize", "scale"], "crop_only": False, "reduced": False}]
    assert {f["name"]: (f["dtype"], f["shape"], f["bytes"]) for f in last["fields"]} == {
        "image": ("float32", [16, 16, 3], 3072), "label": ("int64", [], 8)}
    assert told["threads"]["ops"] == 2 and told["memory"]["limit"] == 64 << 20
    text = pipeline.explain(threads=2, memory="64MiB")
    assert "decode + resize + scale" in text and "float32[16, 16, 3]" in text
    with pipeline.feed(threads=2, memory="64MiB") as feed:
        assert feed.explain() == text
        assert feed.explain(as_dict=True) == told


def test_explain_takes_the_options_of_a_feed(images, tmp_path):
    told = images.batch(10).explain(as_dict=True, rank=1, world=5, bad=tmp_path / "bad.json")
    assert told["epoch"]["batch_size"] == 2 and told["epoch"]["rank"] == 1
    assert not (tmp_path / "bad.json").exists()
    with pytest.raises(leat.InvalidError, match="did you mean 'threads'"):
        images.explain(thread=2)
    with pytest.raises(leat.LimitError, match="too little"):
        images.batch(2).explain(memory=1000)


def _double(x):
    return 2 * x


def test_explain_shows_functions(numbers):
    pipeline = numbers.map(_double, "x", workers="thread").batch(4)
    assert [p["ops"] for p in pipeline.explain(as_dict=True)["stages"][0]["passes"]] == [["map"]]
    with pipeline.feed(threads=2) as feed:
        assert "map" in feed.explain()
        assert next(iter(feed))["x"].tolist() == [0, 2, 4, 6]


def test_tuning_is_listed_with_reasons_and_can_be_turned_off(images):
    whole = [batch["label"].tolist() for batch in images.shuffle().batch(64).feed(epochs=1, tune=False)]
    with images.shuffle().batch(64).feed(epochs=1) as feed:
        assert [batch["label"].tolist() for batch in feed] == whole
        chosen = {one["what"]: one for one in feed.stats()["tuning"]}
    assert {"threads", "prefetch", "requests", "window"} <= set(chosen)
    assert all(one["why"] and one["set"] is False for one in chosen.values())
    with images.batch(64).prefetch(3).feed(threads=2) as feed:
        chosen = {one["what"]: one for one in feed.stats()["tuning"]}
    assert (chosen["threads"]["value"], chosen["threads"]["set"]) == ("2", True)
    assert (chosen["prefetch"]["value"], chosen["prefetch"]["set"]) == ("3", True)
