# What the engine makes of a spec.
cp "$golden/tf/420.jpg" "$golden/tf/444.jpg" .
cat >list.csv <<END
path,label
420.jpg,1
444.jpg,0
END
stages() {
	echo "\$ leat explain \"$1\""
	leat explain "list(list.csv) | $1" -j 2 --memory 64MiB | sed -n '/^stages/,/^batches/p' | sed '$d'
}
stages "decode | resize(100, 100) | scale(1/255) | random_flip | rotate(40deg) | random_brightness(0.2) | random_contrast(0.8, 1.2) | batch(32)"
stages "decode | random_resized_crop(224, 224, mode=torch, antialias=true) | random_flip | scale(1/255) | normalize(mean=0.5, std=0.25) | layout(chw) | batch(2)"
stages "decode | crop(0, 0, 5, 5) | cache(memory, size=1MiB) | color_jitter(0.1) | scale(1/255) | batch(2)"
stages "decode(fast=true) | random_resized_crop(224, 224) | random_contrast(0.8, 1.2) | batch(2)"
stages "decode(fast=true) | resize(224, 224) | batch(2)"
stages "decode(fast=true) | cache(disk, dir=kept) | resize(224, 224) | batch(2)"
[ -e kept ] || echo "no cache was made"
stages "decode | resize(8, 8) | scale(1/255) | one_hot(2) | batch(2) | mixup"

# What the structs of the engine take is not for this test.
masked() {
	printf '$ leat explain %s\n' "$*"
	leat explain "$@" | sed -E '/^ +(batches|runs|scratch|large samples|counters|source) /s/ +[0-9.]+ ([KM]i)?B( = [0-9]+ x [0-9.]+ ([KM]i)?B)? +/  ...  /; s/^(memory +)[^ ]+ [^ ]+ res/\1... res/'
}

echo "# all of it"
mkdir -p cells/healthy cells/sick
for i in 1 2 3 4 5 6 7 8 9 10 11; do
	printf 'healthy %d' $i >cells/healthy/$i.jpg
	printf 'sick %d %d' $i $i >cells/sick/$i.jpg
done
leat pack cells -o cells --shards 3 >/dev/null
spec="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64)"
masked "$spec | interleave(3) | take(20) | shuffle | decode | resize(10, 10) | batch(6)" -j 3 --memory 40MiB
masked "$spec | batch(6)" -j 1 --memory 8MiB --rank 1 --world 3
masked "$spec | prefetch(0)" -j 1 --memory 8MiB
leat explain "$spec | shuffle | batch(100)" -j 1 --memory 8MiB | grep ^reads

echo "# as JSON"
leat explain "$spec | shuffle(window=5) | batch(6)" -j 2 --memory 8MiB --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(*d)
print(d["source"], d["order"], d["epoch"], d["stages"], d["reads"], d["threads"], sep="\n")
memory = d["memory"]
print(memory["limit"], memory["reserved"] == sum(p["count"] * p["each"] for p in memory["parts"]))'

echo "# mistakes"
try leat explain "list(list.csv) | decode | resiez(3, 4)"
try leat explain "$spec | batch(6)" --memory 100KiB -j 1 2>&1 | sed -E 's/at least [0-9]+ KiB/at least .../'
try leat explain
