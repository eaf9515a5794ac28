# Names from outside never reach the terminal as they are: control characters, line breaks and the like are escaped.
bad=$(printf '\033]0;owned\007\nrow\t\302\233\342\200\256x\377')
make_cells=$(dirname "$(command -v leat)")/examples/make_cells
"$make_cells" drawn --count 4 --seed 1 >/dev/null
mkdir -p "f/$bad" "f/other"
cp "$(ls drawn/*/* | head -n 1)" "f/$bad/$bad.png"
printf x >"f/other/$bad.png"
printf x >"f/other/$bad.gif"

# show COMMAND...: prints its output, and complains about any byte that a terminal would obey.
show() {
	"$@" >shown 2>&1
	printf '[exit %d]\n' $?
	cat shown
	! LC_ALL=C grep -aq '[^ -~]' shown || echo "not escaped"
}
show leat look "folder('f')" -n 1
show leat feed "folder('f') | decode | resize(4, 4) | batch(2)" --on-error skip --threads 1 --quiet | grep '^bad sample'
show leat feed "folder('f') | decode | resize(4, 4) | batch(2)"
show leat pack f -o packed
show leat look "tfrecord('$bad*.tfrecord')" -n 1
leat feed "folder('drawn') | decode | batch(2)" --batches 1 --save checkpoint --quiet >/dev/null
sed -i 's/"pipeline": "../"pipeline": "00/; s/decode@1/\\u001b[31mdecode\\n@1/' checkpoint
show leat feed "folder('drawn') | decode | batch(2)" --resume checkpoint
show leat feed "folder('drawn') | decode | batch(2)" --resume checkpoint --force | grep leat
cp packed-*.tfrecord "$bad.tfrecord"
show leat index "$bad.tfrecord"
show leat "$bad"
printf 'path\n"%s"\n' "$bad" >list.csv
show leat look "list('list.csv')" -n 1
