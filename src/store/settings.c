/* settings.c - see settings.h */
#include "store/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "store/lookup.h"
#include "store/url.h"

static const char whose[] = "storage";

/* ---- the table ---- */

static const char *
check_endpoint(const char *value)
{
	struct leat_url url;
	const char *why = leat_url_parse(value, &url);

	if (!why && strspn(url.path, "/") != strlen(url.path))
		why = "it has a path";
	return why;
}

static const char *
check_proxy(const char *value)
{
	if (strcmp(value, "none") == 0)
		return NULL;
	if (strchr(value, '@'))
		return "a user name or password does not belong in it; set https_proxy in the environment";
	return strstr(value, "://") ? NULL : "it does not begin with a scheme, such as http:// or socks5h://";
}

/* It becomes part of a host. */
static const char *
check_region(const char *value)
{
	return strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == strlen(value)
	               ? NULL
	               : "it has a character that is not allowed there";
}

#define TEXT(member, doc) LEAT_STRING(struct leat_storage, member, "", doc)

const struct leat_setting leat_settings[] = {
	{TEXT(endpoint, "URL of an S3 server other than Amazon's"), "AWS_ENDPOINT_URL_S3 AWS_ENDPOINT_URL",
         .check = check_endpoint},
	{TEXT(region, "region of S3"), "AWS_REGION AWS_DEFAULT_REGION", .check = check_region},
	{TEXT(profile, "profile in ~/.aws/credentials and ~/.aws/config"), "AWS_PROFILE AWS_DEFAULT_PROFILE"},
	{LEAT_ENUM(struct leat_storage, style, "auto", "auto|path|virtual",
                   "where requests name the bucket; auto: in the host for Amazon, else in the path"),
         "LEAT_S3_STYLE"},
	{LEAT_BOOL(struct leat_storage, anonymous, "false", "do not sign requests, for public data"),
         "AWS_NO_SIGN_REQUEST"},
	{LEAT_BOOL(struct leat_storage, requester_pays, "false", "pay for requests to buckets that ask for it"),
         "AWS_REQUEST_PAYER"},
	{TEXT(ca_bundle, "file with the CA certificates to trust, instead of the system's"),
         "AWS_CA_BUNDLE CURL_CA_BUNDLE SSL_CERT_FILE", .is_path = true},
	{TEXT(proxy, "URL of a proxy that allows CONNECT; none: not even the environment's"), "", .check = check_proxy},
	{TEXT(resolve, "addresses of hosts, instead of the system's: HOST:PORT:ADDRESS,ADDRESS ..."), "",
         .check = leat_lookup_check},
	{LEAT_INT(struct leat_storage, requests, "0", 0, 65536, "maximum number of requests in flight; 0: automatic"),
         "LEAT_NET_REQUESTS"},
	{LEAT_INT(struct leat_storage, threads, "0", 0, 4, "threads that carry requests; 0: one for two processors"),
         "LEAT_NET_THREADS"},
	{LEAT_FLOAT(struct leat_storage, timeout, "20", 0.01, 86400,
                    "seconds without progress after which a request is repeated"),
         "LEAT_NET_TIMEOUT"},
	{LEAT_FLOAT(struct leat_storage, patience, "120", 0.01, 86400, "seconds of failures after which a feed fails"),
         "LEAT_NET_PATIENCE"},
	{LEAT_BOOL(struct leat_storage, hedge, "true", "send a second request when the first takes unusually long"),
         "LEAT_NET_HEDGE"},
	{TEXT(disk_cache, "folder that keeps remote data for the next epoch and other processes"), "LEAT_DISK_CACHE",
         .is_path = true},
	{LEAT_SIZE(struct leat_storage, disk_cache_size, "0", 0, 1e18, "size limit of the disk cache; 0: automatic"),
         "LEAT_DISK_CACHE_SIZE"},
	{LEAT_ENUM(struct leat_storage, disk_cache_trust, "own", "own|shared",
                   "whose cached data to use: only this user's, or also that of others"),
         "LEAT_DISK_CACHE_TRUST"},
	{LEAT_OPT_END, NULL},
};

