unset AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_ENDPOINT_URL_S3
export HOME="$PWD" AWS_NO_SIGN_REQUEST=1
mkdir -p data/cats
printf 12345 >data/b.tar
printf '' >data/a.tar
head -c 3000 /dev/zero >data/c
ln -s nowhere data/dangling
try leat ls data
try leat ls --bytes 'data/*.tar' data/c
try leat ls data/none
try leat ls 'data/none*'
try leat ls gopher://host/x
try leat ls s3:///x
try leat ls 'http://user:secret@host/x?key=secret'
AWS_ENDPOINT_URL=nowhere try leat ls s3://bucket/x
AWS_NO_SIGN_REQUEST= AWS_SECRET_ACCESS_KEY=x try leat ls s3://bucket/x
