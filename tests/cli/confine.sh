# A list or folder from elsewhere reads and packs only what is in it; the option in the error allows more.
mkdir -p got/cat got/dog data/dog
cp "$golden/tf/420.jpg" got/cat/1.jpg
cp "$golden/tf/420.jpg" data/dog/2.jpg
echo secret >secret
here() {
	try "$@" 2>&1 | sed "s|$PWD|HERE|g"
}
printf 'path,label\ncat/1.jpg,0\n/etc/passwd,1\n' >got/bad.csv
here leat feed "list('got/bad.csv') | batch(1)"
here leat pack got/bad.csv -o out
printf 'path,label\ncat/1.jpg,0\n../secret,1\n' >got/up.csv
here leat pack got/up.csv -o out
printf 'path,label\n../data/dog/2.jpg,0\n../data/dog/2.jpg,1\n' >got/away.csv
here leat feed "list('got/away.csv') | decode | batch(1)"
here leat look "list('got/away.csv', root='data') | decode" --count 1
here leat pack got/away.csv -o out --root data
ln -s "$PWD/data/dog/2.jpg" got/dog/2.jpg
here leat feed "folder('got') | batch(1)"
here leat pack got -o out2
here leat pack got -o out2 --root data
rm got/dog/2.jpg
rmdir got/dog
ln -s ../data/dog got/dog
here leat feed "folder('got') | batch(1)"
here leat look "folder('got', root='data') | decode" --count 2
here leat pack got -o out3 --root nowhere
ls