static const struct leat_setting *
find(const char *name)
{
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++)
		if (strcmp(s->opt.name, name) == 0)
			return s;
	return NULL;
}

void
leat_setting_doc(const struct leat_setting *setting, struct leat_str *out)
{
	const struct leat_opt *opt = &setting->opt;

	leat_str_add(out, opt->doc);
	if (*opt->def)
		leat_str_addf(out, " (default: %s)", opt->def);
}

static uint32_t
bit_of(const struct leat_setting *setting)
{
	return UINT32_C(1) << (setting - leat_settings);
}

uint32_t
leat_storage_bit(const char *name)
{
	const struct leat_setting *setting = find(name);

	return setting ? bit_of(setting) : 0;
}

/* ---- one setting ---- */

/* Names of keys and tokens as other programs call them. */
static bool
is_secret(const char *name)
{
	static const char *const words[] = {"key", "secret", "token", "password", "credential"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static enum leat_status
fail_name(const char *name, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "option", .name = name, .owner = whose};
	const char *names[32];

	if (is_secret(name))
		return leat_fail(err, LEAT_INVALID,
		                 "storage takes no keys or tokens, such as '%s'; put them in a profile of "
		                 "~/.aws/credentials and set profile=NAME, or set AWS_ACCESS_KEY_ID and "
		                 "AWS_SECRET_ACCESS_KEY",
		                 name);
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++)
		names[unknown.count++] = s->opt.name;
	unknown.known = names;
	return leat_fail_unknown(err, LEAT_INVALID, &unknown);
}

static enum leat_status
put_text(const struct leat_setting *setting, char *to, const char *value, struct leat_err *err)
{
	const char *home = setting->is_path && strncmp(value, "~/", 2) == 0 ? getenv("HOME") : NULL;
	const char *name = setting->opt.name, *why = setting->check && *value ? setting->check(value) : NULL;

	if (why && strchr(value, '@')) /* it may be a password */
		return leat_fail(err, LEAT_INVALID, "option '%s' of '%s' is not valid: %s", name, whose, why);
	if (why)
		return leat_fail(err, LEAT_INVALID, "option '%s' of '%s' cannot be '%s': %s", name, whose, value, why);
	if (snprintf(to, LEAT_SETTING, "%s%s", home ? home : "", home ? value + 1 : value) >= LEAT_SETTING)
		return leat_fail(err, LEAT_INVALID, "option '%s' of '%s' has more than %d bytes: '%.40s...'", name,
		                 whose, LEAT_SETTING - 1, value);
	return LEAT_OK;
}

/* As leat_opt_put_text, but what is no number at all gets an error that has no spec to point into. */
static enum leat_status
put_number(const struct leat_setting *setting, struct leat_storage *storage, const char *value, struct leat_mem *mem,
           struct leat_err *err)
{
	const struct leat_opt *opt = &setting->opt;
	struct leat_arg number = {0};
	struct leat_parse parse;
	enum leat_status status = leat_parse_begin(&parse, value, mem, NULL);

	if (status == LEAT_OK)
		status = leat_parse_value(&parse, &number);
	if (status == LEAT_OK && leat_parse_at_end(&parse) && number.type == LEAT_ARG_NUMBER)
		status = leat_opt_put(opt, storage, &number, value, whose, mem, err);
	else if (status == LEAT_NOMEM)
		status = leat_fail(err, LEAT_NOMEM, "no memory for the options");
	else
		status = leat_fail(err, LEAT_INVALID, "option '%s' of '%s' must be %s, not '%.40s'", opt->name, whose,
		                   opt->type == LEAT_OPT_SIZE ? "a size, such as 100GiB" : "a number", value);
	leat_parse_free(mem, parse.blocks);
	return status;
}

