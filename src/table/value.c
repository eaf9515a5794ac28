/* value.c - see value.h: values from text */
#include "table/value.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

enum { MAX_NUMBER = 1100, MAX_DECIMAL = 38 };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Case-insensitive in ASCII; `word` is in lower case. */
static bool
is_word(const char *text, size_t len, const char *word)
{
	if (strlen(word) != len)
		return false;
	for (; len > 0; text++, word++, len--)
		if ((*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text) != *word)
			return false;
	return true;
}

/* ---- whole numbers ---- */

static const struct whole {
	unsigned char bytes;
	bool is_signed;
	const char *none, *too_large;
} wholes[] = {
	[LEAT_COLUMN_INT8] = {1, true, "no int8", "too large for int8"},
	[LEAT_COLUMN_INT16] = {2, true, "no int16", "too large for int16"},
	[LEAT_COLUMN_INT32] = {4, true, "no int32", "too large for int32"},
	[LEAT_COLUMN_INT64] = {8, true, "no int64", "too large for int64"},
	[LEAT_COLUMN_UINT8] = {1, false, "no uint8", "too large for uint8"},
	[LEAT_COLUMN_UINT16] = {2, false, "no uint16", "too large for uint16"},
	[LEAT_COLUMN_UINT32] = {4, false, "no uint32", "too large for uint32"},
	[LEAT_COLUMN_UINT64] = {8, false, "no uint64", "too large for uint64"},
};

static const char *
read_whole(const struct whole *type, const char *text, size_t len, void *to)
{
	const char *end = text + len;
	bool minus = len > 0 && *text == '-', overflow = false;
	uint64_t value = 0, most;

	text += len > 0 && (*text == '-' || *text == '+');
	if (text == end)
		return type->none;
	for (; text < end; text++) {
		if (!is_digit(*text))
			return type->none;
		overflow |= __builtin_mul_overflow(value, (uint64_t)10, &value) ||
		            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value);
	}
	most = type->bytes == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * type->bytes) - 1;
	if (type->is_signed)
		most = most / 2 + minus;
	else if (minus)
		most = 0;
	if (overflow || value > most)
		return minus && !type->is_signed ? type->none : type->too_large;
	value = minus ? -value : value;
	memcpy(to, &value, type->bytes); /* little-endian, as DuckDB is */
	return NULL;
}

/* ---- numbers ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain; /* the C locale, for the decimal point */

