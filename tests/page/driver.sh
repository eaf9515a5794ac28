# driver.sh - read with `.` by tests of pages: installs playwright-core below $build once; needs Debian's Chromium
modules=$build/page-modules
driver=playwright-core@1.49.1

for program in chromium node npm; do
	command -v $program >/dev/null || { echo "$program is not installed: 'scripts/setup all' does it"; exit 77; }
done
if [ "$(cat "$modules/installed" 2>/dev/null)" != "$driver" ]; then
	rm -rf "$modules"
	mkdir -p "$modules"
	npm install --silent --no-audit --no-fund --prefix "$modules" "$driver" || { echo "$driver cannot be installed here"; exit 77; }
	echo "$driver" >"$modules/installed"
fi
