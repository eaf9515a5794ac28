# One hostile sample does not end a feed that skips or replaces, whatever the memory; limits are options.
mkdir -p f/a
python3 - <<'PYTHON'
import gzip, struct, zlib

def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def png(width, height, rows, color=2):
    pixel = 3 if color == 2 else 1
    packer, data = zlib.compressobj(9), []
    for _ in range(rows):
        data.append(packer.compress(bytes(1 + pixel * width)))
    data.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"".join(data)) + chunk(b"IEND")

for i in range(20):
    open(f"f/a/{i:02}.png", "wb").write(png(10 + i, 30 - i, 30 - i))
open("f/a/03-claims.png", "wb").write(png(10000, 10000, 0))
open("f/a/07-empty.png", "wb").write(png(9000, 9000, 0))
open("f/a/11-whole.png", "wb").write(png(10000, 10000, 10000))
open("large.png", "wb").write(png(12000, 9000, 9000, 0))

TABLE = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)

def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF

with gzip.open("giant.tfrecord", "wb", 9) as out:
    for i in range(20):
        data = b"record %d" % i
        head = struct.pack("<Q", len(data) if i != 5 else 400 * 1000 * 1000)
        out.write(head + struct.pack("<I", masked(crc32c(head))))
        if i == 5:
            for _ in range(400):
                out.write(bytes(1000 * 1000))
        else:
            out.write(data)
        out.write(struct.pack("<I", masked(crc32c(data))))
PYTHON

outcome() {
	leat feed "$@" --quiet --checksum --json | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(d["samples"], d["checksum"])
for bad in d["bad"]:
    print("%(sample)d %(uri)s %(offset)d %(reason)s" % bad)' >got
	[ -e first ] || { cp got first; cat got; }
	cmp got first
}

for spec in "folder('f') | decode | resize(8, 8) | batch(4)" "tfrecord('giant.tfrecord', crc=false) | batch(4)"; do
	for how in skip replace; do
		echo "# $how: $spec"
		rm -f first
		for memory in 24MiB 64MiB 512MiB 2GiB; do
			rm -f .giant.tfrecord.leatidx
			outcome "$spec" --on-error $how --memory $memory -j 1
			outcome "$spec" --on-error $how --memory $memory -j 3
		done
	done
done

echo "# other limits"
rm -r f/a/*-*.png
mv large.png f/a/large.png
large="folder('f') | decode(channels=1) | resize(8, 8) | batch(4)"
try leat feed "$large" -q -j 1
rm -f first
outcome "$large" --max-pixels 108000000 --memory 1GiB -j 1
leat feed "$large" -q --max-pixels 108000000 --memory 100MiB -j 1 2>&1 | sed 's/[0-9.]* MiB/N MiB/g'
rm -f first
outcome "$large" --max-pixels 1000000 --memory 100MiB -j 1 --on-error skip
try leat feed "$large" -q --max-bytes 1kB -j 1
try leat feed "$large" -q --max-pixels 0
try leat look "$large" --max-pixels 100
try leat convert "$large" -o out --max-pixels 100
try leat pack f -o out --max-bytes 1kB
try leat pack "folder('f') | decode" -o out --max-pixels 100
