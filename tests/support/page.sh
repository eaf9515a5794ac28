# page.sh - for checks of pages: code blocks taken from Markdown, and console blocks run
# (read with `.`; $root is the root of the source)

# copy_source FOLDER: what belongs to the project, committed or not.
copy_source() {
	mkdir -p "$1" || return 1
	(cd "$root" && { git ls-files -co --exclude-standard 2>/dev/null || find . -type f ! -path './build/*'; } |
		while read -r file; do
			[ ! -e "$file" ] || echo "$file"
		done | tar -cf - -T -) | tar -xf - -C "$1"
}

# c_blocks PAGE: the file names of its C blocks, which begin with a comment '/* NAME.c - ...'.
c_blocks() {
	awk '/^```c$/ { getline; if ($1 == "/*" && $2 ~ /^[a-z_]+\.c$/) print $2 }' "$1"
}

# c_block PAGE NAME.c: one of them.
c_block() {
	awk -v name="$2" '
		/^```c$/ { getline; on = $1 == "/*" && $2 == name }
		/^```$/ { on = 0 }
		on' "$1"
}

# run_console PAGE: the page with the output of the commands of its ```console blocks as it is now.
# Lines that begin with '$ ' are run in turn, `make` excepted.
run_console() {
	inside=
	while IFS= read -r line; do
		case $inside$line in
		'```console') inside=yes ;;
		'yes```') inside= ;;
		"yes$ make"*) ;;
		"yes$ "*)
			printf '%s\n' "$line"
			sh -c "${line#'$ '}" 2>&1 </dev/null
			continue
			;;
		yes*) continue ;;
		esac
		printf '%s\n' "$line"
	done <"$1"
}

# check_code PAGE TREE FOLDER TEST: what the page shows compiles, and prints what the page says.
# Copies the source to TREE, writes each C block of the page to the file that its first line names, in FOLDER or
# tests/unit, builds the command, make_cells and TEST, and runs the commands of the console blocks.
check_code() {
	rm -rf "$2"
	copy_source "$2" && cd "$2" || return 1
	export XDG_CACHE_HOME="$2/cache" # where indexes go that cannot be kept beside the data
	c_blocks "$1" | while read -r name; do
		case $name in
		test_*) c_block "$1" "$name" >"tests/unit/$name" ;;
		*) c_block "$1" "$name" >"$3/$name" ;;
		esac
	done
	meson setup build -Dbuildtype=debug >setup.log 2>&1 || { cat setup.log; return 1; }
	ninja -C build leat examples/make_cells "$4" >build.log 2>&1 || { cat build.log; return 1; }
	run_console "$1" >page.got
	[ -z "${UPDATE:-}" ] || cp page.got "$1"
	diff -u "$1" page.got
}
