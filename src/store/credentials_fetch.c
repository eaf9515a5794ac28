/* credentials_fetch.c - see credentials_fetch.h */
#include "store/credentials_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "store/aws_config.h"
#include "store/curl.h"
#include "store/s3_list.h"
#include "store/sigv4.h"
#include "store/url.h"

enum { MAX_ANSWER = 64 * 1024, MAX_IDENTITY = 32 * 1024 };

/* A request, and where its answer goes. */
struct fetch {
	const char *url;
	const char *method; /* NULL: GET */
	const char *body;   /* of a POST; NULL: none */
	const char *field;  /* a line of the head; NULL: none. Secret, so it is erased. */
	long timeout_ms;
	const struct leat_storage
		*storage; /* certificates and proxy; NULL: the service is on this machine or network */
	struct leat_str answer;
	long status;
};

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* ---- one request ---- */

static size_t
take_answer(char *data, size_t size, size_t count, void *arg)
{
	struct fetch *fetch = arg;

	leat_str_addn(&fetch->answer, data, size * count);
	return fetch->answer.failed ? 0 : size * count;
}

static void
end_fetch(struct fetch *fetch)
{
	leat_str_free(&fetch->answer);
}

/* True: there is an answer, of whatever status. */
static bool
run_fetch(struct fetch *fetch, struct leat_mem *mem)
{
	const struct leat_curl *curl = leat_curl_load(NULL);
	CURL *easy = curl ? curl->easy_init() : NULL;
	struct curl_slist *fields = NULL;
	CURLcode code;

	leat_str_init(&fetch->answer, mem, MAX_ANSWER);
	fetch->answer.secret = true;
	fetch->status = 0;
	if (!easy)
		return false;
	if (fetch->field)
		fields = curl->slist_append(fields, fetch->field);
	curl->easy_setopt(easy, CURLOPT_URL, fetch->url);
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, fetch->timeout_ms);
	curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, 5 * fetch->timeout_ms);
	curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl->easy_setopt(easy, CURLOPT_WRITEDATA, (void *)fetch);
	curl->easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
	if (fetch->method)
		curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, fetch->method);
	if (fetch->body) {
		curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(fetch->body));
		curl->easy_setopt(easy, CURLOPT_POSTFIELDS, fetch->body);
	}
	if (fetch->storage)
		leat_curl_set_way(curl, easy, fetch->storage);
	else
		curl->easy_setopt(easy, CURLOPT_PROXY, "");
	code = curl->easy_perform(easy);
	curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &fetch->status);
	curl->easy_cleanup(easy);
	curl->slist_free_all(fields);
	return code == CURLE_OK;
}

static enum leat_status
fail_fetch(const struct fetch *fetch, const char *who, struct leat_err *err)
{
	char code[64] = "", message[128] = "";

	if (fetch->answer.len)
		leat_s3_error_parse(fetch->answer.text, fetch->answer.len, code, sizeof(code), message,
		                    sizeof(message));
	if (!fetch->status)
		return leat_fail(err, LEAT_IO, "credentials for S3: %s does not answer", who);
	return leat_fail(err, LEAT_IO, "credentials for S3: %s answered %ld%s%s%s%s", who, fetch->status,
	                 *code ? " " : "", code, *message ? ": " : "", message);
}

/* ---- containers and instances ---- */

/* A file of one line, in `value`. */
static bool
read_line(struct leat_mem *mem, const char *path, char *value, size_t cap)
{
	size_t size, len;
	char *text = path ? leat_aws_config_load(mem, "", path, &size) : NULL;

	if (!text)
		return false;
	len = strcspn(text, "\r\n");
	if (len < cap)
		memcpy(value, text, len);
	value[len < cap ? len : 0] = '\0';
	explicit_bzero(text, size);
	leat_free(mem, text);
	return *value != '\0';
}

/* As Amazon's own programs: anything by https, else only this machine and the addresses of the agents. */
static bool
is_allowed(const char *url_text)
{
	static const char *const hosts[] = {"127.0.0.1",     "localhost",      "::1",
	                                    "169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
	struct leat_url url;

	if (leat_url_parse(url_text, &url))
		return false;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts) && !url.tls; i++)
		if (strcmp(url.host, hosts[i]) == 0)
			return true;
	return url.tls;
}

enum leat_status
leat_credentials_from_container(struct leat_credentials *credentials, struct leat_mem *mem, struct leat_err *err)
{
	const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	char url[1024], secret[8192], field[8192 + 32];
	struct fetch fetch = {.url = url, .timeout_ms = 2000};
	enum leat_status status;

	if (!full && !relative)
		return LEAT_AGAIN;
	snprintf(url, sizeof(url), "%s%s", relative ? "http://169.254.170.2" : "", relative ? relative : full);
	if (!is_allowed(url))
		return leat_fail(err, LEAT_INVALID,
		                 "AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that is not allowed");
	if (read_line(mem, variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), secret, sizeof(secret)))
		token = secret;
	if (token && !strpbrk(token, "\r\n")) {
		snprintf(field, sizeof(field), "Authorization: %.8191s", token);
		fetch.field = field;
	}
	if (!run_fetch(&fetch, mem) || fetch.status != 200)
		status = fail_fetch(&fetch, "the container's service", err);
	else
		status = leat_credentials_parse(credentials, fetch.answer.text, fetch.answer.len, err);
	explicit_bzero(field, sizeof(field));
	explicit_bzero(secret, sizeof(secret));
	end_fetch(&fetch);
	return status;
}

