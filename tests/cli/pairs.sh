# Every source, stored in every format, reads back with the same values at the same places; what cannot be
# stored is refused with a remedy. `leat look` shows each source.
mkdir -p cells/a cells/b
for name in 420.jpg progressive.jpg rgb.jpg restart.jpg; do cp "$golden/tf/$name" cells/a; done
for name in rgb.png palette2.png pixel.png; do cp "$golden/tf/$name" cells/b; done
(echo path,label,weight,name; for f in cells/*/*; do echo "$f,${#f},0.5,\"${f##*/}\""; done) >cells.csv
leat pack cells -o cells --shards 2 --seed 1 >/dev/null
leat convert "folder('cells', path=true)" -o cells --format tar --shards 2 >/dev/null
mkdir packed
for f in cells-*.tfrecord; do gzip -nc $f >packed/$f.gz; done
cp -r "$golden"/mds/images mds
cp -r "$golden"/mds/arrays mds-arrays
cp -r "$golden"/tfds/small/1.0.0 tfds
python3 -c 'open("tokens.bin", "wb").write(bytes(i * 7 % 256 for i in range(200)))'
cp "$golden"/npy/image.npy "$golden"/npy/vector.npy .

example="example(image=bytes, label=int64, name=bytes(key=filename))"
pixels="decode | resize(6, 5) | cast(uint8)"
cat >sources <<END
tfrecord|tfrecord('cells-*.tfrecord') + $example
records|tfrecord('cells-*.tfrecord')
compressed|tfrecord('packed/*.gz') + $example
tar|tar('cells-*.tar', fields=['image=image.jpg;image.png', 'label=label.cls:int64', '__key__'])
mds|mds('mds', fields=[info, jpeg, label])
arrays|mds('mds-arrays', fields=[bytes, fixed, free, narrow, row])
tfds|tfds('tfds', fields=[box, byte, count, ids, image, label, short, text, weights])
folder|folder('cells', path=true)
list|list('cells.csv')
npy|npy(x='image.npy')
tokens|tokens('tokens.bin', length=9, shift=1)
END

checksum() { leat feed "$1 | batch(3)" --seed 7 --checksum --quiet | sed -n 's/^checksum //p'; }
# same NAME FORMAT SPEC: what is stored is what the spec gives
same() {
	if leat pack "$3" -o "out/$1-$2" --format "$2" --seed 7 >said 2>why; then
		back=$(tail -n 1 said)
		if [ "$(checksum "$3")" = "$(checksum "$back")" ]; then
			echo "$1 as $2: the same"
		else
			echo "$1 as $2 DIFFERS: $3 and $back"
		fi
	else
		sed "s/^/$1 as $2: /" why
	fi
}
while IFS='|' read -r name spec; do
	spec=$(echo "$spec" | tr + '|')
	for format in tfrecord tar npy; do same "$name" $format "$spec"; done
done <sources

echo "# tar keeps every shape, and single bytes; TFRecord files have no shapes that differ"
same ragged tar "mds('mds-arrays', fields=[grid])"
same mixed tar "tfds('tfds', fields=[flag, matrix])"

echo "# narrow types stay what they are"
narrow="npy(a='vector.npy', b='vector.npy', c='vector.npy', d='vector.npy', e='vector.npy')"
narrow="$narrow | cast(bool, field=a) | cast(int8, field=b) | cast(int16, field=c) | cast(uint16, field=d) | cast(uint32, field=e)"
for format in tfrecord tar npy; do
	same narrow $format "$narrow"
	tail -n 1 said
	leat look "$(tail -n 1 said)" -n 2
done

echo "# a thousand fields: rows of a wide table"
python3 - <<'END'
with open("wide.csv", "w") as f:
    f.write("path," + ",".join(f"c{i}" for i in range(1000)) + "\n")
    for row, name in enumerate(["cells/a/420.jpg", "cells/a/rgb.jpg", "cells/b/pixel.png"]):
        f.write(name + "," + ",".join(str(1000 * row + i) for i in range(1000)) + "\n")
END
for format in tfrecord tar; do same wide $format "list('wide.csv')"; done
same wide npy "list('wide.csv') | drop(image) | cache"
checksum "list('wide.csv') | select(c999, image, c0) | decode | resize(2, 2)"
try leat look "list('wide.csv') | select(c999, c0)" -n 2

echo "# made one size, images are rows of an array"
same tfrecord npy "tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | $pixels"
same compressed npy "tfrecord('packed/*.gz') | example(image=bytes, label=int64) | $pixels"
same tar npy "tar('cells-*.tar', fields=['image=image.jpg;image.png', 'label=label.cls:int64']) | $pixels"
same mds npy "mds('mds', fields=[jpeg, label]) | rename(image=jpeg) | $pixels"
same tfds npy "tfds('tfds', fields=[image, label]) | $pixels"
same folder npy "folder('cells') | $pixels | random_flip"
same list npy "list('cells.csv', columns=[label, weight]) | $pixels"
try leat pack cells -o x --format npy
try leat pack cells.csv -o x --format npy
try leat pack "floder('cells')" -o x
try leat pack "missing (1)" -o x

echo "# arrays of tar files have to be what the spec says"
leat pack "mds('mds-arrays', fields=[fixed, grid])" -o arrays --format tar | tail -n 1
try leat look "tar('arrays-*.tar', fields=['fixed.npy:float32[3, 5]'])"
try leat look "tar('arrays-*.tar', fields=['fixed.npy:float64[3, 4]'])"
try leat look "tar('arrays-*.tar', fields=['fixed.npy:float32[?, 4]', 'x=grid.npy:float64[?, ?]']) | resize(2, 2)"
try leat look "tar('cells-*.tar', fields=['x=image.jpg;image.png:uint8[?]'])"

echo "# arrays of height x width x channels are images"
try leat look "mds('mds-arrays', fields=[bytes]) | resize(2, 2)" -n 1
try leat look "npy(x='image.npy') | pad(1)" -n 1

echo "# look"
while IFS='|' read -r name spec; do
	try leat look "$(echo "$spec" | tr + '|')" -n 1
done <sources
try leat look "tfds('tfds')" -n 1

echo "# select keeps what a source knows of its fields: names and columns are not in a file's bytes"
checksum "folder('cells', path=true) | select(path, label, image)"
checksum "list('cells.csv', columns=name) | select(name, image)"
