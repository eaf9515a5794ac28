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
# Settings of remote storage: mistakes are found before anything is opened.
for setting in endpont=x endpoint=nowhere endpoint=http://user:secret@host timeout=0 timeout=soon 'timeout=1 2' hedge=yes \
	style=pth requests=1.5 disk_cache_size=100GiX disk_cache_size=much aws_secret_access_key=secret proxy=squid region; do
	try leat ls data/c --storage "$setting"
done
try leat ls data/c --storage region=a --storage 'region=b b' --storage region=c
LEAT_NET_TIMEOUT=soon try leat ls data/c
LEAT_NET_TIMEOUT=soon try leat ls http://127.0.0.1:1/x
try leat ls s3://bucket/x --storage profile=none --storage anonymous=false
try leat ls s3://bucket/x --endpoint-url http://127.0.0.1
