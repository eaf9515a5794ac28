# Tables as TFRecord shards. What is in them is read by the oracles, which share no code with Leat.
cat >oracle.py <<'END'
"""oracle.py FILE...: the column `user` of all records, and where the seed's permutation puts each row"""
import os, sys
sys.path.insert(0, os.environ["tests"])
import plan_oracle, tfrecord_oracle

def users(path):
    for data in tfrecord_oracle.records(open(path, "rb").read()):
        for _, _, features in tfrecord_oracle.fields(data):
            for _, _, entry in tfrecord_oracle.fields(features):
                parts = {number: value for number, _, value in tfrecord_oracle.fields(entry)}
                if parts[1] == b"user":
                    for kind, _, message in tfrecord_oracle.fields(parts[2]):
                        yield from (int(value) for value in tfrecord_oracle.values(kind, message))

shards = [list(users(path)) for path in sys.argv[2:]]
rows = [user for shard in shards for user in shard]
n = len(rows)
print("rows", n, "shards of", *sorted({len(shard) for shard in shards}))
want = list(range(n))
if sys.argv[1] != "order":
    for row, position in enumerate(plan_oracle.perm(n, int(sys.argv[1]), 0, plan_oracle.stream_of("shards", 0))):
        want[position] = row
print("as expected" if rows == want else f"other rows: {rows[:5]} instead of {want[:5]}")
END
tests=$here/.. PYTHONDONTWRITEBYTECODE=1
export tests PYTHONDONTWRITEBYTECODE

# Every type, as the definition of tf.train.Example reads it.
leat sql "SELECT * FROM (VALUES
	(1, true, 1.5::FLOAT, 0.1::DOUBLE, 2.25::DECIMAL(9, 2), 'text', '\xAA\x00'::BLOB, DATE '1970-01-02',
	 TIMESTAMP '2026-01-01 00:00:00.000001', TIME '00:00:01', [1, 2], ['a', ''], [0.5, 0.25]),
	(2, false, NULL, -1e300, -0.01, '', ''::BLOB, DATE '1969-12-31', TIMESTAMP '1960-01-01', TIME '23:59:59', [], [], []),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL))
	t(i, b, f, d, dec, t, bl, date, ts, time, l, tl, fl)" -o types.parquet >/dev/null
try leat shards types.parquet -o types --count 1
python3 "$tests/tfrecord_oracle.py" dump types/shard-00000-of-00001.tfrecord
leat sql "SELECT 127::TINYINT a, (-32768)::SMALLINT b, 2147483647::INT c, (-9223372036854775808)::BIGINT d, 255::UTINYINT e,
	65535::USMALLINT f, 4294967295::UINTEGER g, 9223372036854775807::UBIGINT h,
	'00000000-0000-0000-0000-00000000002a'::UUID u, '2026-01-01 00:00:00.123456789'::TIMESTAMP_NS n,
	[DATE '1970-01-02'] l, ['1970-01-01 00:00:01'::TIMESTAMP_NS] nl, '2026-01-01 00:00:00+01'::TIMESTAMPTZ z" -o ints.parquet >/dev/null
leat shards ints.parquet -o ints --count 1 --quiet && python3 "$tests/tfrecord_oracle.py" dump ints/*.tfrecord

# In order, and shuffled; equal counts, and the same bytes for any number of threads and any memory.
leat sql "SELECT i AS user, i / 7 AS amount, repeat('x', i % 50) AS name FROM range(5003) t(i)" -o t.parquet >/dev/null
try leat shards t.parquet -o kept --count 3
python3 oracle.py order kept/*.tfrecord
try leat shards t.parquet -o mixed --count 16 --seed 1 --threads 1
python3 oracle.py 1 mixed/*.tfrecord
ls -A mixed | grep -v '^\.*shard-0000[1-9]\|^\.*shard-0001'
for options in "--threads 2" "--threads 3 --memory 32MiB"; do
	leat shards t.parquet -o again --count 16 --seed 1 --overwrite --quiet $options
	for shard in mixed/*.tfrecord; do cmp $shard again/${shard#*/}; done
