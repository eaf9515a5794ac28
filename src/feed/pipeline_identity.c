/* pipeline_identity.c - canonical text, identity and cache key of a pipeline
 *
 * The canonical text is for people and has the value of every option. The identity leaves out locations and hints and
 * adds op versions; its hash decides whether a checkpoint matches. */
#include <string.h>

#include "feed/pipeline_compile.h"
#include "op/map.h"

enum { MAX_TEXT = 256 * 1024 };

static void
print_fields(const struct leat_bound *bound, const char *comma, struct leat_str *out)
{
	if (bound->fields.count == 0)
		return;
	leat_str_addf(out, "%sfield=[", comma);
	for (size_t i = 0; i < bound->fields.count; i++) {
		leat_str_add(out, i ? ", " : "");
		leat_str_add_quoted(out, bound->fields.value[i]);
	}
	leat_str_add(out, "]");
}

static void
print_source(const struct leat_pipeline *p, bool identity, struct leat_str *out)
{
	const struct leat_source_kind *kind = p->source.kind;

	leat_str_add(out, kind->name);
	if (identity)
		leat_str_addf(out, "@%d", kind->version);
	leat_str_add(out, "(");
	if (kind->print)
		kind->print(p->source_params, !identity, out);
	else
		leat_opts_print(kind->opts, p->source_params, !identity, out);
	leat_str_add(out, ")");
}

static void
print_op(const struct leat_bound *bound, bool identity, struct leat_str *out)
{
	size_t before;

	leat_str_add(out, bound->op->name);
	if (identity)
		leat_str_addf(out, "@%d", bound->op->version);
	leat_str_add(out, "(");
	before = out->len;
	if (identity && bound->op->kind == LEAT_OP_CACHE)
		; /* location and size do not affect the output */
	else if (identity && bound->op == &leat_op_map)
		leat_map_identity(bound->params, out);
	else if (bound->op->print)
		bound->op->print(bound->params, out);
	else
		leat_opts_print(bound->op->opts, bound->params, !identity, out);
	print_fields(bound, out->len > before ? ", " : "", out);
	leat_str_add(out, ")");
}

void
leat_bound_print(const struct leat_bound *bound, struct leat_str *out)
{
	print_op(bound, false, out);
}

static void
print_piped(const struct leat_bound *bound, bool identity, struct leat_str *out)
{
	leat_str_add(out, " | ");
	print_op(bound, identity, out);
}

/* Does an op affect the output? A cache does only if it freezes random ops before it. */
static bool
affects_output(const struct leat_pipeline *p, const struct leat_op *op)
{
	return op->kind != LEAT_OP_HINT && (op->kind != LEAT_OP_CACHE || p->cache_frozen);
}

static char *
print_pipeline(const struct leat_pipeline *p, bool identity)
{
	struct leat_str out;
	char *text;

	leat_str_init(&out, p->mem, MAX_TEXT);
	print_source(p, identity, &out);
	for (int i = 0; i < p->ops; i++)
		if (!identity || affects_output(p, p->op[i].op))
			print_piped(&p->op[i], identity, &out);
	text = leat_str_take(&out);
	if (!text)
		leat_str_free(&out);
	return text;
}

/* The versions of all files, so that rewritten ones count as new data. */
static void
add_versions(const struct leat_source *source, struct leat_sha256 *sha)
{
	leat_fingerprint_number(sha, source->described);
	if (source->stamp)
		leat_sha256_add(sha, source->stamp, LEAT_SHA256_BYTES);
	for (size_t i = 0; !source->stamp && i < leat_files_count(source->files); i++)
		leat_fingerprint_number(sha, leat_object_token(leat_files_at(source->files, i)));
}

/* Covers everything cached samples depend on: the data, the limits, which decide what is bad, the sample ops before the
 * cache and, if any is random, the seed. */
enum leat_status
leat_pipeline_cache_key(struct leat_pipeline *p, uint64_t seed, struct leat_err *err)
{
	uint8_t digest[LEAT_SHA256_BYTES];
	struct leat_sha256 *sha = leat_sha256_new();
	enum leat_status status = LEAT_OK;
	struct leat_str out;

	leat_str_init(&out, p->mem, MAX_TEXT);
	leat_str_addf(&out, "%s ", p->data);
	print_source(p, true, &out);
	for (int s = 0; s < p->cached; s++)
		for (int k = 0; k < p->stage[s].ops; k++)
			print_piped(p->stage[s].op[k], true, &out);
	leat_str_addf(&out, " max_pixels %llu max_bytes %llu", (unsigned long long)p->limits.pixels,
	              (unsigned long long)p->limits.bytes);
	if (p->cache_frozen)
		leat_str_addf(&out, " seed %llu", (unsigned long long)seed);
	if (sha && !out.failed) {
		leat_sha256_add(sha, leat_str_text(&out), out.len);
		add_versions(&p->source, sha);
		leat_sha256_end(sha, digest);
		leat_hex(digest, sizeof digest, p->cache_key);
	} else {
		status = leat_fail_mem(err, p->mem, MAX_TEXT, "the cache's key");
	}
	leat_sha256_free(sha);
	leat_str_free(&out);
	return status;
}

enum leat_status
leat_identify(struct leat_pipeline *p, struct leat_err *err)
{
	uint8_t digest[LEAT_SHA256_BYTES];

	p->canonical = print_pipeline(p, false);
	p->identity = print_pipeline(p, true);
	if (!p->canonical || !p->identity || leat_sha256(p->identity, strlen(p->identity), digest) != 0)
		return leat_fail_mem(err, p->mem, MAX_TEXT, "the pipeline's text");
	leat_hex(digest, sizeof digest, p->hash);
	return leat_source_fingerprint(&p->source, p->data, err);
}
