# Indexes are made once; damage is counted and told.
mkdir -p cells/a
for i in 1 2 3 4; do printf 'image %s' $i >cells/a/$i.jpg; done
leat pack cells -o x --shards 2 >/dev/null
try leat index 'x-*.tfrecord'
try leat index x-00000-of-00002.tfrecord x-00001-of-00002.tfrecord -j 2
try leat index --quiet 'x-*.tfrecord'
printf 'not a record' >>x-00001-of-00002.tfrecord
try leat index --quiet 'x-*.tfrecord'
rm .x.tfrecord.leatset
try leat index --quiet 'x-*.tfrecord'
try leat index
try leat index 'y-*.tfrecord'
try leat index x-00000-of-00002.tfrecord --theads 3
