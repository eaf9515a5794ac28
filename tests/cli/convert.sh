# What comes out of a spec is stored, and reads back as it was.
mkdir -p cells/a cells/b
for name in 420.jpg progressive.jpg rgb.jpg restart.jpg; do cp "$golden/tf/$name" cells/a; done
for name in rgb.png palette2.png pixel.png; do cp "$golden/tf/$name" cells/b; done
leat pack cells -o cells --shards 2 >/dev/null
files="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64, name=bytes(key=filename))"
pixels="$files | decode | resize(8, 6) | cast(uint8)"

# What Python reads of each format: FILES... as {position: {field: (type, shape, bytes)}}.
cat >values.py <<'PYTHON'
import ast, struct, sys, tarfile
SIZE = {"u1": 1, "i4": 4, "i8": 8, "f2": 2, "f4": 4, "f8": 8}
def npy(b):
    assert b[:8] == b"\x93NUMPY\x01\0", b[:8]
    n, = struct.unpack_from("<H", b, 8)
    assert (10 + n) % 64 == 0 and b[9 + n:10 + n] == b"\n"
    head = ast.literal_eval(b[10:10 + n].decode())
    assert head["fortran_order"] is False
    return head["descr"][1:], head["shape"], b[10 + n:]
def varint(b, i):
    n = shift = 0
    while True:
        n |= (b[i] & 127) << shift
        i, shift = i + 1, shift + 7
        if b[i - 1] < 128:
            return n, i
def fields(b):
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        n, i = varint(b, i)
        assert tag & 7 == 2
        yield tag >> 3, b[i:i + n]
        i += n
def int64s(b):
    i, out = 0, []
    while i < len(b):
        n, i = varint(b, i)
        out.append(n - (n >> 63 << 64))
    return out
