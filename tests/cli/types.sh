# Arrays of every type become fields and are stored again; windows of recordings, too.
cp "$golden"/npy/vector.npy "$golden"/npy/f4.npy "$golden"/npy_types/u8.npy "$golden"/npy_types/c8.npy .
printf 'start,label\n1,7\n0,8\n4,9\n' >events.csv

checksum() { leat feed "$1 | batch(3)" --seed 7 --checksum --quiet | sed -n 's/^checksum //p'; }
# same FORMAT SPEC: what is stored is what the spec gives
same() {
	if leat pack "$2" -o "out/$1" --format "$1" --seed 7 --overwrite >said 2>why; then
		back=$(tail -n 1 said)
		echo "$back"
		[ "$(checksum "$2")" = "$(checksum "$back")" ] && echo "$1: the same" || echo "$1 DIFFERS"
	else
		cat why
	fi
}

echo "# uint64 and pairs of floats; TFRecord has no numbers beyond int64"
for format in tfrecord tar npy; do same $format "npy(x='u8.npy', z='c8.npy')"; done
for format in tfrecord tar npy; do same $format "npy(x='vector.npy') | cast(uint64)"; done
try leat look "npy(x='u8.npy', z='c8.npy')" -n 1

echo "# windows"
for format in tfrecord tar npy; do same $format "windows('f4.npy', length=2, stride=1, labels='vector.npy')"; done
try leat look "windows('f4.npy', length=2, stride=1, axis=1)" -n 2
try leat look "windows('f4.npy', length=2, events='events.csv')" -n 3
try leat feed "windows('f4.npy', length=9) | batch(3)"
try leat feed "windows('f4.npy', length=2, axis=2) | batch(3)"
