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
