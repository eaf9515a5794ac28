# What is told to those who ask, and to those who mistype.
leat >overview
leat --help | cmp - overview
leat help | cmp - overview
head -3 overview
try leat help ops
leat ops --help >page
leat help ops | cmp - page
leat ops -h | cmp - page
leat --version | sed 's/[0-9][0-9.]*/VERSION/'
try leat osp
try leat frobnicate
try leat help osp
try leat help storage
try leat ops --jsno
try leat ops --jsno=1
try leat ops -x
try leat ops resize flip
try leat ops --json=maybe
try leat ops --json --markdown
try leat ops -- --json
