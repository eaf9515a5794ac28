# Files that were written together are read together, or not at all.
mkdir -p a/x b/x
for i in 1 2 3 4 5 6; do printf 'old %s' $i >a/x/$i.jpg; printf 'new image %s' $i >b/x/$i.jpg; done
read="example(image=bytes, label=int64) | batch(6)"

leat pack a -o p --shards 3 >/dev/null
cat .p.tfrecord.leatset
try leat index --verify 'p-*'

# One that is missing, or one of another run, is not passed over. One can still be named.
mv p-00001-of-00003.tfrecord aside
try leat feed "tfrecord('p-*') | $read"
try leat feed "tfrecord('p-*-of-00003.tfrecord') | $read" --quiet
leat feed "tfrecord('p-0000[02]-of-00003.tfrecord') | $read" --quiet >/dev/null && echo "a pattern that does not match it"
leat feed "tfrecord('p-00002-of-00003.tfrecord') | $read" --quiet >/dev/null && echo "a name"
mv aside p-00001-of-00003.tfrecord
cp p-00001-of-00003.tfrecord p-00001-of-00002.tfrecord
try leat feed "tfrecord('p-*') | $read"
leat feed "tfrecord('p-*-of-00003.tfrecord') | $read" --quiet >/dev/null && echo "without it"
rm p-00001-of-00002.tfrecord

# Another size, other bytes.
cp p-00001-of-00003.tfrecord aside
printf 'more' >>p-00001-of-00003.tfrecord
try leat feed "tfrecord('p-*') | $read"
sed 's/old/OLD/' aside >p-00001-of-00003.tfrecord
try leat index --verify --quiet 'p-*'
cp aside p-00001-of-00003.tfrecord

# A copy is as good, with the manifest or without.
mkdir copy bare
cp p-* .p.* copy
cp p-* bare
leat feed "tfrecord('copy/p-*') | $read" --quiet >/dev/null && echo copy
leat feed "tfrecord('bare/p-*') | $read" --quiet >/dev/null && echo bare
try leat index --verify 'bare/p-*'

# What an interrupted command left is refused, and replaced without being asked to.
sed -i 's/"complete": true/"complete": false/' .p.tfrecord.leatset
try leat feed "tfrecord('p-*') | $read"
try leat feed "tfrecord('p-00002-of-00003.tfrecord') | $read"
leat pack a -o p --shards 3 >/dev/null && echo "again"
try leat pack b -o p --shards 2
leat pack b -o p --shards 2 --overwrite >/dev/null && ls -A | grep '^\.*p'
printf '{"leat_set": 1, "comm' >.p.tfrecord.leatset
try leat feed "tfrecord('p-*') | $read"
printf '{"leat_set": 2}' >.p.tfrecord.leatset
try leat feed "tfrecord('p-*') | $read"
try leat pack b -o p --shards 2 --overwrite
rm .p.tfrecord.leatset

# Two formats of one name have nothing to do with each other.
leat pack a -o two --shards 2 >/dev/null
leat pack a -o two --shards 3 --format tar >/dev/null
leat feed "tfrecord('two-*.tfrecord') | $read" --quiet >/dev/null && echo two

# Arrays of one folder may be written by several commands, and by others.
labels="tfrecord('two-*.tfrecord') | example(label=int64)"
leat convert "$labels" -o arrays --format npy >/dev/null
leat convert "$labels | rename(more=label)" -o arrays --format npy >/dev/null
cp arrays/label.npy arrays/own.npy
try leat index --verify 'arrays/*.npy'
sed -i '0,/"complete": true/s//"complete": false/' arrays/.npy.leatset
leat feed "npy(x='arrays/more.npy', y='arrays/own.npy') | batch(6)" --quiet >/dev/null && echo "more and own"
try leat feed "npy(x='arrays/more.npy', y='arrays/label.npy') | batch(6)" --quiet
try leat convert "$labels | rename(more=label)" -o arrays --format npy
leat convert "$labels" -o arrays --format npy >/dev/null
leat feed "npy(x='arrays/more.npy', y='arrays/label.npy') | batch(6)" --quiet >/dev/null && echo "more and label"
leat convert "$labels" -o arrays --format npy --overwrite >/dev/null && grep -c arguments arrays/.npy.leatset

# One at a time.
cat >locked.py <<'END'
import fcntl, os, subprocess, sys
lock = os.open(".two.tar.leatset.lock", os.O_WRONLY | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
subprocess.run(sys.argv[1:])
END
open=".two-00000-of-?????.tar.tmp"
touch "$open" .two-00001-of-00007.tar.77-77.tmp
try python3 locked.py leat pack a -o two --format tar --overwrite
ls -A | grep '^\.two.*tar'
try leat pack a -o two --shards 1 --format tar --overwrite >/dev/null
ls -A | grep '^\.two.*tar'

# Names may be anything.
name=$(printf 'gr\374n [x]*%%"')
leat pack a -o "$name" --shards 2 >/dev/null
leat index --verify --quiet "gr*"
grep -o '"name": .*,.*s' ".$name.tfrecord.leatset"
sed -i 's/"complete": true/"complete": false/' ".$name.tfrecord.leatset"
try leat index "gr*"

# A command must not replace what it reads: killed half-way, it could not be run again.
leat pack a -o own --shards 2 >/dev/null
ln -s . here
try leat convert "tfrecord('own-*.tfrecord') | example(image=bytes, label=int64)" -o here/own --overwrite
leat convert "tfrecord('own-*.tfrecord') | example(label=int64)" -o numbers --format npy >/dev/null
try leat convert "npy(label='numbers/label.npy')" -o numbers --format npy --overwrite
try leat convert "npy(label='numbers/label.npy') | rename(copy=label)" -o numbers --format npy >/dev/null
ls -A numbers
