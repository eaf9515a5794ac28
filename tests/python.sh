#!/bin/sh
# python.sh BUILD: the tests of the Python package, in a virtual environment below BUILD that is made once.
#
# The package is installed from the wheel that users get. Frameworks that cannot be installed here are
# left out, and the tests that need them are skipped. The oldest Python that is supported and a new one run the
# tests that need no framework, where they are installed.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:?usage: python.sh BUILD}"
build=$(cd "$1" && pwd)
venv=$build/python-venv
tests=python/tests
# PyTorch's loaders fork workers: these get a process of their own, in which JAX and TensorFlow have no threads. Status 5
# is that of no tests at all, where there is no PyTorch.
forking="$tests/test_torch_loader.py $tests/test_xray_lightning.py $tests/test_xray_torch.py"

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
scripts/wheel "$build"

# check VENV: the tests, with the wheel that was built.
check()
{
	"$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$build"/dist/*.whl
	# shellcheck disable=SC2086
	LEAT_BUILD=$build "$1/bin/python" -m pytest -q -p no:cacheprovider $forking || [ $? = 5 ]
	# shellcheck disable=SC2086
	LEAT_BUILD=$build "$1/bin/python" -m pytest -q -p no:cacheprovider $tests $(printf ' --ignore=%s' $forking)
}

check "$venv"
for python in python3.9 python3.13; do
	"$python" -m venv --help >/dev/null 2>&1 || continue
	other=$build/$python-venv
	if ! [ -e "$other/installed" ]; then
		rm -rf "$other"
		"$python" -m venv "$other"
		if ! "$other/bin/pip" install --quiet --disable-pip-version-check numpy pytest; then
			echo "NumPy cannot be installed for $python here: it is left out"
			continue
		fi
		touch "$other/installed"
	fi
	check "$other"
done