done
leat shards t.parquet -o other --count 16 --seed 2 --quiet
cmp -s mixed/shard-00000-of-00016.tfrecord other/shard-00000-of-00016.tfrecord || echo "another seed, another order"

# A feed reads all rows, by the index that was written along.
try leat index 'mixed/*.tfrecord' --quiet
spec="example(user=int64, amount=float, name=bytes) | batch(64)"
leat feed "tfrecord('mixed/*.tfrecord') | $spec" --quiet --epochs 1 --checksum >a
leat feed "tfrecord('kept/*.tfrecord') | $spec" --quiet --epochs 1 --checksum >b
head -1 a

# Several files are one table, in the order given; folders by name.
mkdir -p days/2
leat sql "SELECT i AS user FROM range(100) t(i)" -o days/1.parquet >/dev/null
leat sql "SELECT i AS user FROM range(100, 150) t(i)" -o days/2/b.parquet >/dev/null
leat sql "SELECT i AS user FROM range(150, 151) t(i)" -o days/3.parquet >/dev/null
echo hidden >days/_SUCCESS
leat shards days -o folder --count 2 --quiet && python3 oracle.py order folder/*.tfrecord
leat shards days/1.parquet 'days/2/*.parquet' days/3.parquet -o list --count 4 --quiet && python3 oracle.py order list/*.tfrecord

# Only the shards, as in steps.
leat shards days -o plain --count 2 --plain && ls -A plain

# What is wrong is named.
try leat shards t.parquet -o kept --count 4
try leat shards t.parquet -o none --count 6000
try leat shards t.parquet -o none
try leat shards missing.parquet -o none --count 1
try leat shards a -o none --count 1
mkdir empty
try leat shards empty -o none --count 1
try leat shards s3://bucket/t.parquet -o none --count 1
try leat shards t.parquet types.parquet -o none --count 1
head -c 3000 t.parquet >cut.parquet
try leat shards cut.parquet -o none --count 1
leat sql "SELECT 1 AS user WHERE false" -o rows.parquet >/dev/null
try leat shards rows.parquet -o none --count 1
leat sql "SELECT {'a': 1} AS pair" -o struct.parquet >/dev/null
try leat shards struct.parquet -o none --count 1
leat sql "SELECT [[1]] AS nested" -o nested.parquet >/dev/null
try leat shards nested.parquet -o none --count 1
leat sql "SELECT i AS user, CASE WHEN i = 2 THEN [1, NULL] ELSE [1] END AS some FROM range(4) t(i)" -o null.parquet >/dev/null
try leat shards null.parquet -o none --count 1
leat sql "SELECT 18446744073709551615::UBIGINT AS big" -o big.parquet >/dev/null
try leat shards big.parquet -o none --count 1 --seed 1
try leat shards t.parquet -o none --count 1 --memory 1MiB
ls none

# ---- other formats ----
# The same seed is the same order in all of them, and feeds read the same values.
leat sql "SELECT i AS user, i / 7 AS amount, [i, -i] AS pair, i % 3 = 0 AS third, 'name ' || i AS name,
	TIMESTAMP '2026-01-01' + to_seconds(i) AS ts, (i * 0.25)::DECIMAL(9, 2) AS price FROM range(1003) t(i)" -o all.parquet >/dev/null
leat sql "SELECT * EXCLUDE name FROM 'all.parquet'" -o numbers.parquet >/dev/null
values() { # FORMAT SPEC: the fields as arrays; Examples have no float64
	leat convert "$2 | select(user, amount, ts, price)" -o got-$1 --format npy >/dev/null ||
		echo "$1 cannot be read"
	cmp got-$1/user.npy got-parquet/user.npy && cmp got-$1/ts.npy got-parquet/ts.npy
	[ $1 = tfrecord ] || { cmp got-$1/amount.npy got-parquet/amount.npy && cmp got-$1/price.npy got-parquet/price.npy; }
}
for format in parquet tar npy tfrecord; do
	table=all.parquet
	[ $format = npy ] && table=numbers.parquet
	try leat shards $table -o $format --format $format --count 3 --seed 1 >out
	sed -e 's/, [0-9.]* [KM]iB$/, SIZE/' out
	values $format "$(tail -1 out)"
	for options in "--threads 1" "--threads 4 --memory 256MiB"; do
		leat shards $table -o again-$format --format $format --count 3 --seed 1 --overwrite --quiet $options
		(cd $format && ls *) | while read -r shard; do cmp $format/$shard again-$format/$shard; done
	done
done
leat convert "$(leat shards all.parquet -o gz --compression gzip --count 2 --seed 1 | tail -1) | select(user)" -o got-gz --format npy >/dev/null
cmp got-gz/user.npy got-parquet/user.npy
ls -A gz npy tar
leat index 'tar/*.tar' 'gz/*.gz' --quiet

# Parquet keeps rows and types; without a seed, all keep their order.
leat sql --csv "DESCRIBE SELECT * FROM 'parquet/*.parquet'" | cut -d, -f1,2
leat sql --csv "SELECT count(*) AS other FROM (FROM 'parquet/*.parquet' EXCEPT ALL FROM 'all.parquet')"
for format in parquet npy tar; do
	leat convert "$(leat shards numbers.parquet -o order-$format --format $format --count 4 | tail -1) | select(user)" -o order --format npy --overwrite >/dev/null
	python3 -c "
import struct
data = open('order/user.npy', 'rb').read()
print('in order' if struct.unpack('<1003q', data[-1003 * 8:]) == tuple(range(1003)) else 'another order')"
done
leat shards types.parquet -o kinds --format parquet --count 1 --quiet
leat sql --csv "SELECT count(*) AS other FROM (FROM 'kinds/*.parquet' EXCEPT ALL FROM 'types.parquet')"
for codec in none snappy gzip; do
	leat shards all.parquet -o codec-$codec --format parquet --compression $codec --count 1 --quiet
	leat sql --csv "SELECT DISTINCT compression FROM parquet_metadata('codec-$codec/*.parquet')" | tail -1
done

# Tar files as Python reads them: a sample is a key, and has a file for each value.
python3 - <<'END'
import tarfile, glob
rows = {}
for path in sorted(glob.glob("tar/*.tar")):
    for member in (archive := tarfile.open(path)):
        key, _, field = member.name.partition(".")
        rows.setdefault(key, {})[field] = archive.extractfile(member).read()
first = rows["00000000"]
user = int(first["user.cls"])
print(len(rows), "samples with", *sorted(first))
print(first["name.txt"].decode() == f"name {user}", sorted(int(r["user.cls"]) for r in rows.values()) == list(range(1003)))
END

# Parts of a split, each shuffled by itself; a table of features is its rows, not its dictionaries.
leat features all.parquet -o feats --split 'user: train 80%, test 20%' --columns 'user: keep; name: vocab' >/dev/null
try leat shards feats -o parts --count 3 --seed 1 | sed 's/, [0-9.]* KiB$/, SIZE/'
find parts -name '*.tfrecord' | sort
python3 -c "
import sys; sys.argv = ['', 'order']
exec(open('oracle.py').read().split('shards = ')[0])
import glob
seen = sorted(u for path in glob.glob('parts/*/*.tfrecord') for u in users(path))
print('all rows once' if seen == list(range(1003)) else seen[:9])"
leat shards feats -o whole --count 3 --parts none --quiet && ls whole
leat shards all.parquet -o thirds --count 2 --parts third --format npy --quiet 2>&1
leat sql "SELECT user, third FROM 'all.parquet' WHERE user < 4" -o few.parquet >/dev/null
leat shards few.parquet -o thirds --count 3 --parts third --format npy && find thirds -name '*.npy' | sort

