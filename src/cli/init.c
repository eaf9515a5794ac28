/* init.c - `leat init`: write a leat.yaml that runs, or print what an editor needs to know about it */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/print.h"
#include "step/project_keys.h"

struct init {
	bool schema, keys;
};

static const struct leat_opt options[] = {
	LEAT_BOOL(struct init, schema, "false", "print the JSON Schema of leat.yaml, for editors, and write nothing"),
	LEAT_BOOL(struct init, keys, "false", "print all keys of leat.yaml as Markdown, and write nothing"),
	LEAT_OPT_END,
};

static const char starter[] =
	"# What to make, and from what. Run it: leat build. Look at it: leat graph.\n"
	"#\n"
	"# A step's command makes \"$out\", a file or a folder. It gets what the step declares as shell variables:\n"
	"# inputs as paths, params and slice variables as texts. It runs again only if its command, params, inputs or\n"
	"# code have changed. Results appear as links below out/.\n"
	"\n"
	"# Files that exist already. {day} gives each slice its file; *.csv would give a folder of links.\n"
	"#sources:\n"
	"#  raw: data/day-{day}.csv\n"
	"\n"
	"steps:\n"
	"  # Runs once for each day, in parallel. A new day runs alone.\n"
	"  measure:\n"
	"    run: |\n"
	"      awk -v day=\"$day\" -v samples=\"$samples\" 'BEGIN {\n"
	"        for (i = 1; i <= samples; i++) print i \",\" (i * day) % 17\n"
	"      }' > \"$out\"\n"
	"    slices: {day: 1..4}\n"
	"    params: {samples: 100}\n"
	"    suffix: .csv\n"
	"    #in: raw              # then \"$raw\" is the file of the day\n"
	"    #cpus: 2              # threads that one action uses\n"
	"    #timeout: 10m\n"
	"    #retries: 1\n"
	"\n"
	"  # \"$measure\" is a folder with one file for each day: 1.csv to 4.csv.\n"
	"  summary:\n"
	"    run: |\n"
	"      for file in \"$measure\"/*; do\n"
	"        awk -F, -v file=\"$(basename \"$file\")\" '\n"
	"          { sum += $2 } END { printf \"%s mean %.2f\\n\", file, sum / NR }' \"$file\"\n"
	"      done > \"$out\"\n"
	"    in: measure\n"
	"    suffix: .txt\n"
	"\n"
	"# All keys: leat init --keys. For completion in editors: leat init --schema.\n";

static enum leat_status
write_all(int fd, const char *path, struct leat_err *err)
{
	for (size_t done = 0; done < sizeof(starter) - 1;) {
		ssize_t n = write(fd, starter + done, sizeof(starter) - 1 - done);

		if (n < 0 && errno != EINTR)
			return leat_fail_errno(err, errno, "cannot write '%s'", path);
		done += n > 0 ? (size_t)n : 0;
	}
	return LEAT_OK;
}

static enum leat_status
write_starter(const char *folder, struct leat_err *err)
{
	bool here = !strcmp(folder, ".");
	enum leat_status status;
	char path[PATH_MAX];
	int fd, n = snprintf(path, sizeof(path), "%s%sleat.yaml", here ? "" : folder, here ? "" : "/");

	if (n < 0 || (size_t)n >= sizeof(path))
		return leat_fail_errno(err, ENAMETOOLONG, "cannot write to '%s'", folder);
	if (mkdir(folder, 0777) && errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot make the folder '%s'", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return leat_fail(err, LEAT_INVALID, "'%s' exists; 'leat init FOLDER' begins elsewhere", path);
	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot write '%s'", path);
	status = write_all(fd, path, err);
	if (close(fd) && status == LEAT_OK)
		status = leat_fail_errno(err, errno, "cannot write '%s'", path);
	if (status != LEAT_OK) {
		unlink(path); /* half a file is no start */
		return status;
	}
	leat_print_line(stdout, "wrote %s; %s%s%s'leat build' runs it", path, here ? "" : "'cd ", here ? "" : folder,
	                here ? "" : "', then ");
	return LEAT_OK;
}

static enum leat_status
print_keys(const struct leat_invocation *run, bool schema, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str text;

	leat_str_init(&text, run->mem, 1 << 20);
	if (schema)
		leat_project_schema(&text);
	else
		leat_project_reference(&text);
	if (text.failed)
		status = leat_fail_mem(err, run->mem, text.len, "the keys");
	else
		fputs(leat_str_text(&text), stdout);
	leat_str_free(&text);
	return status;
}

static enum leat_status
run_init(const struct leat_invocation *run, struct leat_err *err)
{
	const struct init *init = run->params;

	if (run->operands + init->schema + init->keys > 1)
		return leat_fail(err, LEAT_INVALID, "give only one of FOLDER, --schema and --keys");
	if (init->schema || init->keys)
		return print_keys(run, init->schema, err);
	return write_starter(run->operands ? run->operand[0] : ".", err);
}

const struct leat_command leat_command_init = {
	.name = "init",
	.summary = "Write a leat.yaml to start from",
	.operands = "[FOLDER]",
	.max_operands = 1,
	.help = "The file has two steps and runs as it is. An existing leat.yaml is never overwritten.\n"
		"\n"
		"For completion and checks in an editor with YAML support, save the schema and name it in the first "
		"line\n"
		"of leat.yaml:\n"
		"\n"
		"  leat init --schema > leat.schema.json\n"
		"  # yaml-language-server: $schema=leat.schema.json",
	.example = "leat init\nleat init analysis\nleat init --schema > leat.schema.json",
	.opts = options,
	.params_size = sizeof(struct init),
	.run = run_init,
};
