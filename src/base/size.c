/* size.c - see size.h */
#include "base/size.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"

bool
leat_size_unit(const char *unit, double *bytes)
{
	static const char known[] = "kKmMgGtT";
	const char *prefix = *unit ? strchr(known, *unit) : NULL;
	double step = 1000;

	*bytes = 1;
	if (prefix) {
		unit++;
		if (*unit == 'i' || *unit == 'I') {
			step = 1024;
			unit++;
		}
		for (ptrdiff_t i = 0; i <= (prefix - known) / 2; i++)
			*bytes *= step;
	}
	return !*unit || ((*unit == 'B' || *unit == 'b') && !unit[1]);
}

enum leat_status
leat_parse_size(const char *text, uint64_t *bytes, struct leat_err *err)
{
	static const struct leat_opt size = {
		.name = "size", .type = LEAT_OPT_SIZE, .min = 0, .max = 9e18, .doc = "bytes"};
	enum leat_status status;
	struct leat_mem mem;
	int64_t value = 0;

	leat_err_clear(err);
	leat_mem_init(&mem, SIZE_MAX);
	status = leat_opt_put_text(&size, &value, text, NULL, &mem, NULL);
	if (status == LEAT_NOMEM)
		return leat_fail(err, status, "out of memory");
	if (status != LEAT_OK)
		return leat_fail(err, LEAT_INVALID,
		                 "'%.80s' is not a size: expected bytes, or a number and a unit such as 512MiB or 2GB",
		                 text);
	*bytes = (uint64_t)value;
	return LEAT_OK;
}

/* Tenths are computed as integers because printf's decimal point depends on the locale. */
static char *
format(char *buf, size_t cap, unsigned long long bytes, bool up)
{
	static const char units[] = "KMGTPE";
	unsigned long long unit = 1024, whole, tenths;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, cap, "%llu B", bytes);
		return buf;
	}
	while (units[i + 1] != '\0' && bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	whole = bytes / unit;
	tenths = (bytes % unit * 10 + (up ? unit - 1 : unit / 2)) / unit;
	if (tenths == 10) {
		whole++;
		tenths = 0;
	}
	if (whole == 1024 && units[i + 1] != '\0') {
		whole = 1;
		i++;
	}
	if (tenths == 0)
		snprintf(buf, cap, "%llu %ciB", whole, units[i]);
	else
		snprintf(buf, cap, "%llu.%llu %ciB", whole, tenths, units[i]);
	return buf;
}

char *
leat_format_size(char *buf, size_t cap, unsigned long long bytes)
{
	return format(buf, cap, bytes, false);
}

char *
leat_format_size_up(char *buf, size_t cap, unsigned long long bytes)
{
	return format(buf, cap, bytes, true);
}
