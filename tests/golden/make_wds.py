#!/usr/bin/env python3
"""make_wds.py: tar files, and what WebDataset reads from them, for tests/unit/test_tar.c.

    python3 -m venv /tmp/wds && /tmp/wds/bin/pip install numpy==2.4.6 webdataset==1.0.2
    /tmp/wds/bin/python tests/golden/make_wds.py

Writes tests/golden/wds.tar: archives, and cases.json that says which spec reads which samples (@ stands
for the folder of the archives). The same versions write the same files.
"""
import io
import json
import tarfile

import archive
import webdataset

HERE = archive.begin("wds")
cases = []


def value(data):
    return {"dtype": "uint8", "shape": [len(data)], "hex": data.hex()}


def case(name, spec, archives, fields):
    """What WebDataset gives of the archives, as the fields that the spec names."""
    paths = [str(HERE / a) for a in archives]
    samples = []
    for sample in webdataset.WebDataset(paths, shardshuffle=False, empty_check=False):
        one = {}
        for field, key in fields.items():
            data = next(sample[k] for k in key.split(";") if k in sample)
            one[field] = value(data.encode() if isinstance(data, str) else data)
        samples.append(one)
    cases.append({"name": name, "spec": spec, "samples": samples})


def write_with_webdataset():
    """Two shards as WebDataset's own writer makes them, names of several parts included."""
    for shard in range(2):
        with webdataset.TarWriter(str(HERE / f"plain-{shard}.tar"), mtime=0) as out:
            for i in range(3 + shard):
                number = shard * 10 + i
                out.write(
                    {
                        "__key__": f"train/part.{shard}/{number:06d}",
                        "jpg": bytes([0xFF, 0xD8, number]) * (number + 1),
                        "cls": number,
                        "seg.png": b"\x89PNG" + bytes(range(number)),
                        "json": {"number": number, "text": "h\u00e9 \u65e5\u672c"},
                    }
                )
    case("plain", "tar('@/plain-*.tar')", ["plain-0.tar", "plain-1.tar"],
         {k: k for k in ["cls", "jpg", "json", "seg.png"]})
    case("chosen", "tar('@/plain-1.tar', '@/plain-0.tar', fields=[__key__, 'label=cls', 'image=webp;jpg'])",
         ["plain-1.tar", "plain-0.tar"], {"__key__": "__key__", "label": "cls", "image": "webp;jpg"})


def add(out, name, data=b"", **more):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for key, setting in more.items():
        setattr(entry, key, setting)
    out.addfile(entry, io.BytesIO(data))


# Names with a prefix, names too long for ustar, and names beyond ASCII.
PREFIX = "folder-" + "p" * 90 + "/"
LONG = "deep/" * 60 + "x" * 150
UNICODE = "\u00fcber/\u65e5\u672c\u8a9e \U0001f600"


def write_formats():
    """The same samples in each format that tar files come in."""
    for name, kind in [("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)]:
        keys = ["a", PREFIX + "prefixed", UNICODE] + ([LONG] if name != "ustar" else [])
        with tarfile.open(HERE / f"{name}.tar", "w", format=kind) as out:
            for i, key in enumerate(keys):
                add(out, key + ".txt", f"text {i}".encode(), mtime=1.5 if name == "pax" else 1)
                add(out, key + ".bin", bytes(k % 256 for k in range(i * 100)))
        case(name, f"tar('@/{name}.tar', fields=[txt, bin, __key__])", [f"{name}.tar"],
             {k: k for k in ["txt", "bin", "__key__"]})


def write_odd():
    """What is not a sample, in between; names in capitals; empty files; the same key again later."""
    with tarfile.open(HERE / "odd.tar", "w", format=tarfile.GNU_FORMAT) as out:
        add(out, "./", type=tarfile.DIRTYPE)
        add(out, "README", b"no extension: no sample")
        add(out, "__meta__/info.json", b"{}")
        add(out, "__index__", b"")
        add(out, "./s1.TXT", b"one")
        add(out, "link.txt", type=tarfile.SYMTYPE, linkname="s1.txt")
        add(out, "./s1.Bin", b"")
        add(out, "hard.txt", type=tarfile.LNKTYPE, linkname="./s1.TXT")
        add(out, "fifo.txt", type=tarfile.FIFOTYPE)
        add(out, "x.y/s2.bin", b"2" * 512)
        add(out, "x.y", type=tarfile.DIRTYPE)
        add(out, "x.y/s2.txt", b"2" * 513)
        add(out, "x.y/NOTES", b"in between")
        add(out, "x.y/s2.more.txt", b"ignored")
        add(out, "./s1.bin", b"the key of the first, and another sample")
        add(out, "./s1.txt", b"")
        add(out, "contiguous.txt", b"7", type=tarfile.CONTTYPE)
        add(out, "contiguous.bin", b"0", type=tarfile.AREGTYPE)
    case("odd", "tar('@/odd.tar', fields=[txt, bin])", ["odd.tar"], {"txt": "txt", "bin": "bin"})


write_with_webdataset()
write_formats()
write_odd()
(HERE / "cases.json").write_text(
    json.dumps({"library": f"webdataset {webdataset.__version__}", "cases": cases}, indent=1) + "\n")
archive.finish(HERE)
