"""Libraries that people call from functions: the same results as without Leat."""
import io

import numpy as np
import pytest

import leat


def listed(folder, names):
    (folder / "list.csv").write_text("path\n" + "\n".join(names) + "\n")
    return leat.list(folder / "list.csv", content="content")


def test_albumentations_augments_images(cells):
    albumentations = pytest.importorskip("albumentations")
    transform = albumentations.Compose([albumentations.RandomCrop(12, 12), albumentations.HorizontalFlip(p=0.5)])

    def augment(image, rng):
        transform.set_random_seed(int(rng.integers(2**31)))
        return transform(image=image)["image"]

    images = leat.folder(cells / "cells").decode().resize(16, 16)
    runs = []
    for threads in (1, 2):
        with images.map(augment, fields="image").batch(16).feed(seed=1, threads=threads) as feed:
            assert feed.fields["image"] == ("float32", (12, 12, 3))
            runs.append(np.concatenate([batch["image"] for batch in feed]))
    assert np.array_equal(*runs) and len(np.unique(runs[0].reshape(len(runs[0]), -1), axis=0)) > 100


def test_tokenizers_of_hugging_face(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog"]
    tokenizer = tokenizers.Tokenizer(WordLevel({"?": 0, **{word: i + 1 for i, word in enumerate(words)}}, "?"))
    tokenizer.pre_tokenizer = Whitespace()
    lines = [" ".join(words[i % 8] for i in range(start, 3 * start)) for start in range(20)]
    for i, line in enumerate(lines):
        (tmp_path / f"{i}.txt").write_text(line)

    def tokenize(text):
        return tokenizer.encode(bytes(text).decode()).ids

    pipeline = listed(tmp_path, [f"{i}.txt" for i in range(20)]).map(
        tokenize, fields="content", returns={"content": ("int32", (None,))}).rename(tokens="content")
    with pipeline.batch(20).feed(threads=2) as feed:
        tokens = next(iter(feed))["tokens"]
        assert [tokens[i].tolist() for i in range(20)] == [tokenizer.encode(line).ids for line in lines]


def test_soundfile_reads_flac_and_wav(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    sounds = [(np.sin(np.arange(1000 + 50 * i) / (5 + i)) * 20000).astype(np.int16) for i in range(8)]
    names = [f"{i}.{'flac' if i % 2 else 'wav'}" for i in range(8)]
    for name, sound in zip(names, sounds):
        soundfile.write(tmp_path / name, sound, 16000)

    def read(sample):
        wave, rate = soundfile.read(io.BytesIO(sample["content"]), dtype="int16")
        return {"wave": wave, "rate": rate}

    types = {"wave": ("int16", (None,)), "rate": ("int64", ())}
    with listed(tmp_path, names).map(read, fields=types).batch(8).feed(threads=2) as feed:
        batch = next(iter(feed))
        assert batch["rate"].tolist() == [16000] * 8
        assert all(np.array_equal(batch["wave"][i], sounds[i]) for i in range(8))


def test_tensors_of_pytorch_are_taken(numbers):
    torch = pytest.importorskip("torch")
    with numbers.map(lambda x: torch.full((3,), float(x), requires_grad=True), fields="x").batch(4).feed(
            threads=1) as feed:
        assert feed.fields["x"] == ("float32", (3,))
        assert next(iter(feed))["x"][:, 0].tolist() == [0, 1, 2, 3]
