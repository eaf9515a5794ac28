# Steps whose result is shards. Times vary, so they are T.
export XDG_CACHE_HOME=$PWD/cache
build() {
	printf '$ leat build %s\n' "$*"
	leat build -j 1 "$@" >built 2>&1
	code=$?
	sed -E -e 's/(ran|made before|failed), in [0-9].*$/\1/' -e 's/ in [0-9.]+ s/ in T/' -e 's/^([a-z]+)-[0-9]+/\1/' \
		-e "s|$PWD/\\.leat/tmp/[^/]*/[0-9]*|SANDBOX|" -e "s/(leat log [a-z]+)-[0-9]+/\1-N/" built
	[ $code -eq 0 ] || printf '[exit %d]\n' $code
}

mkdir raw
leat sql "SELECT i AS user, i * 0.5e0 AS amount FROM range(1000) t(i)" -o raw/events.parquet >/dev/null
cat >leat.yaml <<'END'
sources:
  events: raw/events.parquet
steps:
  shards: {shards: events, format: tfrecord, count: 4, seed: 1}
END
build
build
ls -A out/shards/
leat log shards-1
leat show shards-1 | grep -E 'kind|command|seed|input|metrics' | sed 's/, [0-9.]* KiB.*//'

# A feed reads it, and leaves the store as it is.
leat feed "tfrecord('out/shards/*.tfrecord') | example(user=int64, amount=float) | shuffle | batch(64)" --epochs 1 --checksum \
	| grep -E '^  samples|^checksum'
ls -A out/shards/
leat fsck | grep -o clean

# The same rows by another number of threads are the same shards; a table that was copied is the same table.
sed -i 's/seed: 1/seed: 1, cpus: 2, memory: 512MiB/' leat.yaml
cp raw/events.parquet copy && mv copy raw/events.parquet
build
build --again
# Another seed or count is another result; without a seed, rows keep their order.
sed -i 's/seed: 1/seed: 2/' leat.yaml
build
sed -i 's/, seed: 2//' leat.yaml
build
leat convert "tfrecord('out/shards/*.tfrecord') | example(user=int64)" -o order --format npy >/dev/null
python3 -c "
import struct
data = open('order/user.npy', 'rb').read()
print('in order' if struct.unpack('<1000q', data[-8000:]) == tuple(range(1000)) else 'shuffled')"

# Rows that a query makes, of which there are too few.
cat >leat.yaml <<'END'
sources:
  events: raw/events.parquet
steps:
  few: {sql: 'SELECT "user", amount FROM events WHERE "user" < 3', key: user}
  shards: {shards: few, count: 4}
END
build
sed -i 's/count: 4/count: 3/' leat.yaml
build
ls out/shards/

# What leat.yaml must not say.
for step in '{shards: event, count: 4}' '{shards: events}' '{run: "true", count: 3}' '{shards: events, count: 0}' \
	'{shards: events, count: 4, format: csv}' '{shards: [events], count: 4}' \
	'{shards: events, count: 4, seed: 18446744073709551615}'; do
	printf 'sources:\n  events: raw/events.parquet\nsteps:\n  x: %s\n' "$step" >leat.yaml
	leat graph 2>&1
done

# Straight from features: a folder for each part. An edit of the image files runs the step again, and nothing else does.
mkdir photos
leat sql "SELECT i AS user, i * 0.5e0 AS amount, (i % 3) || '.png' AS photo FROM range(1000) t(i)" -o raw/events.parquet >/dev/null
python3 - <<'END'
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(3):
    rows = b"".join(b"\0" + bytes((x + y * i) % 256 for x in range(48)) for y in range(12))
    open(f"photos/{i}.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 12, 8, 2, 0, 0, 0))
                                       + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
cat >leat.yaml <<'END'
sources:
  events: raw/events.parquet
  photos: photos/*.png
steps:
  feats: {features: events, split: {by: user, train: 80%, test: 20%}, columns: {user: keep, amount: standardize, photo: vocab}}
  parts: {shards: feats, format: npy, count: 2, seed: 1}
  rows: {shards: feats, format: parquet, compression: snappy, count: 2, parts: none}
  images: {shards: events, format: tar, count: 2, images: photo, root: photos, resize: 8, quality: 80, rejects: 0.1%}
END
build | sort
find out/parts/ out/rows/ out/images/ -type f | sort
leat feed "npy(user='out/parts/train/user-*.npy', amount='out/parts/train/amount-*.npy') | batch(100)" --epochs 1 | grep '^  samples'
leat sql --csv "SELECT count(*) AS rows, count(DISTINCT user) AS users, min(split) AS a, max(split) AS b FROM rows"
leat log images | tail -2
build | tail -1
cp photos/2.png photos/1.png
build | tail -2
echo broken >photos/1.png
build | grep -v 'see\|^$' | tail -4

for step in '{shards: events, count: 4, images: photo}' '{shards: events, count: 4, resize: 8}' \
	'{shards: events, count: 4, images: photo, root: photo}' '{shards: events, count: 4, images: photo, root: photos, rejects: many}'; do
	printf 'sources:\n  events: raw/events.parquet\n  photos: photos/*.png\nsteps:\n  x: %s\n' "$step" >leat.yaml
	leat graph 2>&1 | head -1
done
