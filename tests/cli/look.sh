# leat look: fields, shapes and values, or a contact sheet
make_cells=$(dirname "$(command -v leat)")/examples/make_cells
"$make_cells" drawn --count 6 --seed 1 >/dev/null
leat pack drawn -o cells >/dev/null
spec="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64, name=bytes(key='filename')) | decode | resize(8, 8)"
try leat look "$spec | cast(uint8)" -n 2
try leat look "$spec | scale(1/255)" -o sheet.png
head -c 8 sheet.png | od -c | head -n 1
try leat look "$spec | scale(1/255) | layout(chw)" -n 4 -o sheet.png
try leat look "tfrecord('cells-*.tfrecord')" -o sheet.png
try leat look "$spec" --field label -o sheet.png
try leat look "$spec" --field imag -o sheet.png

echo "# ~ is the home folder, inside quotes too"
mkdir home && mv drawn home && cp cells-*.tfrecord home
HOME=$PWD/home leat look "tfrecord('~/cells-*.tfrecord') | cache(disk, '~/cached')" -n 1 | head -n 1
ls home/cached | wc -l
HOME=$PWD/home leat look "folder('~/drawn') | decode" -n 1 -o '~/sheet.png'
printf 'path\n~/drawn/parasitized\n' >home/list.csv
HOME=$PWD/home try leat look "list('~/list.csv')" 2>&1 | sed "s|$PWD|.|g"
ls home
mv home/drawn .

echo "# the classes of a folder"
try leat look "folder('drawn') | decode | resize(2, 2) | cast(uint8)" -n 1
mkdir many
for i in 10 11 12 13 14 15 16 17 18 19 20; do
	mkdir "many/class $i"
	printf x >"many/class $i/1.jpg"
done
try leat look "folder('many')" -n 1

echo "# files that cannot be decoded are skipped"
cp "$golden/webp/lossy.webp" drawn/$(ls drawn | head -n 1)/0.webp
for i in 1 2 3; do printf GIF89a >drawn/$(ls drawn | head -n 1)/$i.gif; done
try leat look "folder('drawn') | decode" -n 1
mkdir -p only/a && printf GIF89a >only/a/1.gif
try leat look "folder('only') | decode" -n 1