/* GET of a path of the metadata service, with the token. */
static bool
ask_instance(struct fetch *fetch, struct leat_mem *mem, const char *base, const char *path, const char *field)
{
	char url[1024];

	*fetch = (struct fetch){.url = url, .field = field, .timeout_ms = 1000};
	snprintf(url, sizeof(url), "%s%s", base, path);
	return run_fetch(fetch, mem) && fetch->status == 200 && fetch->answer.len;
}

enum leat_status
leat_credentials_from_instance(struct leat_credentials *credentials, struct leat_mem *mem, struct leat_err *err)
{
	static const char roles[] = "/latest/meta-data/iam/security-credentials/";
	const char *base = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"), *off = variable("AWS_EC2_METADATA_DISABLED");
	char url[600], field[600], path[600] = "";
	struct fetch fetch = {.url = url,
	                      .method = "PUT",
	                      .timeout_ms = 1000,
	                      .field = "X-aws-ec2-metadata-token-ttl-seconds: 21600"};
	enum leat_status status = LEAT_AGAIN;
	bool answers;

	if (off && strcmp(off, "true") == 0)
		return LEAT_AGAIN;
	if (!base)
		base = "http://169.254.169.254";
	snprintf(url, sizeof(url), "%.500s/latest/api/token", base);
	answers = run_fetch(&fetch, mem) && fetch.status == 200 && fetch.answer.len < 500 &&
	          !strpbrk(leat_str_text(&fetch.answer), "\r\n");
	snprintf(field, sizeof(field), "X-aws-ec2-metadata-token: %.*s", answers ? (int)fetch.answer.len : 0,
	         leat_str_text(&fetch.answer));
	end_fetch(&fetch);
	if (!answers)
		return LEAT_AGAIN;
	if (ask_instance(&fetch, mem, base, roles, field))
		snprintf(path, sizeof(path), "%s%.*s", roles, (int)strcspn(fetch.answer.text, "\r\n"),
		         fetch.answer.text);
	end_fetch(&fetch);
	if (*path) { /* else an instance without a role */
		if (ask_instance(&fetch, mem, base, path, field))
			status = leat_credentials_parse(credentials, fetch.answer.text, fetch.answer.len, err);
		else
			status = fail_fetch(&fetch, "the instance's metadata service", err);
		end_fetch(&fetch);
	}
	explicit_bzero(field, sizeof(field));
	return status;
}

/* ---- STS ---- */

static bool
find_text(const char *xml, size_t len, const char *open, char *value, size_t cap)
{
	const char *at = memmem(xml, len, open, strlen(open)), *end;

	at = at ? at + strlen(open) : NULL;
	end = at ? memchr(at, '<', len - (size_t)(at - xml)) : NULL;
	if (!end || end == at || (size_t)(end - at) >= cap || memchr(at, '&', (size_t)(end - at)))
		return false;
	memcpy(value, at, (size_t)(end - at));
	value[end - at] = '\0';
	return true;
}

enum leat_status
leat_credentials_parse_sts(struct leat_credentials *credentials, const char *xml, size_t len, struct leat_err *err)
{
	char expires[64];

	*credentials = (struct leat_credentials){0};
	if (!find_text(xml, len, "<AccessKeyId>", credentials->key_id, LEAT_KEY_ID) ||
	    !find_text(xml, len, "<SecretAccessKey>", credentials->secret, LEAT_SECRET) ||
	    !find_text(xml, len, "<SessionToken>", credentials->token, LEAT_TOKEN))
		return leat_fail(err, LEAT_INVALID, "credentials for S3: the answer of STS makes no sense");
	if (find_text(xml, len, "<Expiration>", expires, sizeof(expires)))
		credentials->expires = leat_s3_time(expires);
	return LEAT_OK;
}

