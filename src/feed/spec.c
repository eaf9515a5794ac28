/* spec.c - parse the pipe level of the spec language; base/arg.c parses calls and values */
#include "feed/spec.h"

#include <string.h>

#include "base/opt.h"

static enum leat_status
parse_calls(struct leat_spec *spec, struct leat_parse *p)
{
	struct leat_call *calls = NULL;
	size_t count = 0, cap = 0;
	enum leat_status status;

	if (leat_parse_at_end(p))
		return leat_fail(p->err, LEAT_SPEC,
		                 "the spec is empty: start with a source, like tfrecord('*.tfrecord')");
	do {
		status = leat_parse_grow(p, (void **)&calls, &cap, count, sizeof(*calls));
		if (status == LEAT_OK)
			status = leat_parse_call(p, &calls[count]);
		if (status != LEAT_OK)
			return status;
		count++;
	} while (leat_parse_accept(p, '|'));
	if (!leat_parse_at_end(p))
		return leat_parse_expected(p, calls[count - 1].args ? "'|'" : "'|' or '('");
	spec->call = calls;
	spec->calls = count;
	return LEAT_OK;
}

enum leat_status
leat_spec_parse(struct leat_spec *spec, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_parse p;
	enum leat_status status;

	*spec = (struct leat_spec){.mem = mem};
	status = leat_parse_begin(&p, text, mem, err);
	if (status == LEAT_OK)
		status = parse_calls(spec, &p);
	if (status == LEAT_OK)
		status = leat_parse_keep(&p, text, strlen(text), &spec->text);
	spec->blocks = p.blocks;
	if (status != LEAT_OK)
		leat_spec_free(spec);
	return status;
}

void
leat_spec_free(struct leat_spec *spec)
{
	leat_parse_free(spec->mem, spec->blocks);
	*spec = (struct leat_spec){0};
}
