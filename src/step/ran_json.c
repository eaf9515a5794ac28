/* ran_json.c - what came of an action, from the machine that ran it to the build; see runner.h
 *
 * Stateless; any thread. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "step/runner.h"

static const char *const outcomes[] = {
	[LEAT_RAN] = "ran",
	[LEAT_EXITED] = "exited",
	[LEAT_SIGNALED] = "signaled",
	[LEAT_TIMED_OUT] = "timed out",
	[LEAT_TOO_LARGE] = "too large",
	[LEAT_NO_OUTPUT] = "no output",
	[LEAT_WROTE_INPUT] = "wrote input",
	[LEAT_STOPPED] = "stopped",
};

/* ---- writing ---- */

static void
add_text(struct leat_str *json, const char *name, const char *text)
{
	leat_str_addf(json, ",\"%s\":", name);
	leat_str_add_json(json, text);
}

static void
add_content(struct leat_str *json, const char *name, const struct leat_content *content)
{
	char text[LEAT_CONTENT_TEXT];

	if (content->kind != LEAT_CONTENT_NONE)
		add_text(json, name, leat_content_text(content, text));
}

void
leat_ran_write(const struct leat_ran *ran, struct leat_str *json)
{
	char log[LEAT_SHA256_HEX];

	leat_hex(ran->log.byte, sizeof(ran->log.byte), log);
	leat_str_addf(json, "{\"outcome\":\"%s\",\"code\":%d,\"log\":\"%s\"", outcomes[ran->outcome], ran->code, log);
	leat_str_addf(json, ",\"seconds\":%.6f,\"cpu_s\":%.6f,\"peak_bytes\":%" PRIu64 ",\"threads\":%u", ran->seconds,
	              ran->cpu_s, ran->peak_bytes, ran->threads);
	add_content(json, "output", &ran->output);
	add_content(json, "imports", &ran->imports);
	add_content(json, "rejects", &ran->rejects);
	if (ran->profile != NULL)
		add_text(json, "profile", ran->profile);
	add_text(json, "metrics", ran->metrics == NULL ? "" : ran->metrics);
	add_text(json, "warning", ran->warning);
	add_text(json, "why", ran->why);
	add_text(json, "work", ran->work);
	leat_str_add(json, "}");
}

/* ---- reading ---- */

struct reader {
	const json_t *root;
	const char *bad; /* the first member that is missing or wrong */
};

static const char *
text_of(struct reader *r, const char *name)
{
	const json_t *value = json_object_get(r->root, name);
	const char *text = json_string_value(value);

	if (text == NULL || strlen(text) != json_string_length(value)) {
		r->bad = r->bad == NULL ? name : r->bad;
		return "";
	}
	return text;
}

static double
number_of(struct reader *r, const char *name, double most)
{
	const json_t *value = json_object_get(r->root, name);
	double number = json_number_value(value);

	if (json_is_number(value) && isfinite(number) && number >= 0 && number <= most)
		return number;
	r->bad = r->bad == NULL ? name : r->bad;
	return 0;
}

static void
read_content(struct reader *r, const char *name, struct leat_content *content)
{
	*content = (struct leat_content){.kind = LEAT_CONTENT_NONE};
	if (json_object_get(r->root, name) != NULL && leat_content_parse(text_of(r, name), content, NULL) != LEAT_OK)
		r->bad = r->bad == NULL ? name : r->bad;
}

static enum leat_outcome
read_outcome(struct reader *r)
{
	const char *text = text_of(r, "outcome");

	for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++)
		if (strcmp(text, outcomes[i]) == 0)
			return (enum leat_outcome)i;
	r->bad = r->bad == NULL ? "outcome" : r->bad;
	return LEAT_EXITED;
}

static void
read_all(struct reader *r, struct leat_ran *ran)
{
	const char *why, *warning, *work;

	ran->outcome = read_outcome(r);
	ran->code = (int)number_of(r, "code", 255);
	ran->seconds = number_of(r, "seconds", 1e9);
	ran->cpu_s = number_of(r, "cpu_s", 1e12);
	ran->peak_bytes = (uint64_t)number_of(r, "peak_bytes", 1e18);
	ran->threads = (unsigned)number_of(r, "threads", 1e9);
	read_content(r, "output", &ran->output);
	read_content(r, "imports", &ran->imports);
	read_content(r, "rejects", &ran->rejects);
	if (!leat_digest_parse(text_of(r, "log"), &ran->log))
		r->bad = r->bad == NULL ? "log" : r->bad;
	if ((ran->outcome == LEAT_RAN) != (ran->output.kind != LEAT_CONTENT_NONE) ||
	    (ran->imports.kind != LEAT_CONTENT_NONE && ran->imports.kind != LEAT_CONTENT_FOLDER))
		r->bad = r->bad == NULL ? "output" : r->bad;
	work = text_of(r, "work");
	if (strlen(work) < sizeof(ran->work))
		strcpy(ran->work, work);
	why = text_of(r, "why");
	warning = text_of(r, "warning");
	leat_show(ran->why, sizeof(ran->why), why, strlen(why));
	leat_show(ran->warning, sizeof(ran->warning), warning, strlen(warning));
}

enum leat_status
leat_ran_read(struct leat_ran *ran, struct leat_mem *mem, const char *json, size_t len, struct leat_err *err)
{
	json_error_t why;
	json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &why);
	struct reader r = {.root = root};
	enum leat_status status = LEAT_OK;

	*ran = (struct leat_ran){.checkpoint_fd = -1};
	if (root == NULL)
		return leat_fail(err, LEAT_DATA, "the result of an action is not JSON: %s", why.text);
	read_all(&r, ran);
	ran->metrics = leat_strdup(mem, text_of(&r, "metrics"));
	if (json_object_get(root, "profile") != NULL)
		ran->profile = leat_strdup(mem, text_of(&r, "profile"));
	if (r.bad != NULL)
		status = leat_fail(
			err, LEAT_DATA,
			"'%s' of an action's result is missing or wrong; are all machines on the same version "
			"of Leat?",
			r.bad);
	else if (ran->metrics == NULL || (ran->profile == NULL && json_object_get(root, "profile") != NULL))
		status = leat_fail_mem(err, mem, 1, "metrics");
	json_decref(root);
	return status;
}
