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
