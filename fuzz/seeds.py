#!/usr/bin/env python3
"""seeds.py STAMP GOLDEN: writes the seeds of all fuzzers to the folder `seeds` beside STAMP (run by the build).

seeds/NAME holds what fuzz_NAME.c starts from. Some seeds are golden data (GOLDEN is the folder it was unpacked
to), some are built here, and those made by hand or found by a fuzzer are in seeds.tar:

    tests/golden/archive.py add fuzz/seeds.tar NAME/SEED FILE
"""
import gzip
import io
import json
import pathlib
import shutil
import struct
import sys
import tarfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "tests" / "golden"))
import archive

PNGS = ["rgb", "rgba16", "gray1", "gray16", "gray-alpha", "gray2-interlaced", "palette2", "pixel"]
KEYED = ["palette", "gray2", "rgb16"]  # with a transparent color


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


# ---- images ----


def golden_pngs(golden, kinds):
    seeds = {f"{kind}.png": (golden / "tf" / f"{kind}.png").read_bytes() for kind in kinds}
    seeds |= {f"{kind}-key.png": (golden / "geometry" / f"{kind}-key.png").read_bytes() for kind in KEYED}
    return seeds | {"cut.png": seeds["rgb.png"][:60]}


def image(golden):
    """Images, some of them cut off, and some that are none."""
    kinds = ["420", "progressive", "restart", "rgb", "gray", "cmyk", "pixel"]
    seeds = golden_pngs(golden, PNGS) | {f"{kind}.jpg": (golden / "tf" / f"{kind}.jpg").read_bytes() for kind in kinds}
    return seeds | {"cut.jpg": seeds["420.jpg"][:400], "gif": b"GIF89a", "jpeg-magic": b"\xff\xd8\xff"}


def jpeg(golden):
    """The last bytes choose a region."""
    seeds = {}
    for file in (golden / "tf").glob("*.jpg"):
        data = file.read_bytes()
        seeds[f"{file.stem}-gray"] = data
        seeds[f"{file.stem}-rgb"] = data + b"\x0b\x07\x05\x03"
        seeds[f"{file.stem}-rgba"] = data + b"\xff\xff\x00\x00"
    return seeds


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def build_png(color, depth, step, pieces=(), extra=b"", level=9):
    width, height = 5, 10
    row = width * step
    rows = b"".join(bytes([y % 5]) + bytes((x * y) & 255 for x in range(row)) for y in range(height))
    packed = zlib.compress(rows, level)
    parts = [packed[a:b] for a, b in zip((0,) + pieces, pieces + (len(packed),))]
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    data = png_chunk(b"tEXt", b"a\0b").join(png_chunk(b"IDAT", part) for part in parts)
    return b"\x89PNG\r\n\x1a\n" + head + extra + data + png_chunk(b"IEND", b"")


def png(golden):
    """Also one in several chunks, and some that are stored: a byte changed in the file is changed in a row."""
    seeds = golden_pngs(golden, PNGS + ["rgba", "palette8"])
    seeds["pieces.png"] = build_png(2, 8, 3, (20, 20))
    for color, depth, step in (0, 8, 1), (0, 16, 2), (2, 8, 3), (2, 16, 6), (4, 8, 2), (6, 8, 4), (6, 16, 8):
        seeds[f"stored{color}-{depth}.png"] = build_png(color, depth, step, level=0)
    colors = png_chunk(b"PLTE", bytes(768)) + png_chunk(b"tRNS", bytes(9))
    return seeds | {"stored3.png": build_png(3, 8, 1, extra=colors, level=0)}


# ---- files of samples ----


def npy(golden):
    kinds = ["f2", "f4", "b1", "int16", "v2", "v3", "structure", "scalar", "deep", "fortran", "big-endian"]
    types = ["u8", "c8", "c16", "complex-dims"]
    return {kind: (golden / "npy" / f"{kind}.npy").read_bytes() for kind in kinds} | \
        {kind: (golden / "npy_types" / f"{kind}.npy").read_bytes() for kind in types}


def build_tar(kind, names, content={}):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as file:
        for name in names:
            entry = tarfile.TarInfo(name)
            data = content.get(name, name[-9:].encode())
            entry.size = len(data)
            file.addfile(entry, io.BytesIO(data))
    data = out.getvalue().rstrip(b"\0")
    return data + b"\0" * (-len(data) % 512) + b"\0" * 1024


def tar(golden):
    """Small archives, whole and damaged. After an odd first byte, fuzz_tar.c makes the checksums of headers right."""
    names = ["a.txt", "a.bin", "d/README", "b.TXT", "b.bin", "b.bin"]
    long = ["a/" * 60 + "x.txt", "a/" * 60 + "x.bin", "\u00fc.txt"]
    good = build_tar(tarfile.USTAR_FORMAT, names)
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
    array = b"\x93NUMPY\x01\0" + len(head).to_bytes(2, "little") + head + bytes(range(16))
    seeds = {
        "ustar": good,
        "gnu": build_tar(tarfile.GNU_FORMAT, long),
        "pax": build_tar(tarfile.PAX_FORMAT, long),
        "torn": good[:700] + b"?" + good[701:],
        "header": good[:1030] + b"?" + good[1031:],
        "cut": good[:2900],
        "zero": good[:1024] + b"\0" * 512 + good[1024:],
        "gzip": b"\x1f\x8b\x08" + b"\0" * 20,
        "array": build_tar(tarfile.USTAR_FORMAT, ["a.txt", "a.bin"], {"a.bin": array}),
    }
    return {name: bytes([name in ("gnu", "pax", "ustar")]) + data for name, data in seeds.items()}