# Image files in place of their names.
python3 - <<'END'
import os, struct, zlib
os.makedirs("photos/a")
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(12):
    width, height = 30 + i, 20 + i
    rows = b"".join(b"\0" + bytes((x * 7 + y * i + c * 50) % 256 for x in range(width) for c in range(3)) for y in range(height))
    open(f"photos/a/{i}.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                                          + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
leat sql "SELECT 'a/' || i || '.png' AS image, i AS label FROM range(12) t(i)" -o photos.parquet >/dev/null
for format in tfrecord tar parquet; do
	leat shards photos.parquet -o pictures-$format --format $format --images image --root photos --count 2 --seed 1 | tail -1 >spec
	cat spec
	leat convert "$(cat spec) | select(label, image)" -o pixels-$format --format tar --shards 1 >/dev/null || cat spec
	tar xf pixels-$format-00000-of-00001.tar -O 00000000.image.png >image-$format
done
cmp image-tfrecord image-tar && cmp image-tar image-parquet
python3 -c "
label = [i for i in range(12) if open(f'photos/a/{i}.png', 'rb').read() == open('image-tar', 'rb').read()]
print('the bytes of the file' if len(label) == 1 else label)"
for threads in 1 4; do
	leat shards photos.parquet -o small-$threads --images image --root photos --count 2 --seed 1 --resize 24 --quality 80 --quiet --threads $threads
	cmp small-$threads/shard-00001-of-00002.tfrecord small-1/shard-00001-of-00002.tfrecord
done
leat feed "tfrecord('small-1/*') | example(image=bytes, label=int64) | decode | resize(24, 24) | batch(12)" --epochs 1 --quiet | head -1
rm photos/a/3.png && head -c 200 photos/a/7.png >cut && mv cut photos/a/7.png
try leat shards photos.parquet -o broken --images image --root photos --count 2
try leat shards photos.parquet -o broken --images image --root photos --count 2 --rejects 1
try leat shards photos.parquet -o broken --images image --root photos --count 2 --rejects 20% | sed 's/, [0-9.]* KiB$/, SIZE/'
cat broken/rejects.jsonl
leat sql "SELECT '../photos.parquet' AS image" -o outside.parquet >/dev/null
try leat shards outside.parquet -o none --images image --root photos --count 1
try leat shards photos.parquet -o none --images imag --root photos --count 1
try leat shards photos.parquet -o none --images label --root photos --count 1
try leat shards photos.parquet -o none --images image --root photos --count 1 --format npy
try leat shards photos.parquet -o none --count 1 --resize 8

# What a format cannot hold.
try leat shards all.parquet -o none --format npy --count 1
leat sql "SELECT CASE WHEN i = 2 THEN [1] ELSE [1, 2] END AS l FROM range(4) t(i)" -o ragged.parquet >/dev/null
try leat shards ragged.parquet -o none --format npy --count 1
leat sql "SELECT CASE WHEN i <> 2 THEN i END AS x FROM range(4) t(i)" -o nulls.parquet >/dev/null
try leat shards nulls.parquet -o none --format npy --count 1
leat sql "SELECT ['a'] AS words, 1 AS \"a/b\"" -o words.parquet >/dev/null
try leat shards words.parquet -o none --format tar --count 1
leat sql "SELECT 1 AS \"a/b\"" -o slash.parquet >/dev/null
try leat shards slash.parquet -o none --format tar --count 1
try leat shards slash.parquet -o none --format npy --count 1
try leat shards all.parquet -o none --compression zstd --count 1
try leat shards all.parquet -o none --format tar --compression gzip --count 1
try leat shards all.parquet -o none --parts splits --count 1
try leat shards all.parquet -o none --parts name --count 1
try leat shards all.parquet -o none --format parquet --memory 64MiB --count 1
