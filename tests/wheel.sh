#!/bin/sh
# wheel.sh BUILD: the wheel that `make wheel` builds works on a system that has glibc and Python with NumPy, and no
# other library.
#
# Such a system is unpacked from Debian packages below BUILD, once. Then pip installs the wheel there, and the command
# and the package read what they have written. Needs root (chroot), a Debian mirror and PyPI.
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: wheel.sh BUILD}" && pwd)
source=$PWD
root=$build/wheel-root
tools=$build/wheel-venv/bin
work=$build/wheel-test

skip()
{
	echo "skipped: $1"
	exit 77
}

fail()
{
	echo "$1"
	exit 1
}

# What NumPy needs beyond glibc is libstdc++ and libgcc.
unpack_root()
{
	python=$(apt-cache depends python3-minimal | sed -n 's/.*Depends: \(python3\.[0-9]*\)-minimal$/\1/p')
	[ -n "$python" ] || skip "apt knows no packages; run apt-get update"
	rm -rf "$root"
	mkdir -p "$root/wheels" "$root/proc"
	(cd "$root/wheels" && apt-get download -q python3-minimal "$python-minimal" "lib$python-minimal" "lib$python-stdlib" \
		libc6 libexpat1 libffi8 zlib1g libstdc++6 libgcc-s1) || skip "the Debian mirror cannot be reached"
	for package in "$root"/wheels/*.deb; do
		dpkg-deb -x "$package" "$root"
		rm "$package"
	done
	"$tools/pip" download --quiet --disable-pip-version-check --only-binary :all: --python-version "${python#python}" \
		--dest "$root/wheels" pip numpy || skip "NumPy cannot be downloaded"
	touch "$root/unpacked"
}

# With /proc, where the loader looks for the path of the program.
inside()
{
	env -i PATH=/usr/local/bin:/usr/bin HOME=/tmp unshare --mount-proc --root="$root" "$@"
}

[ "$(id -u)" = 0 ] || skip "only root can change the root folder"
scripts/wheel "$build" || { [ $? = 3 ] && skip "PyPI cannot be reached"; } || exit 1
[ -e "$root/unpacked" ] || unpack_root
inside python3 -c '' || skip "this root may not chroot or mount"

# The wheel itself: small, stripped, complete, and without traces of this machine.
wheel=$(echo "$build"/dist/*.whl)
[ "$(stat -c %s "$wheel")" -le 10000000 ] || fail "$wheel is larger than 10 MB"
rm -rf "$work"
mkdir "$work"
"$tools/wheel" unpack --dest "$work" "$wheel" >/dev/null # checks RECORD
cd "$work"/leat-*
for file in leat/leat leat/libleat.so leat.libs/*; do
	! readelf -SW "$file" | grep -E ' \.(symtab|debug_)' || fail "$file is not stripped"
	! grep -aFe "$source" -e "$build" "$file" || fail "$file has paths of this machine, see above"
	for needed in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
		case $needed in
		libc.so.6 | libm.so.6 | libpthread.so.0 | ld-linux-*.so.*) ;;
		*) [ -e "leat.libs/$needed" ] || fail "$file needs $needed, which is not in the wheel" ;;
		esac
	done
done
for author in 'Independent JPEG Group' 'OpenSSL Project' Lehtinen Gailly Biggers Randy 'Google Inc'; do
	grep -q "$author" ./*.dist-info/licenses/*.txt || fail "the license with the words $author is missing"
done

# Installing, as users do it.
rm -rf "$root"/wheels/leat-* "$root/usr/local" "$root/tmp"
cp "$wheel" "$root/wheels"
mkdir "$root/tmp"
inside python3 "/wheels/$(basename "$root"/wheels/pip-*.whl)/pip" install --quiet --no-index --find-links /wheels \
	--root-user-action=ignore --break-system-packages leat pip
inside python3 -m pip check

# The command gives the same bytes as on this machine. Each library has something to read.
same()
{
	inside leat feed "$1" --checksum | grep '^checksum' >"$work/inside"
	(cd "$root" && "$build/leat" feed "$1" --checksum) | grep '^checksum' | diff - "$work/inside"
}

golden=$build/tests/golden/tf
"$build/examples/make_cells" "$root/tmp/cells" --count 38 >/dev/null
cp "$golden/progressive.jpg" "$golden/rgb-interlaced.png" "$root/tmp/cells/uninfected"
cp "$golden/gzip.tfrecord" "$root/tmp"
inside leat --version | grep -qx "$("$build/leat" --version)"
inside python3 -m leat --version | grep -qx "$("$build/leat" --version)"
inside leat pack /tmp/cells --output /tmp/cells --shards 2
spec="tfrecord('tmp/cells-*.tfrecord') | example(image=bytes, label=int64) | decode | resize(50, 50) | shuffle | batch(8)"
inside leat look "$spec" -n 4 -o /tmp/look.png
same "$spec"
same "tfrecord('tmp/gzip.tfrecord') | batch(8)"

# The package.
inside python3 - "$spec" <<'END'
import sys

import leat

with leat.feed(sys.argv[1], seed=1) as feed:
    count = sum(batch["image"].shape[0] for batch in feed)
assert count == 40, f"expected 40 samples, got {count}"
END

# The loader finds each library in the wheel or in glibc.
package=$(inside python3 -c 'import importlib.util; print(importlib.util.find_spec("leat").submodule_search_locations[0])')
loader=$(readelf -lW leat/leat | sed -n 's/.*interpreter: \(.*\)]/\1/p')
for file in leat libleat.so; do
	inside "$loader" --list "$package/$file" >"$work/loaded" || fail "$(cat "$work/loaded")"
	! grep -vE "^	(linux-vdso\.so|$loader|lib[cm]\.so\.6 |libpthread\.so\.0 |lib[a-z0-9-]+-[0-9a-f]{8}\.so.* => $package/\.\./leat\.libs/)" \
		"$work/loaded" || fail "$file loads libraries that are not in the wheel, see above"
done
echo "$(basename "$wheel") works without other libraries"
