/* stats.c - see stats.h */
#include "trace/stats.h"

const struct leat_stat leat_stat_list[] = {
#define COUNTER(name, unit, doc) {#name, unit, doc},
#define GAUGE(type, name, unit, doc) {#name, unit, doc},
#define NAME(name, doc) {#name, "name", doc},
	LEAT_STATS(COUNTER, GAUGE, NAME)
#undef COUNTER
#undef GAUGE
#undef NAME
		{0},
};

static void
add_key(struct leat_str *out, const char *name)
{
	bool first = out->len > 0 && out->text[out->len - 1] == '{';

	leat_str_addf(out, "%s\"%s\": ", first ? "" : ", ", name);
}

static void
add_number(struct leat_str *out, const char *name, unsigned long long value)
{
	add_key(out, name);
	leat_str_addf(out, "%llu", value);
}

static void
add_name(struct leat_str *out, const char *name, const char *value)
{
	add_key(out, name);
	leat_str_add_json(out, value);
}

void
leat_stats_add_json(const struct leat_stats *stats, struct leat_str *out)
{
	leat_str_add(out, "{");
#define COUNTER(name, unit, doc) add_number(out, #name, stats->name);
#define GAUGE(type, name, unit, doc) add_number(out, #name, stats->name);
#define NAME(name, doc) add_name(out, #name, stats->name);
	LEAT_STATS(COUNTER, GAUGE, NAME)
#undef COUNTER
#undef GAUGE
#undef NAME
	leat_str_add(out, "}");
}
