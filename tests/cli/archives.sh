# Archives of other libraries: WebDataset's tar files, MosaicML's MDS, TFDS folders.
cp "$golden"/wds/plain-*.tar .
cp -r "$golden"/mds/scalars mds
cp -r "$golden"/mds/packed packed
cp -r "$golden"/tfds/plain plain
try leat index 'plain-*.tar'
try leat index plain-0.tar
try leat look "tar('plain-*.tar')" -n 1
try leat look "tar('plain-1.tar', fields=[__key__, 'label=cls:int64'])" -n 2
try leat look "tar('plain-0.tar', fields=[label])" -n 1
try leat look "mds('mds', fields=[word, whole, float32])" -n 2
try leat look "mds('packed')"
try leat look "tfds('plain/tiny/2.0.1', split='train[:80%]', fields=[label])" -n 2
try leat look "tfds('plain/tiny/2.0.1') | decode(field=image) | take(1)"
try leat look "tfds('plain/tiny/2.0.1', split='trian')"
try leat look "tfds('plain')"
gzip plain-0.tar
try leat look "tar('plain-0.tar.gz')"