def mds(golden):
    """The length of index.json, index.json, and the first shard."""
    seeds = {}
    for name in ["scalars", "arrays", "images"]:
        folder = golden / "mds" / name
        index = json.loads((folder / "index.json").read_text())
        shard = index["shards"][0]
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        shard["raw_data"]["basename"] = "s"
        index["shards"] = [shard]
        text = compact(index)
        seeds[name] = len(text).to_bytes(2, "little") + text + data
    return seeds


def tfds(golden):
    """The lengths of dataset_info.json and features.json, both of them, and the first record for training."""
    seeds = {}
    for name, path in [("small", "small/1.0.0"), ("plain", "plain/tiny/2.0.1")]:
        folder = golden / "tfds" / path
        info = {"name": "d", "splits": [{"name": "train", "shardLengths": ["1"], "filepathTemplate": "s"}]}
        texts = [compact(info), compact(json.loads((folder / "features.json").read_text()))]
        file = next(folder.glob("*-train.*-00000-of-*")).read_bytes()
        record = file[12 : 12 + int.from_bytes(file[:8], "little")]
        seeds[name] = b"".join(len(text).to_bytes(2, "little") for text in texts) + b"".join(texts) + record
    return seeds


def tfrecord_gz(golden):
    seeds = {kind: (golden / "tf" / f"{kind}.tfrecord").read_bytes() for kind in ("gzip", "zlib")}
    plain = gzip.decompress(seeds["gzip"])[:200]
    members = gzip.compress(plain[:50], mtime=0) + gzip.compress(plain[50:], mtime=0)
    return seeds | {"plain": plain, "members": members}


def thrift_varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + thrift_varint(n >> 7)


def thrift_struct(*fields):
    """Fields are (number, type, bytes) in order of their numbers."""
    out, last = b"", 0
    for number, kind, data in fields:
        out += bytes([(number - last) << 4 | kind]) + data
        last = number
    return out + b"\0"