static void
sts_address(const char *region, char *url, size_t cap)
{
	const char *other = variable("AWS_ENDPOINT_URL_STS");
	size_t len = other ? strlen(other) : 0;

	while (len && other[len - 1] == '/')
		len--;
	if (other)
		snprintf(url, cap - 1, "%.*s", (int)len, other);
	else
		snprintf(url, cap - 1, "https://sts.%s.amazonaws.com%s", region,
		         strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
}

static void
add_parameter(struct leat_str *out, const char *name, const char *value)
{
	leat_str_addf(out, "%s=", name);
	leat_url_encode(out, value, strlen(value), false);
}

static enum leat_status
ask_sts(struct leat_credentials *credentials, struct leat_mem *mem, struct fetch *fetch, struct leat_err *err)
{
	enum leat_status status;

	fetch->timeout_ms = 5000;
	if (!run_fetch(fetch, mem) || fetch->status != 200)
		status = fail_fetch(fetch, "STS", err);
	else
		status = leat_credentials_parse_sts(credentials, fetch->answer.text, fetch->answer.len, err);
	end_fetch(fetch);
	return status;
}

/* A POST: the token belongs in no URL, which servers log, and may be longer than one can be. */
enum leat_status
leat_credentials_from_identity(struct leat_credentials *credentials, struct leat_mem *mem, const struct leat_sts *sts,
                               const char *token_file, struct leat_err *err)
{
	char address[600], *token = leat_alloc(mem, MAX_IDENTITY);
	struct fetch fetch = {.url = address, .storage = sts->storage};
	struct leat_str body;
	enum leat_status status;

	if (!token)
		return leat_fail_mem(err, mem, MAX_IDENTITY, "credentials");
	leat_str_init(&body, mem, 4 * MAX_IDENTITY);
	body.secret = true;
	sts_address(sts->region, address, sizeof(address));
	strcat(address, "/");
	if (!read_line(mem, token_file, token, MAX_IDENTITY)) {
		status = leat_fail(err, LEAT_INVALID, "the web identity token in '%s' cannot be read", token_file);
	} else {
		leat_str_add(&body, "Action=AssumeRoleWithWebIdentity&");
		add_parameter(&body, "RoleArn", sts->role);
		add_parameter(&body, "&RoleSessionName", sts->session);
		leat_str_add(&body, "&Version=2011-06-15&");
		add_parameter(&body, "WebIdentityToken", token);
		fetch.body = leat_str_text(&body);
		status = body.failed ? leat_fail_mem(err, mem, MAX_IDENTITY, "credentials")
		                     : ask_sts(credentials, mem, &fetch, err);
	}
	explicit_bzero(token, MAX_IDENTITY);
	leat_str_free(&body);
	leat_free(mem, token);
	return status;
}

/* The query of AssumeRole, sorted by name. */
static void
add_role_query(struct leat_str *query, const char *role, const char *session, const char *external_id)
{
	leat_str_add(query, "Action=AssumeRole&");
	if (*external_id) {
		add_parameter(query, "ExternalId", external_id);
		leat_str_add(query, "&");
	}
	add_parameter(query, "RoleArn", role);
	add_parameter(query, "&RoleSessionName", session);
	leat_str_add(query, "&Version=2011-06-15");
}

/* Lines of the head that sign the query. False: out of memory. */
static bool
sign_query(struct leat_str *lines, const struct leat_credentials *with, const struct leat_url *url, const char *query,
           const char *region)
{
	struct leat_sigv4_key key = {0};
	char now[LEAT_SIGV4_TIME];
	struct leat_sigv4 what = {.method = "GET",
	                          .path = "/",
	                          .query = query,
	                          .body = leat_sigv4_no_body,
	                          .time = now,
	                          .region = region,
	                          .service = "sts",
	                          .key_id = with->key_id,
	                          .secret = with->secret};
	struct leat_str fields;
	bool made;

	leat_sigv4_time((int64_t)time(NULL), now);
	leat_str_init(&fields, lines->mem, 2 * LEAT_TOKEN);
	fields.secret = true;
	leat_str_add(&fields, "host:");
	leat_url_add_host(&fields, url->tls, url->host, url->port);
	leat_str_addf(&fields, "\nx-amz-date:%s\n", now);
	if (*with->token)
		leat_str_addf(&fields, "x-amz-security-token:%s\n", with->token);
	what.fields = leat_str_text(&fields);
	leat_str_add(lines, "Authorization: ");
	made = !fields.failed && leat_sigv4_add(lines, &what, &key);
	leat_str_addf(lines, "\r\nX-Amz-Date: %s", now);
	if (*with->token)
		leat_str_addf(lines, "\r\nX-Amz-Security-Token: %s", with->token);
	explicit_bzero(&key, sizeof(key));
	leat_str_free(&fields);
	return made && !lines->failed;
}

enum leat_status
leat_credentials_from_role(struct leat_credentials *credentials, struct leat_mem *mem, const struct leat_sts *sts,
                           const struct leat_credentials *with, const char *external_id, struct leat_err *err)
{
	char address[600];
	struct leat_str url, lines;
	struct leat_url parsed;
	enum leat_status status;

	sts_address(sts->region, address, sizeof(address));
	if (leat_url_parse(address, &parsed))
		return leat_fail(err, LEAT_INVALID, "AWS_ENDPOINT_URL_STS is not a URL");
	leat_str_init(&url, mem, 4 * LEAT_TOKEN);
	leat_str_init(&lines, mem, 4 * LEAT_TOKEN); /* libcurl sends several lines as they are */
	lines.secret = true;
	leat_str_addf(&url, "%s/?", address);
	add_role_query(&url, sts->role, sts->session, external_id);
	if (url.failed || !sign_query(&lines, with, &parsed, strchr(url.text, '?') + 1, sts->region)) {
		status = leat_fail_mem(err, mem, LEAT_TOKEN, "credentials");
	} else {
		struct fetch fetch = {.url = url.text, .field = lines.text, .storage = sts->storage};

		status = ask_sts(credentials, mem, &fetch, err);
	}
	leat_str_free(&url);
	leat_str_free(&lines);
	return status;
}