static enum leat_status
put_value(const struct leat_setting *setting, struct leat_storage *storage, const char *value, struct leat_mem *mem,
          struct leat_err *err)
{
	struct leat_arg verbatim = {.type = LEAT_ARG_STRING, .text = value, .len = strlen(value)};
	enum leat_status status;

	if (setting->opt.type == LEAT_OPT_STRING)
		return put_text(setting, (char *)storage + setting->opt.offset, value, err);
	if (setting->opt.type == LEAT_OPT_BOOL || setting->opt.type == LEAT_OPT_ENUM)
		status = leat_opt_put(&setting->opt, storage, &verbatim, value, whose, mem, err);
	else
		status = put_number(setting, storage, value, mem, err);
	return status == LEAT_OK ? LEAT_OK : leat_without_caret(err, status);
}

enum leat_status
leat_storage_put(struct leat_storage *storage, const char *name, const char *value, const char *from,
                 struct leat_mem *mem, struct leat_err *err)
{
	const struct leat_setting *setting = find(name);
	enum leat_status status = setting ? put_value(setting, storage, value, mem, err) : fail_name(name, err);

	if (status != LEAT_OK) {
		if (from)
			leat_err_in(err, "%s", from);
		return status;
	}
	storage->known |= bit_of(setting);
	if (!from)
		storage->given |= bit_of(setting);
	return LEAT_OK;
}

/* Cannot fail: numbers are not parsed as specs, which takes memory. */
void
leat_storage_init(struct leat_storage *storage)
{
	*storage = (struct leat_storage){0};
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++) {
		struct leat_arg value = {.type = LEAT_ARG_STRING, .text = s->opt.def};

		if (s->opt.type == LEAT_OPT_STRING)
			continue;
		if (s->opt.type != LEAT_OPT_BOOL && s->opt.type != LEAT_OPT_ENUM)
			value = (struct leat_arg){.type = LEAT_ARG_NUMBER, .number = strtod(s->opt.def, NULL)};
		(void)leat_opt_put(&s->opt, storage, &value, s->opt.def, whose, NULL, NULL);
	}
}

/* ---- all settings ---- */

enum leat_status
leat_storage_parse(struct leat_storage *storage, const char *const *texts, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	leat_storage_init(storage);
	for (; texts && *texts && status == LEAT_OK; texts++) {
		size_t len = strcspn(*texts, "=");
		char name[64];

		if (!(*texts)[len] || len == 0)
			return leat_fail(err, LEAT_INVALID, "storage takes NAME=VALUE, such as region=eu-central-1");
		snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : sizeof(name) - 1), *texts);
		status = leat_storage_put(storage, name, *texts + len + 1, NULL, mem, err);
	}
	return status;
}

/* A variable that others have invented: its own words for yes, and everything else is no. */
static const char *
word_of(const struct leat_setting *setting, const char *variable, const char *value)
{
	if (setting->opt.type != LEAT_OPT_BOOL)
		return value;
	if (strcmp(variable, "AWS_REQUEST_PAYER") == 0)
		return strcmp(value, "requester") == 0 ? "true" : "false";
	return strchr("1yYtT", *value) ? "true" : "false";
}

static enum leat_status
put_from_environment(const struct leat_setting *setting, struct leat_storage *storage, bool is_s3, struct leat_mem *mem,
                     struct leat_err *err)
{
	const char *at = setting->variables;
	char name[64];

	while (*at) {
		size_t len = strcspn(at, " ");
		const char *value;

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		at += len + (at[len] == ' ');
		value = is_s3 || strncmp(name, "AWS_", 4) != 0 ? getenv(name) : NULL;
		if (value && *value)
			return leat_storage_put(storage, setting->opt.name, word_of(setting, name, value), name, mem,
			                        err);
	}
	return LEAT_OK;
}

enum leat_status
leat_storage_complete(struct leat_storage *storage, bool is_s3, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (const struct leat_setting *s = leat_settings; s->opt.name && status == LEAT_OK; s++)
		if (!(storage->given & bit_of(s)))
			status = put_from_environment(s, storage, is_s3, mem, err);
	return status;
}
