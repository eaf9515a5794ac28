/* show.c - `leat show`: what an action was, what it made, and how it went */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "cas/manifest.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/show_rejects.h"

struct params {
	const char *project;
	bool json, rejects;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct params),
	LEAT_BOOL(struct params, json, "false", "print the manifest, or the rejects, as they are stored"),
	LEAT_BOOL(struct params, rejects, "false",
                  "print the records that loading a source or a check rejected, and why"),
	LEAT_OPT_END,
};

enum { WIDTH = 8 };

static void
print_run(const struct leat_manifest *m)
{
	char when[LEAT_ASK_TEXT], size[32], text[512];

	snprintf(text, sizeof(text), "%s, by build %s", leat_ask_time(m->begun_s, when), m->run);
	leat_ask_print("made", WIDTH, text);
	snprintf(text, sizeof(text), "%.3g s, %.3g s of CPU; %u cpu%s, %u thread%s; %s at most", m->seconds, m->cpu_s,
	         m->cpus, leat_plural(m->cpus), m->threads, leat_plural(m->threads),
	         leat_format_size(size, sizeof(size), m->peak_bytes));
	leat_ask_print("took", WIDTH, text);
	if (m->attempts > 1) {
		snprintf(text, sizeof(text), "%u", m->attempts);
		leat_ask_print("attempts", WIDTH, text);
	}
	if (*m->warning)
		leat_ask_print("warning", WIDTH, m->warning);
	if (*m->metrics)
		leat_ask_print("metrics", WIDTH, m->metrics);
}

/* The contents of an output; where to read it, if it is one file. */
static void
print_output(struct leat_cas *cas, const struct leat_content *output)
{
	char text[LEAT_CONTENT_TEXT], shown[LEAT_ASK_TEXT], path[PATH_MAX];

	leat_ask_print("output", WIDTH, leat_ask_content(leat_content_text(output, text), shown));
	if (!leat_cas_has(cas, output)) {
		leat_ask_print("", WIDTH, "not in the store any more; the next build makes it again if it needs it");
	} else if (output->kind != LEAT_CONTENT_FOLDER) {
		leat_cas_blob_path(cas, &output->digest, path);
		leat_ask_print("", WIDTH, path);
	}
}

static void
print_fields(const struct leat_manifest *m)
{
	char shown[LEAT_ASK_TEXT];
	int width = 0;

	for (size_t i = 0; i < m->fields; i++)
		if ((int)strlen(m->field[i].name) > width && strlen(m->field[i].name) < 40)
			width = (int)strlen(m->field[i].name);
	printf("\nwhat it depends on\n");
	for (size_t i = 0; i < m->fields; i++) {
		struct leat_content content;
		bool is_content = leat_content_parse(m->field[i].value, &content, NULL) == LEAT_OK;

		if (i == m->fields - m->learned)
			printf("\nfound while it ran\n");
		leat_ask_print(m->field[i].name, width,
		               is_content ? leat_ask_content(m->field[i].value, shown) : m->field[i].value);
	}
}

static enum leat_status
print_json(struct leat_cas *cas, const struct leat_manifest *m, struct leat_err *err)
{
	char hex[LEAT_SHA256_HEX], path[PATH_MAX], part[4096];
	size_t got;
	FILE *file;

	leat_hex(m->key.byte, sizeof(m->key.byte), hex);
	snprintf(path, sizeof(path), "%s/act/%.2s/%s", leat_cas_folder(cas), hex, hex);
	file = fopen(path, "re");
	if (!file)
		return leat_fail(err, LEAT_IO, "cannot read '%s'", path);
	while ((got = fread(part, 1, sizeof(part), file)) > 0)
		fwrite(part, 1, got, stdout);
	fclose(file);
	return LEAT_OK;
}

static void
print_drift(const struct leat_manifest *m, struct leat_mem *mem)
{
	struct leat_str text;

	leat_str_init(&text, mem, 1 << 16);
	leat_ask_drift(m, mem, &text);
	if (text.len)
		leat_ask_print("drift", WIDTH, leat_str_text(&text));
	leat_str_free(&text);
}

static void
print_manifest(struct leat_cas *cas, const struct leat_manifest *m, struct leat_mem *mem)
{
	leat_print_line(stdout, "%s-%llu%s%s%s%s", m->step, (unsigned long long)m->number, *m->slice ? "  " : "",
	                *m->slice ? m->step : "", *m->slice ? ":" : "", m->slice);
	print_run(m);
	print_drift(m, mem);
	print_output(cas, &m->output);
	print_fields(m);
}

static enum leat_status
run_show(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_manifest *manifest = NULL;
	struct leat_steps steps;
	enum leat_status status = leat_ask_open(&steps, run->mem, p->project, LEAT_LOOK_BACK, err);

	if (status != LEAT_OK)
		return status;
	if (p->rejects) {
		status = leat_show_rejects(&steps, run->operand[0], p->json, err);
		leat_steps_close(&steps);
		return status;
	}
	status = leat_ask_action(&steps, run->operand[0], &manifest, err);
	if (status == LEAT_OK && p->json)
		status = print_json(steps.cas, manifest, err);
	else if (status == LEAT_OK)
		print_manifest(steps.cas, manifest, run->mem);
	leat_manifest_free(manifest, run->mem);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_show = {
	.name = "show",
	.summary = "Show an action: what it depends on, what it made, how long it took",
	.operands = "ID|STEP[:SLICE]",
	.min_operands = 1,
	.max_operands = 1,
	.help = "A step's name shows its last action. The first line has the action's id, such as decode-42;\n"
		"'leat made FILE' prints it, too.",
	.example = "leat show decode-42\n"
		   "leat show decode:subject=3,bin=7\n"
		   "leat show events --rejects",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_show,
};
