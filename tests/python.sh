#!/bin/sh
# python.sh BUILD: the tests of the Python package, in a virtual environment below BUILD that is made once.
#
# The package is installed from this tree as a user would do it. Frameworks that cannot be installed here are
# left out, and the tests that need them are skipped.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:?usage: python.sh BUILD}"
build=$(cd "$1" && pwd)
venv=$build/python-venv
tests=python/tests

if ! cat $tests/requirements.txt $tests/frameworks.txt | cmp -s - "$venv/installed"; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r $tests/requirements.txt
	grep -v '^#' $tests/frameworks.txt | while read -r framework; do
		"$venv/bin/pip" install --quiet --disable-pip-version-check "$framework" ||
			echo "$framework cannot be installed here: its tests are skipped"
	done
	cat $tests/requirements.txt $tests/frameworks.txt >"$venv/installed"
fi
PATH=$venv/bin:$PATH "$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	--force-reinstall --config-settings=build-dir="$build/python-wheel" .
LEAT_BUILD=$build "$venv/bin/python" -m pytest -q -p no:cacheprovider $tests