static void
make_locale(void)
{
	plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* A decimal number taken apart: digits * 10^exponent. */
struct parts {
	uint64_t digits; /* the first 19 */
	unsigned count;  /* of them, without leading zeros; more than 19: `digits` is not all */
	int exponent;
	bool minus;
};

static const char *
add_digits(const char *text, const char *end, struct parts *parts, bool fraction)
{
	for (; text < end && is_digit(*text); text++) {
		if (parts->count < 19)
			parts->digits = parts->digits * 10 + (uint64_t)(*text - '0');
		parts->count += parts->count > 0 || *text != '0';
		parts->exponent -= fraction;
	}
	return text;
}

static const char *
add_exponent(const char *text, const char *end, struct parts *parts)
{
	int value = 0;
	bool minus;

	if (text == end || (*text != 'e' && *text != 'E'))
		return text;
	text++;
	minus = text < end && *text == '-';
	text += text < end && (*text == '-' || *text == '+');
	if (text == end)
		return NULL;
	for (; text < end && is_digit(*text); text++)
		value = value < 100000 ? value * 10 + (*text - '0') : value;
	parts->exponent += minus ? -value : value;
	return text;
}

/* [sign] digits [. digits] [e [sign] digits], with a digit before or after the point. */
static bool
take_apart(const char *text, size_t len, struct parts *parts)
{
	const char *end = text + len, *whole, *begin;

	*parts = (struct parts){.minus = len > 0 && *text == '-'};
	text += len > 0 && (*text == '-' || *text == '+');
	begin = text;
	whole = add_digits(text, end, parts, false);
	text = whole;
	if (text < end && *text == '.')
		text = add_digits(text + 1, end, parts, true);
	if (text - begin == (text > whole)) /* no digit at all */
		return false;
	text = add_exponent(text, end, parts);
	return text == end;
}

/* Whole numbers below 2^53 and powers of ten up to 10^22 are exact in a double, so their product or quotient is rounded
 * once, as it should be. */
static bool
is_exact(const struct parts *parts, double *value)
{
	static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

	if (parts->count > 19 || parts->digits >= (uint64_t)1 << 53 || parts->exponent < -22 || parts->exponent > 22)
		return false;
	*value = (double)parts->digits;
	if (parts->exponent < 0)
		*value /= tens[-parts->exponent];
	else
		*value *= tens[parts->exponent];
	*value = parts->minus ? -*value : *value;
	return true;
}

static bool
is_special(const char *text, size_t len, double *value)
{
	bool minus = len > 0 && *text == '-', sign = minus || (len > 0 && *text == '+');

	text += sign;
	len -= sign;
	if (is_word(text, len, "nan"))
		*value = (double)NAN;
	else if (is_word(text, len, "inf") || is_word(text, len, "infinity"))
		*value = (double)INFINITY;
	else
		return false;
	*value = minus ? -*value : *value;
	return true;
}

static const char *
read_double(const char *text, size_t len, void *to)
{
	char copy[MAX_NUMBER + 1];
	struct parts parts;
	double value;

	if (take_apart(text, len, &parts)) {
		if (!is_exact(&parts, &value)) {
			if (len > MAX_NUMBER)
				return "too long for a number";
			memcpy(copy, text, len);
			copy[len] = '\0';
			value = strtod_l(copy, NULL, plain);
			if (isinf(value))
				return "too large for double";
		}
	} else if (!is_special(text, len, &value)) {
		return "no number";
	}
	memcpy(to, &value, sizeof(value));
	return NULL;
}

/* The same for a float: rounding to double first would round twice. */
static bool
is_exact_float(const struct parts *parts, float *value)
{
	static const float tens[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};

	if (parts->digits >= (uint64_t)1 << 24 || parts->count > 19 || parts->exponent < -10 || parts->exponent > 10)
		return false;
	*value = (float)parts->digits;
	if (parts->exponent < 0)
		*value /= tens[-parts->exponent];
	else
		*value *= tens[parts->exponent];
	*value = parts->minus ? -*value : *value;
	return true;
}

static const char *
read_float(const char *text, size_t len, void *to)
{
	char copy[MAX_NUMBER + 1];
	struct parts parts;
	double special;
	float value;

	if (take_apart(text, len, &parts)) {
		if (!is_exact_float(&parts, &value)) {
			if (len > MAX_NUMBER)
				return "too long for a number";
			memcpy(copy, text, len);
			copy[len] = '\0';
			value = strtof_l(copy, NULL, plain);
			if (isinf(value))
				return "too large for float";
		}
	} else if (is_special(text, len, &special)) {
		value = (float)special;
	} else {
		return "no number";
	}
	memcpy(to, &value, sizeof(value));
	return NULL;
}

/* ---- decimal(p,s) ---- */

static const char *
read_decimal(const struct leat_declared *column, const char *text, size_t len, void *to)
{
	const char *end = text + len;
	bool minus = len > 0 && *text == '-', any = false;
	unsigned digits = 0, after = 0;
	unsigned_wide value = 0;
	wide result;

	text += len > 0 && (*text == '-' || *text == '+');
	for (bool point = false; text < end; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!is_digit(*text))
			return "no decimal number";
		any = true;
		if (point && after == column->scale) {
			if (*text != '0')
				return "no decimal of its type: it has too many digits after the point";
			continue;
		}
		after += point;
		digits += digits > 0 || *text != '0';
		if (digits > MAX_DECIMAL)
			return "too large for its decimal type";
		value = value * 10 + (unsigned)(*text - '0');
	}
	if (!any)
		return "no decimal number";
	for (; after < column->scale && digits <= MAX_DECIMAL; after++) {
		value *= 10;
		digits += digits > 0;
	}
	if (digits > column->width)
		return "too large for its decimal type";
	result = minus ? -(wide)value : (wide)value;
	memcpy(to, &result, leat_value_size(column));
	return NULL;
}

/* ---- bool ---- */

static const char *
read_bool(const char *text, size_t len, void *to)
{
	uint8_t value = is_word(text, len, "true") || is_word(text, len, "t") || is_word(text, len, "1");

	if (!value && !is_word(text, len, "false") && !is_word(text, len, "f") && !is_word(text, len, "0"))
		return "no bool: true or false";
	memcpy(to, &value, 1);
	return NULL;
}

/* ---- dates and times ---- */

/* Exactly `n` digits; moves on. */
static bool
take_number(const char **text, const char *end, int n, int *value)
{
	*value = 0;
	if (end - *text < n)
		return false;
	for (; n > 0; n--, (*text)++) {
		if (!is_digit(**text))
			return false;
		*value = *value * 10 + (**text - '0');
	}
	return true;
}

static bool
take_char(const char **text, const char *end, char c)
{
	bool found = *text < end && **text == c;

	*text += found;
	return found;
}

/* Days since 1970-01-01 in the Gregorian calendar, which is used for all times. Years begin in March here, so that a
 * leap day is the last one. */
static int32_t
days_of(int year, int month, int day)
{
	int years = month > 2 ? year : year - 1, months = (month + 9) % 12;

	return years * 365 + years / 4 - years / 100 + years / 400 + (months * 306 + 5) / 10 + day - 1 - 719468;
}

static bool
take_date(const char **text, const char *end, int32_t *days)
{
	static const signed char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year, month, day, leap;

	if (!take_number(text, end, 4, &year) || !take_char(text, end, '-') || !take_number(text, end, 2, &month) ||
	    !take_char(text, end, '-') || !take_number(text, end, 2, &day))
		return false;
	leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	if (year < 1 || month < 1 || month > 12 || day < 1 || day > lengths[month - 1] + (month == 2 && leap))
		return false;
	*days = days_of(year, month, day);
	return true;
}