def parquet(golden):
    """Footers: with a nested column, without rows, and with lists that are longer than they can be."""

    def number(n):
        return thrift_varint(2 * n)

    def text(data):
        return thrift_varint(len(data)) + data

    def items(kind, *elements):
        count = bytes([len(elements) << 4 | kind]) if len(elements) < 15 else bytes([0xF0 | kind]) + thrift_varint(len(elements))
        return count + b"".join(elements)

    def chunk(at, size, path):
        meta = thrift_struct((1, 5, number(2)), (2, 9, items(5, number(0))), (3, 9, items(8, text(path))), (4, 5, number(1)), (5, 6, number(9)),
                             (6, 6, number(2 * size)), (7, 6, number(size)), (9, 6, number(at + 10)), (11, 6, number(at)), (12, 12, thrift_struct((7, 1, b""))))
        return thrift_struct((2, 6, number(0)), (3, 12, meta))

    columns = [(b"root", 2), (b"a", 0), (b"s", 2), (b"b", 0), (b"c", 0)]
    schema = items(12, *(thrift_struct((1, 5, number(2)), (3, 5, number(1)), (4, 8, text(name)), (5, 5, number(children))) if children else
                         thrift_struct((1, 5, number(2)), (4, 8, text(name))) for name, children in columns))
    groups = [thrift_struct((1, 9, items(12, *(chunk(at + 50 * i, 50, b"abc"[i : i + 1]) for i in range(3)))), (2, 6, number(300)), (3, 6, number(9))) for at in (4, 200)]
    whole = thrift_struct((1, 5, number(1)), (2, 9, schema), (3, 6, number(18)), (4, 9, items(12, *groups)), (6, 8, text(b"seed")))
    return {
        "whole": whole,
        "many": thrift_struct((2, 9, schema), (3, 6, number(18 * 20)), (4, 9, items(12, *groups * 20))),
        "backwards": thrift_struct((4, 9, items(12, *groups)))[:-1] + b"\x06" + number(3) + number(18) + b"\x09" + number(2) + schema + b"\0",
        "empty": thrift_struct((2, 9, schema), (3, 6, number(0))),
        "long": thrift_struct((2, 9, b"\xfc\xff\xff\xff\x7f")),
        "deep": b"\x5c" * 40,
        "cut": whole[: len(whole) // 2],
    }


# ---- Leat's own files ----


def pad64(data):
    return data + bytes(-len(data) % 64)


def cache_entry(sample, text, grid):
    shapes = struct.pack("<4q", len(text), *grid)
    body = pad64(shapes) + pad64(struct.pack("<q", sample)) + pad64(text) + pad64(bytes(4 * grid[0] * grid[1] * grid[2]))
    return struct.pack("<QQII", sample, 64 + len(body), 0, 0) + bytes(40) + body


def cache(golden):
    """fuzz_cache.c says what the bytes mean."""

    def seed(how, used, table, room):
        return bytes([how]) + struct.pack("<Q4Q", used, *table) + room

    a, b = cache_entry(0, b"hello", (1, 2, 3)), cache_entry(1, b"", (0, 2, 0))
    large = a[:64] + struct.pack("<4q", 1 << 62, 1 << 40, 2, 1 << 40) + a[96:]
    return {
        "good": seed(2, len(a) + len(b), (1, 1 + len(a), 0, 0), a + b + bytes(2048)),
        "crossed": seed(2, 0, (1, 1, 65, 129), a + b),
        "full": seed(2, 1 << 62, (1, 0, 0, 0), a),
        "far": seed(1, 64, (1 << 63, 2, 1 + 64 * 1000, 0), a + b),
        "large": seed(2, 64, (1, 0, 0, 0), large),
        "other": b"\0LEATCACHand no more",
    }


def build_sidecar(sections):
    head = b"LEATSIDE" + struct.pack("<II8sQ32x", 2, 0, b"", len(sections))
    lengths = b"".join(struct.pack("<Q", len(s)) for s in sections)
    return head + lengths + b"".join(s + b"\0" * (-len(s) % 8) for s in sections)


def sidecar(golden):
    """Lists of three files, one of them missing, and an empty one. fuzz_sidecar.c fills in checksum, kind and key."""

    def files(*names):
        ends = [sum(map(len, names[:i])) for i in range(4)]
        sizes = struct.pack("<3Q", 100, 2**64 - 1, 7)
        tokens = struct.pack("<3Q", 1, 0, 2)
        return build_sidecar([struct.pack("<4Q", *ends), b"".join(names), sizes, tokens, bytes(32), bytes(32)])

    return {
        "files": files(b"cat/1.jpg", b"cat/2.jpg", b"dog/1.jpg"),
        "outside": files(b"cat/1.jpg", b"cat/../../.secret", b"/etc/passwd"),
        "dots": files(b"cat/.a/1.jpg", b"./1.jpg", b"dog//"),
        "none": build_sidecar([]),
    }


def data_index(golden):
    """Indexes of two files, one of them empty. fuzz_data_index.c fills in checksum, kind and key."""

    def files(names=(b"", b""), operands=(0, 1), size=100):
        ends = [sum(len(n) + 1 for n in names[:i]) for i in range(3)]
        version = b"\4E\"a\"".ljust(40, b"\0")
        records = b"LEATIDX\n" + struct.pack("<II8s5Q2Q", 2, 0, b"tfrecord", size, 0, 1, size, 0, 0, size)
        numbers = [operands, (size, 0), (5, 6), (0, len(records)), (len(records) if size else 0, 0)]
        operand, sizes, times, at, lengths = (struct.pack("<2Q", *n) for n in numbers)
        text = b"".join(n + b"\0" for n in names)
        return build_sidecar([operand, struct.pack("<3Q", *ends), text, sizes, times, 2 * version, at, lengths, records])

    return {
        "files": files(),
        "empty": files(size=0),
        "outside": files((b"http://b/x", b"")),
        "named": files((b"http://a/x", b"http://a/y")),
        "operand": files(operands=(0, 2)),
        "large": files(size=2**63),
        "none": build_sidecar([]),
    }


def webp(golden):
    """Images, some of them cut off, and lossless ones without a container."""
    seeds = {file.name: file.read_bytes() for file in (golden / "webp").glob("*.webp")}
    for name in list(seeds):
        seeds["cut-" + name] = seeds[name][: len(seeds[name]) * 2 // 3]
        if seeds[name][12:16] == b"VP8L":
            seeds[name + "-bare"] = seeds[name][20:]
    return seeds


def set(golden):
    """Manifests of the shards a and b, and of the array x; fuzz_set.c has the files."""

    def manifest(complete, *names):
        files = [{"name": name, "size": 3, "crc32c": "0a1b2c3d"} for name in names]
        command = {"complete": complete, "arguments": ["pack", "it's", "-o", "s"], "files": files}
        return compact({"leat_set": 1, "commands": [command]})

    shards = ["s-00000-of-00002.tar", "s-00001-of-00002.tar"]
    return {
        "good": manifest(True, *shards),
        "incomplete": manifest(False, *shards),
        "more": manifest(True, *shards, "s-%30000%32-of-00003.tar"),
        "fewer": manifest(True, shards[0]),
        "twice": manifest(True, shards[0], shards[0]),
        "array": manifest(False, "x.npy"),
        "cut": manifest(True, *shards)[:99],
    }


def http_head(golden):
    """Heads of responses; those with chunks have a body."""
    fields = [b"Date: Sun, 06 Nov 1994 08:49:37 GMT", b"ETag: \"a-2\"", b"Location: /x", b"Retry-After: 3", b"X-Extra: 1"]
    body = b"3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\nT: 1\r\n\r\n"
    return {
        "range": b"\r\n".join(
            [b"HTTP/1.1 100 Continue\r\n", b"HTTP/1.1 206 Partial", b"Content-Range: bytes 5-9/10", b"Content-Length: 5", *fields, b"\r\nabcde"]
        ),
        "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + body,
        "unsatisfied": b"HTTP/1.0 416\nContent-Range: bytes */10\nContent-Encoding: gzip\n\n",
        "chunks": body,
    }


def s3_list(golden):
    entry = "<Contents><Key>a%2Fb</Key><Size>3</Size><ETag>&quot;x&quot;</ETag><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
    page = f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>&#x41;</NextContinuationToken>{entry}<CommonPrefixes><Prefix>in/</Prefix></CommonPrefixes><Owner><ID/></Owner></ListBucketResult>"
    return {"page": page.encode(), "error": b"<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>"}


def credentials(golden):
    answer = {"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c", "Expiration": "2026-01-01T00:00:00Z"}
    return {"config": b"[default]\nregion = r1 # x\ns3 =\n  a = b\n[profile x]\nregion=y\n", "process": compact(answer), "sts": b"".join(b"<%s>x</%s>" % (name.encode(), name.encode()) for name in answer)}


def proc(golden):
    stat = b"42 (a) (b c) S 1 42 42 0 -1 4194560 100 0 3 0 250 50 7 8 20 0 9 0 123456 1000000 300\n"
    net = b"Inter-| Receive | Transmit\n face |bytes |bytes\n    lo: 9 1 0 0 0 0 0 0 9 1\neth0:7 1 0 0 0 0 0 0 8 1\n"
    return {"stat": stat, "statm": b"765 443 414 5 0 123 0\n", "io": b"read_bytes: 1\nwrite_bytes: 2\n", "net": net,
            "cpu": b"nr_periods 7\nnr_throttled 5\nthrottled_usec 9\n", "children": b"12 345 6 "}


def url(golden):
    texts = ["http://host:8080/a%20b/c?x=y#z", "https://[::1]/\u00e9 +", "//other/x", "../x?y", "http://u:p@h/"]
    return {str(i): text.encode() for i, text in enumerate(texts)}


def checks(golden):
    texts = ["amount: not null", "a: nulls up to 0.1%", "amount: -0.5..1e6", "ts: 2026-01-01T10:30:00.5..2026-12-31", "x: finite",
             "code: matches [A-Z]{3}", "code: length 1..20", 'code: one of A | "b | c" | ""', 'code: unique with day, "a, b"',
             'user: in users."the id"', "n: type decimal(10,2)", "rows: 1..", '"rows": ..5', '"a: ""b""": unique', "quarantine up to 0.1%",
             "amount: uniqe", "amount: 5..x"]
    return {str(i): text.encode() for i, text in enumerate(texts)}


def disk_table(golden):
    """Bytes laid over a table: its header, its segments, its heads, and its first two entries."""

    def bytes_at(*places):
        return b"".join(struct.pack("<I", at)[:3] + bytes([byte]) for at, byte in places)

    header = [(at, 0x41) for at in range(16, 88)]
    entries = 4096 + 256 * 32 + 512 * 48 + 1024 * 4
    fields = [(entries + at, 0xFF - at) for at in range(0, 128, 3)]
    return {
        "header": b"\0" + bytes_at(*header),
        "counts": b"\2" + bytes_at((32, 255), (40, 200), (48, 7), (52, 9), (56, 1)),
        "segments": b"\2" + bytes_at(*[(4096 + at, at % 256) for at in range(0, 128, 5)]),
        "links": b"\6" + bytes_at(*[(entries + 48 + 64 * i, i % 3 + 1) for i in range(8)]),
        "entries": b"\4" + bytes_at(*fields),
        "repaired": b"\6" + bytes_at(*fields),
        "short": b"\1" + bytes_at((entries + 100, 1)),
    }


def report(golden):
    """Runs as JSON and in pages."""
    epochs = [{"epoch": i, "samples": 100, "seconds": 1 + i / 100, "wait_share": 0.2} for i in range(5)]
    run = {"samples_per_s": 99.5, "wait_share": 0.2, "epochs": epochs}
    short = {"samples_per_s": 7, "batch_ms": {"p50": 1, "histogram": [[1, 30], [2.5, 9], [1e3, 1]]}, "threads": 2}
    row = {"tag": 0, "busy_ns": 5, "count": 1, "longest_ns": 5, "busy": [-3, 7], "counts": [-3, 1], "longest": [-3, 1]}
    timeline = {"version": 1, "unit_ns": 100, "end": 9, "bin_ns": 1000, "bins": 4, "spans": 1, "tags": ["x"], "names": [""],
                "lanes": [{"name": "a", "rows": [row]}], "known": [[0, 9]], "tracks": [],
                "kept": [{"lane": 0, "tag": 0, "at": [1, 2, 3, 0, 1]}]}

    def page(**parts):
        script = '<script type="application/json" id="leat-%s">%s</script>'
        return b"<!doctype html>" + b"".join((script % (name, json.dumps(part))).encode() for name, part in parts.items())

    return {"run": compact(run), "short": compact(short), "page": page(run=run), "timeline": page(run=short, timeline=timeline),
            "compare": page(compare={}), "cut": page(run=run)[:200]}


def merge(golden):
    """Figures of runs; a NUL separates two."""
    run = {"samples": 10, "seconds": 1.5, "samples_per_s": 6.7, "wait_share": 0.2, "rank": 1, "limit": "decode", "sentence": "decode.",
           "stages": [{"name": "decode", "tag": "decode", "threads": 2, "busy_s": 1.0, "starved_s": 0.5, "blocked_s": 0, "items": 10, "rate_alone": None, "waits_for": ""}],
           "epochs": [{"epoch": 0, "samples": 10, "seconds": 1.5, "wait_share": 0.2}],
           "batch_ms": {"p50": 1, "p99": 2, "max": 2, "mean": 1.1, "count": 3, "histogram": [[1.024, 2], [2.048, 1]]},
           "endpoints": [{"host": "a:80", "requests": 3, "latency_ms": {"max": 1, "count": 1, "histogram": [[1, 1]]}}]}
    other = dict(run, rank=2, wait_share=0.9, stages=[{"name": "x"}, 7, None], epochs={}, batch_ms=[], endpoints=[{"latency_ms": {"histogram": [[1e308, 9e18], [-1, -1], 3, []]}}])
    return {"run": compact(run), "two": compact(run) + b"\0" + compact(other), "none": b"[]", "cut": compact(run)[:40]}


def project(golden):
    """leat.yaml: one with everything, and texts that YAML or commands make easy to get wrong."""
    whole = b"""sources:
  epochs: raw/subject-{subject}.npy
  notes: 'notes/**/*.{md,txt}'
steps:
  decode:
    run: |
      # a comment's quote
      x=$(echo "${epochs%.npy}" | sed 's/$none//'); for f in a b; do echo "$f"; done
      cat <<EOF > "$out"
      $x ${y:-none} $((1 + $bin)) \\$escaped
      EOF
    in: [epochs, notes]
    slices: {subject: 01..18, bin: [early, late]}
    params: {folds: 10, rate: 1e-3, on: yes}
    env: {LANG: C, CUDA_VISIBLE_DEVICES: }
    code: [src/**, '*.sh']
    suffix: .npy
    seed: 18446744073709551615
    cpus: 2
    memory: 4GiB
    timeout: 1.5h
    retries: 2
    resume: true
    feed: folder('$notes') | batch(2)
  group: {run: python group.py "$decode" --out "$out", in: decode, slices: {bin: [early]}, env: [A, B]}
"""
    loaded = b"sources:\n  e: {files: 'raw/e-*.csv', columns: {user: int64, 'a b': 'decimal(10,2)'}, rejects: 0.1%, delimiter: tab, header: false, null: [NA, '-']}\n  p: {files: x.parquet}\nsteps: {a: {run: x, in: p}}\n"
    small = b"steps: {a: {run: %s, in: [%s], slices: {s: %s}}}\n"
    seeds = {"whole": whole, "loaded": loaded, "cycle": b"steps:\n a: {run: x, in: b}\n b: {run: x, in: a}\n", "alias": b"a: &x 1\nb: *x\n",
             "tag": b"steps: !x {}\n", "two": b"a: 1\n---\nb: 2\n", "deep": b"[" * 40, "tab": b"steps:\n\ta: 1\n",
             "torn": b"a: [clip(p01, p99), log1p]\n", "braces": b"a: [${x}]\n", "utf16": "steps: {}".encode("utf-16"),
             "nul": b'steps: {"a\\0b": 1}\n', "twice": b"steps: {}\nsteps: {}\n", "key": b"? [a]\n: b\n", "merge": b"<<: {a: 1}\n"}
    seeds |= {f"small-{i}": small % parts for i, parts in enumerate([
        (b"x", b"", b"1..3"), (b"'$s$$$1$@${#s}${s:-}`echo $s`'", b"", b"5..1..-2"), (b'"{s} ${s"', b"", b"[a, a]"),
        (b"x", b"a", b"{glob: '*'}"), (b"x", b"b", b"{rows: x, lines: y}"), (b"'<<X\n$s'", b"", b"-5..5"), (b"'$('", b"", b"1..9999999")])}
    return seeds


def sql(golden):
    """Queries, and texts that are easy to split wrongly."""
    texts = ["SELECT a, b.c FROM t WHERE x = 1 -- end", "WITH a(x) AS (SELECT * FROM \"b\"), c AS NOT MATERIALIZED (VALUES (1)) FROM a, c SELECT x;",
             "SELECT extract(year FROM ts), a IS DISTINCT FROM b FROM (t JOIN (u CROSS JOIN v) USING (k)), lateral (SELECT 1), read_csv('x')",
             "SELECT $$a$$, $t$ $$ $t$, E'a\\'b', x'ff', 'it''s', /* a /* b */ c */ 1.5e-3+.5, 0xff, 1_0, a*-1, a->>'$.x', a::int[], {'k': 1}",
             "SELECT\u00a01\u3000FROM 'x.parquet' UNION (TABLE a) ORDER BY #1 LIMIT 3", "SELECT 1; SELECT 2", "SELECT '", "SELECT ((", "COPY t TO 'x'",
             "SELECT a @>- b, c <-- d\n, -1 - -1, ~a, 1.a, a.1, a..b, $1, ?, :=:: : .", "SELECT 'a'\n'b'", "SUMMARIZE main.t", ""]
    return {str(i): text.encode() for i, text in enumerate(texts)}


def features(golden):
    """States that load, with what may be wrong in them; and texts of columns (c) and splits (s)."""
    whole = {"leat_features": 1, "duckdb": "1.5.6", "columns": "'a\"b': clip(low=[p01], high=[]) | standardize; 'y': keep; "
             "'t': hour | cyclic(period=[24]); 'w': vocab(min_count=1, max_size=9)", "split": "'w': 'train' 80%, 'test' 20%",
             "inputs": [{"name": "a\"b", "type": "DOUBLE", "needed": True}, {"name": "y", "type": "", "needed": False},
                        {"name": "t", "type": "DATE", "needed": True}, {"name": "w", "type": "DECIMAL(4,1)", "needed": True}],
             "fitted": [{"feature": "a\"b", "transform": "clip", "version": 1, "values": [-1.5]},
                        {"feature": "a\"b", "transform": "standardize", "version": 1, "values": {"mean": 0.5, "stddev": 2}},
                        {"feature": "w", "transform": "vocab", "version": 1, "dictionary": "dictionary_3_0", "entries": 3}],
             "outputs": [],
             "layers": ["nullif(CAST(t.\"a\"\"b\" AS DOUBLE), CAST('nan' AS DOUBLE)) AS v0, t.\"y\" AS v1, "
                        "CAST(CAST(t.\"t\" AS DATE) AS TIMESTAMP) AS v2, CAST(CAST(t.\"w\" AS DECIMAL(4,1)) AS DOUBLE) AS v3",
                        "CASE WHEN v0 < -1.5e0 THEN -1.5e0 ELSE v0 END AS v0, v1 AS v1, CAST(hour(v2) AS BIGINT) AS v2, "
                        "CASE WHEN CAST(v3 AS VARCHAR) IS NULL THEN CAST(1 AS BIGINT) ELSE coalesce(CAST(enum_code("
                        "TRY_CAST(CAST(v3 AS VARCHAR) AS \"dictionary_3_0\")) AS BIGINT) + 3, 2) END AS v3",
                        "(v0 - 0.5e0) / 2e0 AS v0, v1, CASE WHEN isfinite(CAST(v2 AS DOUBLE)) THEN sin(CAST(v2 AS DOUBLE) * "
                        "0.26179938779914941e0) END AS s2_0, CASE WHEN isfinite(CAST(v2 AS DOUBLE)) THEN cos(CAST(v2 AS "
                        "DOUBLE) * 0.26179938779914941e0) END AS s2_1, v3",
                        "v0 AS \"a\"\"b\", v1 AS \"y\", s2_0 AS \"t_sin\", s2_1 AS \"t_cos\", v3 AS \"w\""]}
    changes = {"whole": {}, "version": {"leat_features": 2}, "inputs": {"inputs": []}, "fitted": {"fitted": [1]},
               "layers": {"layers": ["1"]}, "columns": {"columns": "x: log1p"}, "split": {"split": "x"}}
    texts = ["cx: clip(p01, p99.5) | log1p | standardize; 'a b': keep; z: cross(x, 'y', buckets=9)",
             "ct: column(ts) | epoch | bucketize(0, 1e9, p50); u: impute(mode, indicator=true) | onehot(2, max_size=3)",
             "su, 'v w': train 33.3333%, b 33.3333%, c rest", "sts: train before '2024-01-01', test rest", "s: ", "cx: clip(p1e9)",
             "du, 'v w', order=[ts, id], keep=last", "dby=[u]", "d", "cx: lag(2, by=[u, v], order=ts) | standardize; y: column(x) | rolling(std, 7d, order=ts)",
             "cw: rare(3, other='o\\'x') | target(y, folds=3, smoothing=0.5, key=[id, u]); t: tokenize(char, 3, shorter=true) | vocab | pad(9)"]
    group = {"leat_features": 1, "duckdb": "1.5.6", "columns": "'w': target(label='y', folds=5, smoothing=[20], key=['k'])", "split": "",
             "inputs": [{"name": "w", "type": "VARCHAR[]", "needed": True}, {"name": "y", "type": "BOOLEAN", "needed": False},
                        {"name": "k", "type": "", "needed": False}],
             "fitted": [{"feature": "w", "transform": "target", "version": 1, "values": {"prior": 0.5, "missing": 0.25},
                         "dictionary": "dictionary_0_0", "entries": 0, "lookup": "mean"}], "outputs": [],
             "dedupe": "by=['w'], order=[], keep=last", "groups": [],
             "qualify": ["CAST(t.\"w\" AS VARCHAR) IS NULL OR row_number() OVER (PARTITION BY CAST(t.\"w\" AS VARCHAR) ORDER BY t.leat_row DESC) = 1"],
             "layers": ["CAST(t.\"w\" AS VARCHAR) AS v0, t.leat_row", "CASE WHEN v0 IS NULL THEN 0.25e0 ELSE 0.5e0 END AS v0, leat_row",
                        "v0 AS \"w\""]}
    window = {"leat_features": 1, "duckdb": "1.5.6", "split": "", "columns": "'x': lag(n=1, by=['u'], order=['s'])",
              "inputs": [{"name": "x", "type": "DOUBLE", "needed": True}, {"name": "u", "type": "", "needed": True},
                         {"name": "s", "type": "DATE", "needed": True}], "fitted": [], "outputs": [], "groups": [], "layers": []}
    whole_group = group | {"inputs": [{"name": "w", "type": "VARCHAR", "needed": True}, *group["inputs"][1:]]}
    return ({name: compact(whole | change) for name, change in changes.items()} |
            {"group": compact(whole_group), "group-list": compact(group), "group-window": compact(window),
             "group-qualify": compact(whole_group | {"qualify": ["true"]}), "group-dedupe": compact(whole_group | {"dedupe": "("})} |
            {f"text-{i}": text.encode() for i, text in enumerate(texts)} | {"deep": b"[" * 3000})


def board_request(golden):
    """Paths, hosts, and beginnings of files."""
    texts = ["/", "/api/runs", "/api/run/20261117T201530-4711", "/api/step/decode", "/api/action/decode-42", "/api/compare/a-1/b-2",
             "/api/events", "/blob/" + "0123456789abcdef" * 4, "/blob/..%2f..", "127.0.0.1:8642", "[::1]:80", "localhost",
             "<?xml version='1.0'?><!-- x --><svg>", "\n<!doctype html>", "a,b\n1,2\n"]
    return {str(i): text.encode() for i, text in enumerate(texts)}


def board_log(golden):
    """The log of a run, whole, with lines that are no events, and cut."""
    steps = [{"step": "decode", "actions": 3, "in": ["epochs"]}, {"step": "group", "actions": 1, "in": ["decode"]}]
    action = {"at": 2.5, "step": "decode", "slice": "s=1", "id": "decode-1"}
    lines = [{"event": "begin", "at": 1.5, "run": "r", "targets": [], "jobs": 2, "steps": steps},
             {"event": "cached", "at": 2, "step": "decode", "count": 1, "saved_s": 1.5}, action | {"event": "start"},
             action | {"event": "retry", "why": "exited with 1"}, action | {"event": "failed", "why": "exited with 1", "log": "ab" * 32},
             action | {"event": "ran", "slice": "s=2", "key": "cd" * 32, "seconds": 1}, {"event": "skipped", "at": 3, "step": "group", "count": 1},
             {"event": "end", "at": 4, "actions": 4, "failed": 1, "seconds": 2.5}]
    whole = b"".join(compact(line) + b"\n" for line in lines)
    return {"whole": whole, "cut": whole[:-30], "junk": b"{}\n[]\n\n" + whole[:200] + b"\r\n" + whole}


def code(golden):
    """Records of imports, patterns, texts that name files, and texts to compare; the first byte says which."""
    records = [(b"python", b"/usr/bin/python3", b"3.11.2", b"/usr/lib/"), (b"path", b"/p", b"/q"), (b"top", b"json", b"/q/json.py"), (b"top", b"none"),
               (b"sub", b"mod", b"-", b"/p/pkg"), (b"file", b"/p/main.py")]
    data = b"".join(b"".join(text + b"\0" for text in record) + b"\0" for record in records)
    texts = [b"sh lib/run.sh \"$x\" ${y}.sql", b"python main.py 'a b.sh' ../q.sql ./*.sql", b"f'{a}.sql' %s.sh {,", b"... . .. ${ $ % {x"]
    return {
        "records": b"\0" + data,
        "half": b"\0" + data[:-9],
        **{f"glob-{i}": b"\1" + text for i, text in enumerate([b"**/*.{py,sh}", b"{a,{b,c}}/**", b"{{{,}}}", b"a/[b/c", b"*" * 60, b"a/" * 63])},
        **{f"text-{i}": b"\2" + text for i, text in enumerate(texts)},
        "diff": b"\3a\nb\nc\nd\0a\nx\nc\nd\ne",
        "same": b"\3a\nb\n\0a\nb\n",
    }


def tree(golden):
    """Lists of folders, some of which are refused."""
    hex = b"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    whole = b"d %s 5 a%%20b\nf %s 0 b\nl ../../x%%0A l\nx %s 18446744073709551615 \xff\n" % (hex, hex, hex)
    return {"whole": whole, "empty": b"", "cut": whole[:-1], "order": b"f %s 1 b\nf %s 1 a\n" % (hex, hex),
            "path": b"f %s 1 ../a\n" % hex, "up": b"f %s 1 ..\n" % hex, "zero": b"f %s 01 a\n" % hex,
            "escape": b"f %s 1 %%41\n" % hex, "root": b"l /etc a\n", "hidden-up": b"l a/../.. b\n"}


def csv_split(golden):
    """Columns, bytes at a time, a quarter of the longest record, then the text."""
    texts = {"clean": b'a,b\r\n"c, ""d""","e\nf"\r\n', "after": b'"a" x,1\nb,2\n', "inside": b'a,5" x\nb,2\n',
             "unclosed": b'"a,1\nb,2\n"c",3\nd,4', "closes": b'"a,1\nb,2\nc" x,3\nd,4', "lines": b'"a\nb",2,3\nc,4\n',
             "long": b'a,1\n' + b'x' * 200 + b',2\nb,3\n', "bytes": b'\xef\xbb\xbfa,\xff\n\0,b\nc,\xc3\xa4', "return": b'a\rb,1\n\r\n\rc,2\r',
             "values": b'-9223372036854775808,2026-02-29\n1e309,2026-11-18T12:30:00.123456+02:00\n99999999999999999999.5,tRUE\n'}
    return {f"{name}-{i}": bytes(how) + text for name, text in texts.items() for i, how in enumerate([(2, 255, 255), (0, 0, 3)])}


def json_line(golden):
    texts = [b'{"a":1,"b":"x","c":null,"d":true,"e":[1,{"f":"]"}]}', b'{"a":"\\ud83d\\ude00\\n\\u00e4"}', b'{"a":-12345678901234567890.5e+10}',
             b'{"a":[[[[]]]],}', b'{"a":\xff}', b'{} {}', b'{"a":01}', b'{"a":"\\u0000"}', b'[' * 100]
    return {str(i): text for i, text in enumerate(texts)}


def manifest(golden):
    """With an odd first byte, the fuzzer corrects the key."""
    hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    whole = {"leat": 1, "key": hex, "step": "decode", "slice": "subject=3", "number": 42,
             "fields": [["kind", "run 1"], ["command", "x"], [{"hex": "ff41"}, "y"]], "learned": 1,
             "output": "folder 5 " + hex, "log": hex, "run": "20261117T201530-4711", "begun": 1.5, "seconds": 1,
             "cpu_s": 0.5, "peak_bytes": 1 << 40, "cpus": 1, "threads": 2, "attempts": 1, "metrics": "{}", "warning": ""}
    changes = {"whole": {}, "number": {"number": -1}, "learned": {"learned": 4}, "fields": {"fields": [["a"]]},
               "hex": {"step": {"hex": "00"}}, "output": {"output": "none 1 " + hex}, "time": {"begun": "x"},
               "none": {"fields": []}, "text": {"fields": [["kind", "run 1"]], "learned": 0}}
    return {name: b"1" + compact(whole | change) for name, change in changes.items()} | {"deep": b"0" + b"[" * 3000}


def order(golden):
    """Orders after an odd byte, results after an even one."""
    hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    whole = {"order": 1, "step": "decode", "suffix": ".npy", "command": "x", "feed": "", "params": [["folds", "10"]],
             "slice": [["subject", "3"]], "env": [["A", ""]], "input_slices": {"a": [{"entry": "3", "slice": {"s": "3"}}]},
             "inputs": [{"name": "a", "suffix": ".npy", "content": "file 5 " + hex},
                        {"name": "b", "suffix": "", "content": "folder 5 " + hex, "path": "/data"}],
             "code": "folder 9 " + hex, "checkpoint": hex, "seed": "7", "memory": "0", "timeout": 0, "cpus": 1}
    changes = {"whole": {}, "name": {"step": "../x"}, "path": {"inputs": [{"name": "b", "suffix": "", "path": "x",
               "content": "file 1 " + hex}]}, "code": {"code": "file 1 " + hex}, "cpus": {"cpus": 0},
               "seed": {"seed": "-1"}, "slices": {"input_slices": []}, "pair": {"params": [["a"]]}}
    result = {"outcome": "ran", "code": 0, "log": hex, "seconds": 0.1, "cpu_s": 0, "peak_bytes": 1, "threads": 1,
              "output": "file 5 " + hex, "imports": "folder 5 " + hex, "metrics": "{}", "warning": "", "why": "",
              "work": "/tmp"}
    results = {"ran": {}, "none": {"outcome": "exited"}, "outcome": {"outcome": "walked"}, "time": {"seconds": -1}}
    return ({name: b"1" + compact(whole | change) for name, change in changes.items()} |
            {"result-" + name: b"0" + compact(result | change) for name, change in results.items()})


def main(stamp, golden):
    golden, folder = pathlib.Path(golden), pathlib.Path(stamp).parent / "seeds"
    seeds = archive.read(ROOT / "fuzz" / "seeds.tar")
    makers = [board_log, board_request, cache, checks, code, credentials, csv_split, data_index, disk_table, features, http_head, image, jpeg, json_line, manifest, mds, merge, npy, order, parquet, png, proc, project, report, s3_list, set, sidecar, tar, tfds, tfrecord_gz, tree]
    for maker in *makers, sql, url, webp:
        for name, data in maker(golden).items():
            if seeds.setdefault(f"{maker.__name__}/{name}", data) != data:
                sys.exit(f"seeds.tar and seeds.py both have {maker.__name__}/{name}")
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in seeds.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    pathlib.Path(stamp).touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