def tfrecord(paths):
    samples = []
    for path in paths:
        data, at = open(path, "rb").read(), 0
        while at < len(data):
            n, = struct.unpack_from("<Q", data, at)
            row = {}
            for _, entry in fields(next(fields(data[at + 12:at + 12 + n]))[1]):
                entry = dict(fields(entry))
                (kind, values), = fields(entry[2])
                value = next(fields(values))[1]
                row[entry[1].decode()] = value if kind == 1 else struct.unpack("<%df" % (len(value) // 4), value) if kind == 2 else int64s(value)
            samples.append(row)
            at += n + 16
    return samples
def tar(paths):
    samples = {}
    for path in paths:
        t = tarfile.open(path, "r:")
        for m in t:
            key, name = m.name.split(".", 1)
            samples.setdefault(key, {})[name] = t.extractfile(m).read()
    return samples
PYTHON

checksum() { leat feed "$1 | batch(3)" --seed 7 --checksum | sed -n 's/^checksum //p'; }
same() { # NAME SPEC OPTIONS...: stored it reads back with the same values at the same places
	name=$1 spec=$2
	shift 2
	leat convert "$spec" -o "$name" --seed 7 "$@" >said
	back=$(tail -n 1 said)
	[ "$(checksum "$spec")" = "$(checksum "$back")" ] && echo "$name: the same"
}

try leat convert "$files" -o whole
same images "$files | shuffle | repeat(3)"
same pixels "$pixels | shuffle"
same floats "$pixels | scale(1/255) | random_flip | random_brightness(0.2)"
same planar "$pixels | scale(1/255) | layout(chw)"
leat convert "$pixels | cast(float16)" -o halves | tail -n 1
leat convert "$files | decode" -o ragged | tail -n 1

echo "# numbers of every kind, and what is said of them"
leat convert "$pixels | take(2) | cast(float64)" -o doubles --seed 7
leat convert "$pixels | take(2) | cast(int32)" -o ints --seed 7
leat convert "$pixels | take(2) | cast(int32, field=label)" -o ints --seed 7 --overwrite --format tar
leat convert "$files | decode | take(3)" -o ragged-again --seed 7 >/dev/null
python3 - <<'PYTHON'
from values import *
d, i, r = tfrecord(["doubles-00000-of-00001.tfrecord"]), tfrecord(["ints-00000-of-00001.tfrecord"]), tfrecord(["ragged-again-00000-of-00001.tfrecord"])
print([list(map(int, x["image"])) == y["image"] for x, y in zip(d, i)], d[0]["image_shape"], sorted(i[0]))
print([(x["image_shape"], len(x["image"])) for x in r])
PYTHON

echo "# shards by number and by size; the same bytes with any number of threads"
leat convert "$pixels | shuffle" -o one --shards 3 -j 1 | sed -n 1p
leat convert "$pixels | shuffle" -o two --shards 3 -j 7 | sed -n 1p
for i in 0 1 2; do cmp one-0000$i-of-00003.tfrecord two-0000$i-of-00003.tfrecord; done
leat convert "$pixels | shuffle" -o one --shard-size 500 --overwrite | sed -n 1p
ls -A | grep one-

echo "# tar: files as they are, numbers as text, tensors as .npy"
try leat convert "$files" -o new/cells --format tar --shards 2
tar -tf new/cells-00001-of-00002.tar | head -n 6
try leat convert "$pixels | scale(1/255) | take(3)" -o tensors --format tar
leat convert "$pixels | scale(1/255) | take(3)" -o tensors | tail -n 1
leat convert "$files" -o back >/dev/null
python3 - <<'PYTHON'
from values import *
t, r = tar(["new/cells-00000-of-00002.tar", "new/cells-00001-of-00002.tar"]), tfrecord(["back-00000-of-00001.tfrecord"])
print(sorted(t) == ["%08d" % i for i in range(len(r))], all(
    x.get("image.jpg", x.get("image.png")) == y["image"] and int(x["label.cls"]) == y["label"][0] and x["name.bin"] == y["name"]
    for x, y in zip(t.values(), r)))
t, r = tar(["tensors-00000-of-00001.tar"]), tfrecord(["tensors-00000-of-00001.tfrecord"])
print([npy(x["image.npy"])[:2] for x in t.values()], all(
    struct.unpack("<144f", npy(x["image.npy"])[2]) == y["image"] and [8, 6, 3] == y["image_shape"] for x, y in zip(t.values(), r)))
PYTHON

same tars "$files | shuffle" --format tar
same again "$(tail -n 1 said)" --format tar
same named "tar('tars-*.tar', fields=['name.bin', 'label.cls'])" --format tar # fields named like files keep their names
tail -n 1 said

echo "# npy: an array for each field"
try leat convert "$pixels" -o arrays --format npy
arrays="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | decode | resize(8, 6) | cast(uint8)"
try leat convert "$arrays" -o arrays --format npy
python3 - <<'PYTHON'
from values import *
r = tfrecord(["pixels-00000-of-00001.tfrecord"])
image, label = (npy(open("arrays/%s.npy" % name, "rb").read()) for name in ("image", "label"))
print(image[:2], label[:2], len(image[2]), sorted(struct.unpack("<7q", label[2])) == sorted(x["label"][0] for x in r))
print(sorted(image[2][i * 144:i * 144 + 144] for i in range(7)) == sorted(x["image"] for x in r))
PYTHON
ls -A arrays
same more "$arrays | shuffle" --format npy
try leat convert "$arrays" -o arrays --format npy
try leat convert "$arrays | take(2)" -o arrays --format npy --overwrite

echo "# what is wrong"
try leat convert "$files"
try leat convert "$files | decod" -o x
try leat convert "$arrays" -o x --format npy --shards 2
try leat convert "$files" -o x --shards 8
try leat convert "$pixels | cast(bfloat16)" -o x --format tar
try leat convert "$files" -o whole
try leat convert "$files" -o cells/a/rgb.jpg/x
try leat convert "tfrecord('cells-*.tfrecord') | example(image=bytes, image_shape=int64(default=1)) | decode" -o x
ls -A | grep '^.\?x'

echo "# bad samples"
head -c 400 "$golden/tf/420.jpg" >cells/a/0.jpg
leat pack cells -o worse --shards 1 --no-shuffle >/dev/null
worse="tfrecord('worse-*.tfrecord') | example(image=bytes, label=int64) | decode | resize(8, 6)"
try leat convert "$worse" -o good
try leat convert "$worse" -o good --on-error skip --shards 8
try leat convert "$worse" -o good --on-error skip --format npy
try leat convert "$worse" -o good --on-error replace --overwrite
try leat convert "$worse" -o good --on-error skip --max-bad 0 --overwrite
try leat convert "$worse | take(1)" -o none --on-error skip
ls -A | grep 'none\|good'

echo "# stopped, it leaves what was there"
cksum whole-* >before
leat convert "$files | repeat(100000000)" -o whole --overwrite --shard-size 10KB &
until ls .whole-00002-of-* >/dev/null 2>&1; do sleep 0.01; done
kill -INT $!
wait $!
echo "exit $?"
ls -A | grep whole
cksum whole-* | cmp - before && echo "the earlier file is as it was"
