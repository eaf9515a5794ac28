/* changes.c - see changes.h */
#include "feed/changes.h"

#include <stdbool.h>
#include <string.h>

#include "feed/pipeline.h"
#include "op/op.h"

enum { MAX = 1 + LEAT_MAX_OPS, SHOWN = 200 };

struct call {
	const char *text; /* "batch@1(32, ...)" */
	size_t len;
	size_t name; /* length of the name */
	bool plan;
};

struct calls {
	struct call call[MAX]; /* the source comes first */
	int count;
};

/* Length of the first call in `text`. A bar inside quotes does not end it. */
static size_t
call_length(const char *text)
{
	const char *s = text;
	bool quoted = false;

	for (; *s && (quoted || strncmp(s, " | ", 3) != 0); s++) {
		if (quoted && *s == '\\' && s[1])
			s++;
		else if (*s == '\'')
			quoted = !quoted;
	}
	return (size_t)(s - text);
}

static enum leat_status
split(struct calls *calls, const char *text, struct leat_err *err)
{
	char name[LEAT_MAX_NAME + 1];

	calls->count = 0;
	while (*text) {
		struct call *call = &calls->call[calls->count];
		const struct leat_op *op;

		if (calls->count == MAX)
			return leat_fail(err, LEAT_DATA, "the checkpoint is damaged: its pipeline has too many ops");
		*call = (struct call){.text = text, .len = call_length(text), .name = strcspn(text, "@(")};
		text += call->len + (text[call->len] ? 3 : 0);
		if (call->name > call->len || call->name > LEAT_MAX_NAME)
			return leat_fail(err, LEAT_DATA, "the checkpoint is damaged: its pipeline cannot be read");
		memcpy(name, call->text, call->name);
		name[call->name] = '\0';
		op = leat_op_find(name);
		if (calls->count > 0 && !op)
			return leat_fail(err, LEAT_MISMATCH,
			                 "the checkpoint is from another version of leat, with an op '%s'", name);
		call->plan = calls->count > 0 && op->kind == LEAT_OP_PLAN;
		calls->count++;
	}
	return LEAT_OK;
}

static bool
same(const struct call *a, const struct call *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* The same but for the version: a source's says how samples are made, not which there are. */
static bool
same_source(const struct call *a, const struct call *b)
{
	size_t a_args = strcspn(a->text, "("), b_args = strcspn(b->text, "(");

	return a->name == b->name && memcmp(a->text, b->text, a->name) == 0 && a->len - a_args == b->len - b_args &&
	       memcmp(a->text + a_args, b->text + b_args, a->len - a_args) == 0;
}

static const struct call *
next_plan_op(const struct calls *calls, int *at)
{
	while (*at < calls->count)
		if (calls->call[(*at)++].plan)
			return &calls->call[*at - 1];
	return NULL;
}

static enum leat_status
fail_order(const struct call *then, const struct call *now, struct leat_err *err)
{
	static const struct call nothing = {.text = "nothing", .len = 7};

	then = then ? then : &nothing;
	now = now ? now : &nothing;
	return leat_fail(err, LEAT_MISMATCH,
	                 "the checkpoint is from a pipeline with another order of samples: it has %.*s where this one "
	                 "has %.*s",
	                 (int)(then->len < SHOWN ? then->len : SHOWN), then->text,
	                 (int)(now->len < SHOWN ? now->len : SHOWN), now->text);
}

static enum leat_status
compare_order(const struct calls *then, const struct calls *now, struct leat_err *err)
{
	int i = 1, k = 1;

	if (then->count == 0 || now->count == 0 || !same_source(&then->call[0], &now->call[0]))
		return fail_order(then->count ? &then->call[0] : NULL, now->count ? &now->call[0] : NULL, err);
	for (;;) {
		const struct call *a = next_plan_op(then, &i), *b = next_plan_op(now, &k);

		if (!a && !b)
			return LEAT_OK;
		if (!a || !b || !same(a, b))
			return fail_order(a, b, err);
	}
}

/* ---- what has changed ---- */

/* "a | b" for calls [from, to). Their versions are for the case that nothing else differs. */
static void
add_calls(struct leat_str *text, const struct calls *calls, int from, int to, bool versions)
{
	for (int i = from; i < to; i++) {
		const struct call *call = &calls->call[i];
		size_t args = versions ? call->name : strcspn(call->text, "("), rest = call->len - args;

		leat_str_addf(text, "%s%.*s%.*s", i > from ? " | " : "", (int)call->name, call->text,
		              (int)(rest < SHOWN ? rest : SHOWN), call->text + args);
	}
}

static void
add_change(struct leat_str *text, const struct calls *then, int i, int i_end, const struct calls *now, int k, int k_end)
{
	bool versions = i_end - i == 1 && k_end - k == 1 && same_source(&then->call[i], &now->call[k]);

	if (i == i_end && k == k_end)
		return;
	leat_str_add(text, text->len ? "; " : "");
	if (i == i_end) {
		leat_str_add(text, "new: ");
		add_calls(text, now, k, k_end, false);
	} else {
		add_calls(text, then, i, i_end, versions);
		leat_str_add(text, k == k_end ? " is gone" : " became ");
		add_calls(text, now, k, k_end, versions);
	}
}

/* Lists what is between the calls of a longest common subsequence. */
static void
list_changes(struct leat_str *text, const struct calls *then, const struct calls *now)
{
	unsigned char longest[MAX + 1][MAX + 1] = {{0}}; /* of the calls from i and k on */
	int i = 0, k = 0;

	for (int a = then->count; a-- > 0;)
		for (int b = now->count; b-- > 0;) {
			unsigned char x = longest[a + 1][b], y = longest[a][b + 1];

			longest[a][b] = same(&then->call[a], &now->call[b]) ? (unsigned char)(longest[a + 1][b + 1] + 1)
			                                                    : (x > y ? x : y);
		}
	while (i < then->count || k < now->count) {
		int from = i, begin = k;

		while (i < then->count && k < now->count && !same(&then->call[i], &now->call[k])) {
			if (longest[i + 1][k] >= longest[i][k + 1])
				i++;
			else
				k++;
		}
		if (i == then->count || k == now->count) {
			i = then->count;
			k = now->count;
		}
		add_change(text, then, from, i, now, begin, k);
		i++;
		k++;
	}
}

enum leat_status
leat_changes(const char *then, const char *now, struct leat_str *text, struct leat_err *err)
{
	struct calls before, after;
	enum leat_status status = split(&before, then, err);

	if (status == LEAT_OK)
		status = split(&after, now, err);
	if (status == LEAT_OK)
		status = compare_order(&before, &after, err);
	if (status == LEAT_OK)
		list_changes(text, &before, &after);
	return status;
}
