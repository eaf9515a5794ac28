/* test_settings.c - settings of remote stores: where they come from, what they change, and what they do not */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "leat.h"
#include "store/credentials.h"
#include "store/store.h"
#include "support/temp.h"
#include "support/web.h"

static struct leat_mem mem;
static struct leat_err err;
static struct temp temp;

static int
begin(void **state)
{
	(void)state;
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++) {
		char *names = strdup(s->variables), *rest = names;

		for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
			unsetenv(name);
		free(names);
	}
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	unsetenv("AWS_CONFIG_FILE");
	unsetenv("AWS_SHARED_CREDENTIALS_FILE");
	temp_make(&temp);
	setenv("HOME", temp.folder, 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	mkdir(temp_path(&temp, ".aws"), 0700);
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
write_text(const char *name, const char *text)
{
	temp_write(&temp, name, text, strlen(text));
}

/* ---- where they come from ---- */

/* Of S3, with the settings given. */
static struct leat_storage
find(const char *const *given)
{
	struct leat_storage storage;

	if (leat_storage_parse(&storage, given, &mem, &err) != LEAT_OK ||
	    leat_storage_complete(&storage, true, &mem, &err) != LEAT_OK ||
	    leat_profile_settings(&storage, &mem, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return storage;
}

#define FIND(...) find((const char *const[]){__VA_ARGS__, NULL})

static void
options_come_before_the_environment_and_that_before_the_profile(void **state)
{
	struct leat_storage storage;

	(void)state;
	write_text(".aws/config", "[default]\nregion=profile\nca_bundle=/profile.pem\nendpoint_url=http://profile\n");
	storage = find(NULL);
	assert_string_equal(storage.region, "profile");
	assert_string_equal(storage.ca_bundle, "/profile.pem");
	assert_string_equal(storage.endpoint, "http://profile");
	setenv("AWS_DEFAULT_REGION", "default", 1);
	setenv("AWS_REGION", "environment", 1);
	setenv("AWS_CA_BUNDLE", "/environment.pem", 1);
	storage = find(NULL);
	assert_string_equal(storage.region, "environment");
	assert_string_equal(storage.ca_bundle, "/environment.pem");
	assert_string_equal(storage.endpoint, "http://profile");
	storage = FIND("region=first", "ca_bundle=~/option.pem", "region=option");
	assert_string_equal(storage.region, "option");
	assert_string_equal(storage.ca_bundle, temp_path(&temp, "option.pem"));
	assert_string_equal(storage.endpoint, "http://profile");
	assert_string_equal(FIND("endpoint=").endpoint, ""); /* Amazon's, whatever others say */
}

static void
what_is_not_set_has_its_default(void **state)
{
	struct leat_storage storage = find(NULL), zero;

	(void)state;
	assert_int_equal(storage.known, 0);
	assert_true(storage.hedge && !storage.anonymous && !storage.requester_pays);
	assert_true(storage.timeout > 19.9f && storage.timeout < 20.1f);
	assert_true(storage.patience > 119.9f && storage.patience < 120.1f);
	assert_int_equal(storage.requests + storage.disk_cache_size, 0);
	assert_int_equal(storage.style, LEAT_STYLE_AUTO);
	assert_int_equal(storage.disk_cache_trust, LEAT_TRUST_OWN);
	leat_storage_init(&zero);
	assert_memory_equal(&storage, &zero, sizeof(zero));
}

static void
every_kind_of_value_is_understood(void **state)
{
	struct leat_storage storage = FIND("timeout=0.5", "patience=90", "requests=2k", "hedge=false", "style=virtual",
	                                   "disk_cache_size=1.5GiB", "disk_cache_trust=shared", "disk_cache=/a=b");

	(void)state;
	assert_true(storage.timeout > 0.49f && storage.timeout < 0.51f && storage.patience > 89.9f);
	assert_int_equal(storage.requests, 2000);
	assert_false(storage.hedge);
	assert_int_equal(storage.style, LEAT_STYLE_VIRTUAL);
	assert_int_equal(storage.disk_cache_size, 3ll << 29);
	assert_int_equal(storage.disk_cache_trust, LEAT_TRUST_SHARED);
	assert_string_equal(storage.disk_cache, "/a=b");
}

static void
variables_of_other_programs_keep_their_words_for_yes(void **state)
{
	(void)state;
	setenv("AWS_NO_SIGN_REQUEST", "YES", 1);
	setenv("AWS_REQUEST_PAYER", "requester", 1);
	assert_true(find(NULL).anonymous);
	assert_true(find(NULL).requester_pays);
	assert_false(FIND("anonymous=false").anonymous);
	setenv("AWS_NO_SIGN_REQUEST", "no", 1);
	setenv("AWS_REQUEST_PAYER", "bucket-owner", 1);
	assert_false(find(NULL).anonymous);
	assert_false(find(NULL).requester_pays);
}

static void
variables_of_aws_are_only_for_s3(void **state)
{
	struct leat_storage storage;

	(void)state;
	setenv("AWS_CA_BUNDLE", "/aws.pem", 1);
	setenv("SSL_CERT_FILE", "/system.pem", 1);
	assert_string_equal(find(NULL).ca_bundle, "/aws.pem");
	leat_storage_init(&storage);
	assert_int_equal(leat_storage_complete(&storage, false, &mem, &err), LEAT_OK);
	assert_string_equal(storage.ca_bundle, "/system.pem");
}

static void
a_wrong_setting_is_an_error_that_names_where_it_comes_from(void **state)
{
	struct leat_storage storage;
	char text[LEAT_SETTING + 64];

	(void)state;
	setenv("LEAT_NET_PATIENCE", "1e9", 1);
	leat_storage_init(&storage);
	assert_int_equal(leat_storage_complete(&storage, false, &mem, &err), LEAT_INVALID);
	assert_string_equal(err.text, "LEAT_NET_PATIENCE: option 'patience' of 'storage' must be between 0.01 and "
	                              "86400, not 1e9");
	leat_err_clear(&err);
	write_text(".aws/config", "[profile lab]\nendpoint_url=minio.lab\n");
	leat_storage_init(&storage);
	strcpy(storage.profile, "lab");
	assert_int_equal(leat_profile_settings(&storage, &mem, &err), LEAT_INVALID);
	assert_string_equal(err.text, "profile 'lab': option 'endpoint' of 'storage' cannot be 'minio.lab': it does "
	                              "not begin with http:// or https://");
	leat_err_clear(&err);
	snprintf(text, sizeof(text), "profile=%0*d", LEAT_SETTING, 0);
	assert_int_equal(leat_storage_parse(&storage, (const char *[]){text, NULL}, &mem, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "option 'profile' of 'storage' has more than 511 bytes"));
}

static void
memory_that_runs_out_is_an_error(void **state)
{
	static const char *const given[] = {"timeout=3", "disk_cache_size=3GiB", NULL};
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	for (long n = 0; status != LEAT_OK && n < 100; n++) {
		struct leat_storage storage;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = leat_storage_parse(&storage, given, &mem, &err);
		assert_true(status == LEAT_OK || status == LEAT_NOMEM);
		assert_int_equal(mem.used, 0);
	}
	atomic_store(&mem.fail_after, -1);
	assert_int_equal(status, LEAT_OK);
}

/* ---- profiles ---- */

static void
a_profile_that_was_chosen_comes_before_keys_of_the_environment(void **state)
{
	struct leat_credentials found;
	struct leat_storage storage;

	(void)state;
	write_text(".aws/credentials", "[lab]\naws_access_key_id=lab\naws_secret_access_key=s\n");
	setenv("AWS_ACCESS_KEY_ID", "environment", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
	storage = FIND("profile=lab");
	assert_int_equal(leat_credentials_find(&found, &storage, &mem, &err), LEAT_OK);
	assert_string_equal(found.key_id, "lab");
	setenv("AWS_PROFILE", "lab", 1);
	storage = find(NULL);
	assert_int_equal(leat_credentials_find(&found, &storage, &mem, &err), LEAT_OK);
	assert_string_equal(found.key_id, "environment");
	storage = FIND("profile=lap");
	assert_int_equal(leat_credentials_find(&found, &storage, &mem, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "option 'profile' of 'storage' cannot be 'lap': there is no such profile"));
}

/* ---- feeds ---- */

enum { SAMPLES = 64, SAMPLE = 8, HEAD = 128 };

/* A server with an array of 64 samples, as s3://bucket/x.npy. */
static void
start_server(void)
{
	static const char head[] = "{'descr': '<i8', 'fortran_order': False, 'shape': (64,), }";
	unsigned char array[HEAD + SAMPLES * SAMPLE];
	char uri[200];

	memset(array, ' ', HEAD);
	memcpy(array, "\x93NUMPY\x01\x00\x76\x00", 10);
	memcpy(array + 10, head, strlen(head));
	array[HEAD - 1] = '\n';
	for (int64_t i = 0; i < SAMPLES; i++)
		memcpy(array + HEAD + i * SAMPLE, &i, sizeof(i));
	web_start();
	snprintf(uri, sizeof(uri), "%s/bucket/x.npy", web_address());
	web_put(uri, array, sizeof(array));
}

static struct leat_feed *
open_feed(const char *setting)
{
	char endpoint[200];
	const char *storage[] = {endpoint, "anonymous=true", "timeout=30", setting, NULL};
	struct leat_options options;
	struct leat_feed *feed = NULL;

	snprintf(endpoint, sizeof(endpoint), "endpoint=%s", web_address());
	leat_options_init(&options);
	options.storage = storage;
	if (leat_open("npy(x='s3://bucket/x.npy') | shuffle | batch(16)", &options, &feed, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	memset(endpoint, 'x', sizeof(endpoint)); /* the feed has its own copy */
	return feed;
}

static void
take_batch(struct leat_feed *feed, int64_t values[16])
{
	struct leat_batch *batch;
	struct leat_tensor x;

	if (leat_next(feed, &batch, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(leat_batch_field(batch, "x", &x, &err), LEAT_OK);
	memcpy(values, x.data, 16 * SAMPLE);
	leat_release(batch);
}

static void
a_checkpoint_of_one_endpoint_is_restored_with_another(void **state)
{
	char *json, *other, address[100];
	struct leat_feed *feed;
	int64_t values[16], again[16];

	(void)state;
	start_server();
	strcpy(address, web_address());
	feed = open_feed("region=a");
	take_batch(feed, values);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	take_batch(feed, values);
	leat_close(feed);
	web_stop();
	assert_null(strstr(json, "127.0.0.1"));

	start_server();
	feed = open_feed("region=b");
	assert_string_not_equal(address, web_address());
	take_batch(feed, again);
	assert_int_equal(leat_save(feed, &other, &err), LEAT_OK);
	assert_string_equal(json, other); /* the hashes of pipeline and data are in it */
	assert_int_equal(leat_restore(feed, json, &err), LEAT_OK);
	take_batch(feed, again);
	assert_memory_equal(values, again, sizeof(values));
	leat_close(feed);
	web_stop();
	free(json);
	free(other);
}

static unsigned
reads_in_flight(const char *setting)
{
	struct leat_storage storage;
	struct leat_stores stores;
	struct leat_store *store;
	unsigned in_flight;

	assert_int_equal(leat_storage_parse(&storage, (const char *[]){setting, NULL}, &mem, &err), LEAT_OK);
	leat_stores_init(&stores, &mem);
	stores.storage = &storage;
	assert_int_equal(leat_stores_find(&stores, "http://127.0.0.1:1/x", &store, NULL, &err), LEAT_OK);
	in_flight = stores.in_flight;
	leat_stores_close(&stores);
	return in_flight;
}

static void
a_feed_plans_no_more_reads_than_requests_allows(void **state)
{
	(void)state;
	assert_int_equal(reads_in_flight("requests=3"), 3);
	setenv("LEAT_NET_REQUESTS", "5", 1);
	assert_int_equal(reads_in_flight("hedge=false"), 5);
}

/* ---- documentation ---- */

/* "| `region` | `AWS_REGION`, `AWS_DEFAULT_REGION` |" */
static void
expected_row(const struct leat_setting *setting, char *row, size_t cap)
{
	size_t used = (size_t)snprintf(row, cap, "| `%s` | ", setting->opt.name);

	for (const char *at = setting->variables; *at;) {
		size_t len = strcspn(at, " ");

		used += (size_t)snprintf(row + used, cap - used, "`%.*s`%s", (int)len, at, at[len] ? ", " : " ");
		at += len + (at[len] == ' ');
	}
	snprintf(row + used, cap - used, "|");
}

static void
the_page_about_remote_data_has_every_setting_and_no_other(void **state)
{
	FILE *file = fopen("docs/REMOTE.md", "r");
	char page[100000], row[200];
	size_t len = file ? fread(page, 1, sizeof(page) - 1, file) : 0, rows = 0;
	const char *table;

	(void)state;
	assert_true(len > 0 && len < sizeof(page) - 1);
	page[len] = '\0';
	fclose(file);
	table = strstr(page, "| setting | variables |");
	assert_non_null(table);
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++, rows++) {
		expected_row(s, row, sizeof(row));
		if (!strstr(table, row))
			fail_msg("docs/REMOTE.md has no row '%s'", row);
	}
	for (const char *line = table; line && line[0] == '|'; line = strchr(line, '\n') + 1)
		rows -= line[2] == '`';
	assert_int_equal(rows, 0);
}

#define WITH_HOME(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_HOME(options_come_before_the_environment_and_that_before_the_profile),
		WITH_HOME(what_is_not_set_has_its_default),
		WITH_HOME(every_kind_of_value_is_understood),
		WITH_HOME(variables_of_other_programs_keep_their_words_for_yes),
		WITH_HOME(variables_of_aws_are_only_for_s3),
		WITH_HOME(a_wrong_setting_is_an_error_that_names_where_it_comes_from),
		WITH_HOME(memory_that_runs_out_is_an_error),
		WITH_HOME(a_profile_that_was_chosen_comes_before_keys_of_the_environment),
		WITH_HOME(a_checkpoint_of_one_endpoint_is_restored_with_another),
		WITH_HOME(a_feed_plans_no_more_reads_than_requests_allows),
		WITH_HOME(the_page_about_remote_data_has_every_setting_and_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