static const char *
read_date(const char *text, size_t len, void *to)
{
	const char *end = text + len;
	int32_t days;

	if (!take_date(&text, end, &days) || text != end)
		return "no date such as 2026-11-18";
	memcpy(to, &days, sizeof(days));
	return NULL;
}

/* .123456; *exact is false if there are digits beyond microseconds. */
static bool
take_fraction(const char **text, const char *end, int64_t *micros, bool *exact)
{
	int digits = 0;

	if (!take_char(text, end, '.'))
		return true;
	for (; *text < end && is_digit(**text); (*text)++, digits++) {
		if (digits < 6)
			*micros = *micros * 10 + (**text - '0');
		else if (**text != '0')
			*exact = false;
	}
	for (int i = digits; i < 6; i++)
		*micros *= 10;
	return digits > 0;
}

/* Z, " UTC", +02, +0200 or +02:00; nothing is UTC, too. */
static bool
take_offset(const char **text, const char *end, int *minutes)
{
	int hours, rest = 0;
	bool minus;

	*minutes = 0;
	if (*text == end || take_char(text, end, 'Z') || take_char(text, end, 'z'))
		return true;
	if (is_word(*text, (size_t)(end - *text), " utc")) {
		*text = end;
		return true;
	}
	minus = **text == '-';
	if (!take_char(text, end, '+') && !take_char(text, end, '-'))
		return false;
	if (!take_number(text, end, 2, &hours))
		return false;
	take_char(text, end, ':');
	if ((*text < end || (*text)[-1] == ':') && !take_number(text, end, 2, &rest))
		return false;
	*minutes = (hours * 60 + rest) * (minus ? -1 : 1);
	return hours <= 15 && rest < 60;
}

/* HH:MM[:SS[.ffffff]][offset] */
static bool
take_time(const char **text, const char *end, int64_t *micros, bool *exact)
{
	int hour, minute, second = 0, offset;
	int64_t fraction = 0;

	if (!take_number(text, end, 2, &hour) || !take_char(text, end, ':') || !take_number(text, end, 2, &minute))
		return false;
	if (take_char(text, end, ':') &&
	    (!take_number(text, end, 2, &second) || !take_fraction(text, end, &fraction, exact)))
		return false;
	if (!take_offset(text, end, &offset) || hour > 23 || minute > 59 || second > 59)
		return false;
	*micros = ((int64_t)(hour * 60 + minute - offset) * 60 + second) * 1000000 + fraction;
	return true;
}

static const char *
read_timestamp(const char *text, size_t len, void *to)
{
	static const char none[] = "no timestamp such as 2026-11-18T12:30:00";
	const char *end = text + len;
	int64_t micros = 0, value;
	bool exact = true;
	int32_t days;

	if (!take_date(&text, end, &days))
		return none;
	if (text < end && ((!take_char(&text, end, 'T') && !take_char(&text, end, ' ')) ||
	                   !take_time(&text, end, &micros, &exact) || text < end))
		return none;
	if (!exact)
		return "no timestamp: it is finer than a microsecond";
	value = (int64_t)days * 86400 * 1000000 + micros;
	memcpy(to, &value, sizeof(value));
	return NULL;
}

/* ---- by type ---- */

const char *
leat_value_parse(const struct leat_declared *column, const char *text, size_t len, void *to)
{
	pthread_once(&once, make_locale);
	switch (column->kind) {
	case LEAT_COLUMN_FLOAT:
		return plain ? read_float(text, len, to) : "not read: there is no memory";
	case LEAT_COLUMN_DOUBLE:
		return plain ? read_double(text, len, to) : "not read: there is no memory";
	case LEAT_COLUMN_BOOL:
		return read_bool(text, len, to);
	case LEAT_COLUMN_DECIMAL:
		return read_decimal(column, text, len, to);
	case LEAT_COLUMN_DATE:
		return read_date(text, len, to);
	case LEAT_COLUMN_TIMESTAMP:
		return read_timestamp(text, len, to);
	case LEAT_COLUMN_TEXT:
		return NULL;
	default:
		return read_whole(&wholes[column->kind], text, len, to);
	}
}

size_t
leat_value_size(const struct leat_declared *column)
{
	switch (column->kind) {
	case LEAT_COLUMN_BOOL:
	case LEAT_COLUMN_INT8:
	case LEAT_COLUMN_UINT8:
		return 1;
	case LEAT_COLUMN_INT16:
	case LEAT_COLUMN_UINT16:
		return 2;
	case LEAT_COLUMN_INT32:
	case LEAT_COLUMN_UINT32:
	case LEAT_COLUMN_FLOAT:
	case LEAT_COLUMN_DATE:
		return 4;
	case LEAT_COLUMN_DECIMAL:
		return column->width <= 4 ? 2 : column->width <= 9 ? 4 : column->width <= 18 ? 8 : 16;
	case LEAT_COLUMN_TEXT:
		return 16;
	default:
		return 8;
	}
}
