# What the engine makes of a spec.
cp "$golden/tf/420.jpg" "$golden/tf/444.jpg" .
cat >list.csv <<END
path,label
420.jpg,1
444.jpg,0
END
plan() {
	echo "\$ leat ops --plan \"$1\""
	leat ops --plan "list(list.csv) | $1"
}
plan "decode | resize(100, 100) | scale(1/255) | random_flip | rotate(40deg) | random_brightness(0.2) | random_contrast(0.8, 1.2) | batch(32)"
plan "decode | random_resized_crop(224, 224, mode=torch, antialias=true) | random_flip | scale(1/255) | normalize(mean=0.5, std=0.25) | layout(chw) | batch(2)"
plan "decode | crop(0, 0, 5, 5) | cache(memory) | color_jitter(0.1) | scale(1/255) | batch(2)"
plan "decode(fast=true) | random_resized_crop(224, 224) | random_contrast(0.8, 1.2) | batch(2)"
plan "decode(fast=true) | resize(224, 224) | batch(2)"
plan "decode(fast=true) | cache(memory) | resize(224, 224) | batch(2)"
plan "decode | resiez(3, 4)"
try leat ops --plan "list(list.csv)" --json
