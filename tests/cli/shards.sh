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
