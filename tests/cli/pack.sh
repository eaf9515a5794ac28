# Folders and lists become records; the same seed gives the same bytes, whatever the number of threads.
mkdir -p cells/sick/more cells/healthy
for i in 1 2 3 4 5; do
	printf 'healthy %s' $i >cells/healthy/$i.jpg
	printf 'sick %s' $i >cells/sick/$i.PNG
done
printf 'deep' >cells/sick/more/0.jpeg
printf 'not me' >cells/sick/notes.txt
printf 'hidden' >cells/sick/.hidden.jpg

# What is in the records, in their order: walks over the frames and the protobuf messages.
cat >show.py <<'END'
import struct, sys
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
        if tag & 7 == 2:
            yield tag >> 3, b[i:i + n]
            i += n
        else:
            yield tag >> 3, n
for path in sys.argv[1:]:
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        n, = struct.unpack_from("<Q", data, at)
        features = next(fields(data[at + 12:at + 12 + n]))[1]
        at += n + 16
        row = {}
        for _, entry in fields(features):
            entry = dict(fields(entry))
            (kind, values), = fields(entry[2])
            value = next(fields(values))[1]
            if kind == 3 and isinstance(value, bytes):
                value = varint(value, 0)[0]
            row[entry[1].decode()] = value if kind == 3 else value.decode()
        print(path, *(row[k] for k in ("label", "class", "filename", "image")), sep="\t")
END

try leat pack cells -o whole --no-shuffle
python3 show.py whole-*.tfrecord
try leat pack cells/ --output=mixed --shards 3 --seed 7 -j 1
python3 show.py mixed-*.tfrecord
leat pack cells -omixed-again --shards=3 -s7 --threads 4 >/dev/null
for i in 0 1 2; do cmp mixed-0000$i-of-00003.tfrecord mixed-again-0000$i-of-00003.tfrecord; done
leat pack cells -o other --shards 3 --seed 8 >/dev/null
cat mixed-*-of-* | cmp -s - other-00000-of-00003.tfrecord || echo "another seed, another order"

try leat pack cells -o whole
leat index 'whole-*.tfrecord' >/dev/null
ls -A | grep whole-
try leat pack cells -o whole --overwrite --shards 2 --no-shuffle >/dev/null
ls -A | grep whole-
leat index 'whole-*.tfrecord' >/dev/null
try leat pack cells -o whole --overwrite --shards 2 --seed 5 >/dev/null
ls -A | grep whole-
leat pack cells -o small --shard-size 20 | head -n 1

# Any name, and any URI.
for shards in 2 1; do leat pack cells -o 'od\d[1]*' --shards $shards --overwrite | tail -n 1; done
leat pack cells -o 'file:od%5Cd%5B1%5D%2A' 2>&1
leat pack file:cells -o 'file:od%5Cd%5B1%5D%2A' --shards 3 --overwrite | tail -n 1
ls od*

printf '\357\273\277Label,id,Path\r\n"say ""hi"", you",1,cells/sick/1.PNG\r\n\r\na,2,"cells/healthy/2.jpg"\r\n' >names.csv
try leat pack names.csv -o names --no-shuffle
python3 show.py names-*.tfrecord
printf 'cells/sick/1.PNG,12\ncells/healthy/2.jpg,0\n' >numbers.csv
try leat pack numbers.csv -o numbers --no-shuffle
python3 show.py numbers-*.tfrecord

# The samples, labels and order are those of the sources.
samples() { leat look "$1" -n 100 | sed '/^[0-9]* classes:/d; s/^  [a-z]* *//'; }
mkdir -p nested/a/b/c nested/a-b nested/B
for f in a/z.jpg a/b/1.webp a/b/c/1.jpeg a/b.webp a-b/1.png B/x.jpg B/y.PNG; do printf '%s' "$f" >nested/$f; done
leat pack nested -o nested --no-shuffle | sed 1d
samples "tfrecord('nested-*') | example(image=bytes, label=int64)" >packed.txt
samples "folder('nested')" | diff - packed.txt && cat packed.txt
printf 'id,file,weight,class\n1,"nested/a/z.jpg",0.5, 7\n2,nested/B/x.jpg,1,-8 \n' >listed.csv
leat pack file:listed.csv -o listed --no-shuffle >/dev/null
samples "tfrecord('listed-*') | example(image=bytes, label=int64)" >packed.txt
samples "list('listed.csv', path='file', columns=[class])" | diff - packed.txt && cat packed.txt

# Tar files, as WebDataset has them, in a folder that is not there yet.
cat >members.py <<'END'
import sys, tarfile
for path in sys.argv[1:]:
    tar = tarfile.open(path, "r:")
    for m in tar:
        print(path, m.name, m.size, oct(m.mode), m.mtime, tar.extractfile(m).read())
END
try leat pack cells -o new/er/cells --format tar --shards 2 --no-shuffle
python3 members.py new/er/cells-*.tar
tar -tf new/er/cells-00001-of-00002.tar | tail -n 2
cp cells/sick/notes.txt 'no-extension.?!'
printf 'cells/sick/notes.txt,5\nno-extension.?!,-6\n' >odd.csv
leat pack odd.csv -o odd --format tar --no-shuffle >/dev/null
python3 members.py odd-*.tar
