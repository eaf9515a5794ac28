/* main.c - the `leat` program: finds the command, parses its options, runs it, prints its error
 *
 * Exit status: 0 success, 1 failure, 2 usage error. If the reader of our output goes away, SIGPIPE ends the process
 * silently. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/print.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, MAX_COMMANDS = 64 };

static int
print_error(const char *command, const struct leat_err *err)
{
	fflush(stdout); /* keeps the order if both go to the same place; finish() checks for errors */
	fprintf(stderr, "leat%s%s: %s\n", *command ? " " : "", command, err->text);
	return err->status == LEAT_INVALID || err->status == LEAT_SPEC ? EXIT_USAGE : EXIT_FAILED;
}

static const struct leat_command *
find(const char *name)
{
	for (size_t i = 0; leat_commands[i]; i++)
		if (strcmp(leat_commands[i]->name, name) == 0)
			return leat_commands[i];
	return NULL;
}

static int
unknown_command(const char *name)
{
	const char *names[MAX_COMMANDS];
	char sentence[LEAT_UNKNOWN_TEXT];
	size_t n = 0;

	for (; leat_commands[n] && n < MAX_COMMANDS; n++)
		names[n] = leat_commands[n]->name;
	fprintf(stderr, "leat: %s\n",
	        leat_unknown_text(
			&(struct leat_unknown){
				.what = "command", .name = name, .known = names, .count = n, .hint = "see 'leat help'"},
			sentence));
	return EXIT_USAGE;
}

static enum leat_status
overview(struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;

	printf("%sleat%s feeds data to training loops.\n\n", leat_bold(stdout), leat_plain(stdout));
	printf("usage: leat COMMAND [options] ...\n\n");
	leat_table_init(&table, mem, 2);
	for (size_t i = 0; leat_commands[i]; i++) {
		leat_str_add(leat_table_cell(&table), leat_commands[i]->name);
		leat_str_add(leat_table_cell(&table), leat_commands[i]->summary);
	}
	leat_str_add(leat_table_cell(&table), "help [COMMAND]");
	leat_str_add(leat_table_cell(&table), "show this page, or help for a command");
	leat_str_add(leat_table_cell(&table), "help storage");
	leat_str_add(leat_table_cell(&table), "list the settings of remote storage");
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
explain(const struct leat_command *c, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status;

	printf("usage: %sleat %s%s [options]%s%s\n\n%s.\n", leat_bold(stdout), c->name, leat_plain(stdout),
	       *c->operands ? " " : "", c->operands, c->summary);
	if (c->help)
		printf("\n%s\n", c->help);
	printf("\noptions\n");
	status = leat_args_help(c->opts, stdout, mem, err);
	if (c->example)
		printf("\nexample\n");
	for (const char *line = c->example; line && *line;) {
		size_t len = strcspn(line, "\n");

		printf("  %.*s\n", (int)len, line);
		line += len + (line[len] == '\n');
	}
	return status;
}

/* "region            AWS_REGION AWS_DEFAULT_REGION   region of S3" */
static enum leat_status
explain_storage(struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;

	printf("Settings of remote storage, for --storage NAME=VALUE, in C struct leat_options, and in\n"
	       "Python feed(storage={...}). What is not set comes from the variable, if there is one, or for\n"
	       "S3 from the profile. Keys are not accepted here: they come from a profile or AWS_ACCESS_KEY_ID.\n\n");
	leat_table_init(&table, mem, 3);
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++) {
		struct leat_str *cell = leat_table_cell(&table);

		leat_str_add(cell, s->opt.name);
		if (s->opt.choices)
			leat_str_addf(cell, " %s", s->opt.choices);
		leat_str_add(leat_table_cell(&table), s->variables);
		leat_setting_doc(s, leat_table_cell(&table));
	}
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
check_operands(const struct leat_command *c, const struct leat_invocation *run, struct leat_err *err)
{
	if (run->operands < c->min_operands)
		return leat_fail(err, LEAT_INVALID, "%s is missing", c->operands);
	if (run->operands > c->max_operands)
		return leat_fail(err, LEAT_INVALID, "unexpected argument '%s'", run->operand[c->max_operands]);
	return LEAT_OK;
}

static enum leat_status
parse_storage(const struct leat_command *c, struct leat_invocation *run, struct leat_storage *storage,
              struct leat_err *err)
{
	const struct leat_opt *opt = leat_opt_find(c->opts, "storage");

	if (opt)
		run->settings = ((const struct leat_strings *)((const char *)run->params + opt->offset))->value;
	run->storage = storage;
	return leat_storage_parse(storage, run->settings, run->mem, err);
}

/* argv[-1] is the command's name. */
static int
run_command(const struct leat_command *c, int argc, char *const *argv, struct leat_mem *mem)
{
	const char **operand = leat_alloc_array(mem, (size_t)argc + 1, sizeof(*operand));
	void *params = leat_alloc(mem, c->params_size);
	struct leat_invocation run = {
		.params = params, .operand = operand, .arguments = (const char *const *)(argv - 1), .mem = mem};
	struct leat_storage storage;
	enum leat_status status;
	struct leat_err err;
	bool help = false, read = false;
	int code;

	leat_err_clear(&err);
	if (!operand || !params) {
		status = leat_fail_mem(&err, mem, c->params_size, "the options");
		goto out;
	}
	status = leat_args_read(c->opts, params, argc, argv, operand, &run.operands, &help, mem, &err);
	if (status == LEAT_OK && help) {
		status = explain(c, mem, &err);
		goto out;
	}
	if (status == LEAT_OK)
		status = check_operands(c, &run, &err);
	if (status == LEAT_OK)
		status = parse_storage(c, &run, &storage, &err);
	read = status == LEAT_OK;
	if (read)
		status = c->run(&run, &err);
out:
	if (params)
		leat_opts_free(c->opts, params, mem);
	leat_free(mem, params);
	leat_free(mem, operand);
	if (status == LEAT_OK)
		return EXIT_DONE;
	leat_fail(&err, status, "%s", leat_status_text(status)); /* unless it already has a message */
	code = print_error(c->name, &err);
	if (!read)
		fprintf(stderr, "see 'leat %s --help'\n", c->name);
	return code;
}

static int
help_command(int argc, char *const *argv, struct leat_mem *mem)
{
	const struct leat_command *c = argc > 0 ? find(argv[0]) : NULL;
	struct leat_err err;
	enum leat_status status;

	bool is_storage = argc > 0 && strcmp(argv[0], "storage") == 0;

	if (argc > 0 && !c && !is_storage)
		return unknown_command(argv[0]);
	leat_err_clear(&err);
	if (is_storage)
		status = explain_storage(mem, &err);
	else
		status = c ? explain(c, mem, &err) : overview(mem, &err);
	return status == LEAT_OK ? EXIT_DONE : print_error("", &err);
}

/* Flushing may fail, for example on a full disk. */
static int
finish(int status)
{
	struct leat_err err;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	leat_err_clear(&err);
	leat_fail_errno(&err, errno, "standard output");
	return print_error("", &err);
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";
	int rest = argc > 2 ? argc - 2 : 0;
	struct leat_mem mem;
	int status;

	signal(SIGPIPE, SIG_DFL);
	leat_mem_init(&mem, SIZE_MAX);
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		status = help_command(rest, argv + argc - rest, &mem);
	} else if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
		printf("leat %s\n", leat_version());
		status = EXIT_DONE;
	} else if (find(name)) {
		status = run_command(find(name), rest, argv + argc - rest, &mem);
	} else {
		status = unknown_command(name);
	}
	return finish(status);
}
