/* test_credentials.c - where keys for S3 come from */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/aws_config.h"
#include "store/credentials.h"
#include "store/credentials_fetch.h"
#include "support/temp.h"
#include "support/web.h"

static struct temp temp;
static struct leat_mem mem;
static struct leat_credentials found;
static struct leat_err err;

static const char *const variables[] = {
	"AWS_ACCESS_KEY_ID",
	"AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN",
	"AWS_PROFILE",
	"AWS_DEFAULT_PROFILE",
	"AWS_SHARED_CREDENTIALS_FILE",
	"AWS_CONFIG_FILE",
	"AWS_REGION",
	"AWS_DEFAULT_REGION",
	"AWS_ENDPOINT_URL",
	"AWS_ENDPOINT_URL_S3",
	"AWS_NO_SIGN_REQUEST",
	"AWS_REQUEST_PAYER",
	"AWS_CA_BUNDLE",
	"CURL_CA_BUNDLE",
	"SSL_CERT_FILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_ROLE_ARN",
	"AWS_ROLE_SESSION_NAME",
	"AWS_ENDPOINT_URL_STS",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_EC2_METADATA_SERVICE_ENDPOINT",
	"http_proxy",
	"all_proxy",
	"ALL_PROXY",
};

static int
begin(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
	temp_make(&temp);
	setenv("HOME", temp.folder, 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	mkdir(temp_path(&temp, ".aws"), 0700);
	leat_mem_init(&mem, SIZE_MAX);
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

static void
complete(struct leat_storage *storage)
{
	leat_err_clear(&err);
	leat_storage_init(storage);
	assert_int_equal(leat_storage_complete(storage, true, &mem, &err), LEAT_OK);
	assert_int_equal(leat_profile_settings(storage, &mem, &err), LEAT_OK);
}

static enum leat_status
find(void)
{
	struct leat_storage storage;

	complete(&storage);
	return leat_credentials_find(&found, &storage, &mem, &err);
}

static void
is_found(const char *key_id, const char *secret, const char *token)
{
	if (find() != LEAT_OK)
		fail_msg("%s", err.text);
	assert_string_equal(found.key_id, key_id);
	assert_string_equal(found.secret, secret);
	assert_string_equal(found.token, token);
}

static void
the_environment_comes_first(void **state)
{
	(void)state;
	write_text(".aws/credentials", "[default]\naws_access_key_id=file\naws_secret_access_key=s\n");
	setenv("AWS_ACCESS_KEY_ID", "id", 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_string_equal(err.text, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	is_found("id", "secret", "");
	setenv("AWS_SESSION_TOKEN", "token", 1);
	is_found("id", "secret", "token");
	setenv("AWS_SESSION_TOKEN", "token\r\nHost: other", 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_null(strstr(err.text, "token\\r"));
	setenv("AWS_SESSION_TOKEN", "token", 1);
	setenv("AWS_NO_SIGN_REQUEST", "YES", 1);
	is_found("", "", "");
	assert_true(found.anonymous);
}

static void
then_the_profile_of_both_files(void **state)
{
	(void)state;
	write_text(".aws/credentials",
	           "# comment\n[default]\naws_access_key_id = one ; comment\n"
	           "aws_secret_access_key=se=cr#et\n\n[ other ]\r\naws_access_key_id=two\r\n"
	           "aws_secret_access_key=s2\r\naws_session_token=t2\r\n[half]\naws_access_key_id=x\n");
	write_text(".aws/config",
	           "[default]\nregion=eu-west-1\n[profile third]\naws_access_key_id=three\n"
	           "aws_secret_access_key=s3\n[fourth]\naws_access_key_id=no\naws_secret_access_key=no\n");
	is_found("one", "se=cr#et", "");
	setenv("AWS_PROFILE", "other", 1);
	is_found("two", "s2", "t2");
	setenv("AWS_PROFILE", "third", 1);
	is_found("three", "s3", "");
	setenv("AWS_PROFILE", "half", 1);
	assert_int_equal(find(), LEAT_INVALID);
	setenv("AWS_PROFILE", "fourth", 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_non_null(strstr(err.text, "add profile 'fourth' to ~/.aws/credentials"));
}

static void
then_a_process(void **state)
{
	(void)state;
	write_text(".aws/config", "[default]\ncredential_process = echo '{\"Version\": 1, \"AccessKeyId\": \"p\", "
	                          "\"SecretAccessKey\": \"s\", \"SessionToken\": \"t\", "
	                          "\"Expiration\": \"1970-01-02T00:00:00Z\"}'\n"
	                          "[profile bad]\ncredential_process = echo '{\"SecretAccessKey\": \"hush\"}'\n"
	                          "[profile fails]\ncredential_process = echo hush; false\n");
	is_found("p", "s", "t");
	assert_int_equal(found.expires, 86400);
	setenv("AWS_PROFILE", "bad", 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_string_equal(
		err.text, "the credential_process of profile 'bad': the answer has no AccessKeyId and SecretAccessKey");
	setenv("AWS_PROFILE", "fails", 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_string_equal(err.text, "the credential_process of profile 'fails' failed");
}

/* ---- services ---- */

#define STS_ANSWER                                                                                                     \
	"<R><Credentials><AccessKeyId>i</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</"            \
	"SessionToken>"                                                                                                \
	"<Expiration>1970-01-02T00:00:00Z</Expiration></Credentials></R>"
#define JSON_ANSWER                                                                                                    \
	"{\"Code\": \"Success\", \"AccessKeyId\": \"i\", \"SecretAccessKey\": \"s\", \"Token\": \"t\", "               \
	"\"Expiration\": \"1970-01-02T00:00:00Z\"}"

static char address[512];

static const char *
at(const char *path)
{
	snprintf(address, sizeof(address), "%s%s", web_address(), path);
	return address;
}

static void
serve(const char *path, const char *text)
{
	web_put(at(path), text, strlen(text));
}

static void
was_asked(const char *text)
{
	if (!strstr(web_last(), text))
		fail_msg("'%s' is not in '%s'", text, web_last());
}

static void
a_pod_has_a_web_identity(void **state)
{
	(void)state;
	web_start();
	serve("/", STS_ANSWER);
	setenv("AWS_ENDPOINT_URL_STS", web_address(), 1);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", temp_write(&temp, "token", "a+b\n", 4), 1);
	setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/x", 1);
	is_found("i", "s", "t");
	assert_int_equal(found.expires, 86400);
	was_asked("POST / HTTP/1.1\r\n");
	was_asked("\r\n\r\nAction=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fx&RoleSessionName="
	          "leat&"
	          "Version=2011-06-15&WebIdentityToken=a%2Bb");
	web_set_trouble(NULL, WEB_FORBIDDEN, -1);
	assert_int_equal(find(), LEAT_IO);
	assert_string_equal(err.text, "credentials for S3: STS answered 403");
	web_stop();
	assert_int_equal(find(), LEAT_IO);
	assert_string_equal(err.text, "credentials for S3: STS does not answer");
}

static void
a_container_has_a_service(void **state)
{
	(void)state;
	web_start();
	serve("/creds", JSON_ANSWER);
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", at("/creds"), 1);
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush", 1);
	is_found("i", "s", "t");
	was_asked("Authorization: hush\r\n");
	setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", temp_write(&temp, "token", "other", 5), 1);
	is_found("i", "s", "t");
	was_asked("Authorization: other\r\n");
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/creds", 1);
	assert_int_equal(find(), LEAT_INVALID);
	web_stop();
}

static void
an_instance_has_a_role(void **state)
{
	(void)state;
	web_start();
	serve("/latest/api/token", "tok");
	serve("/latest/meta-data/iam/security-credentials/", "role\n");
	serve("/latest/meta-data/iam/security-credentials/role", JSON_ANSWER);
	setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", web_address(), 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_int_equal(web_counts().requests, 0);
	unsetenv("AWS_EC2_METADATA_DISABLED");
	is_found("i", "s", "t");
	was_asked("X-aws-ec2-metadata-token: tok\r\n");
	web_remove(at("/latest/meta-data/iam/security-credentials/"));
	assert_int_equal(find(), LEAT_INVALID);
	web_stop();
}

static void
a_profile_has_a_role(void **state)
{
	(void)state;
	web_start();
	serve("/", STS_ANSWER);
	setenv("AWS_ENDPOINT_URL_STS", web_address(), 1);
	write_text(".aws/config", "[default]\nrole_arn = arn:x\nsource_profile = base\nexternal_id = e/1\n"
	                          "role_session_name = me\n[profile base]\naws_access_key_id=b\n"
	                          "aws_secret_access_key=hush\naws_session_token=bt\n"
	                          "[profile none]\nrole_arn = y\n[profile loop]\nrole_arn = z\nsource_profile = loop2\n"
	                          "[profile loop2]\nrole_arn = z\nsource_profile = loop\n");
	is_found("i", "s", "t");
	was_asked(
		"GET /?Action=AssumeRole&ExternalId=e%2F1&RoleArn=arn%3Ax&RoleSessionName=me&Version=2011-06-15 HTTP");
	was_asked("Authorization: AWS4-HMAC-SHA256 Credential=b/");
	was_asked("SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=");
	was_asked("X-Amz-Security-Token: bt\r\n");
	assert_null(strstr(web_last(), "hush"));
	setenv("AWS_PROFILE", "none", 1);
	assert_int_equal(find(), LEAT_INVALID);
	setenv("AWS_PROFILE", "loop", 1);
	assert_int_equal(find(), LEAT_INVALID);
	assert_non_null(strstr(err.text, "too many profiles name each other"));
	web_stop();
}

static void
without_any_the_error_says_what_to_do(void **state)
{
	(void)state;
	assert_int_equal(find(), LEAT_INVALID);
	assert_non_null(strstr(err.text, "AWS_ACCESS_KEY_ID"));
	assert_non_null(strstr(err.text, "AWS_NO_SIGN_REQUEST=1 for public data"));
}

static void
settings_come_from_the_profile_and_the_environment(void **state)
{
	struct leat_storage settings;

	(void)state;
	write_text(".aws/config",
	           "[default]\nregion=eu-west-1\nendpoint_url = http://a:1\ns3 =\n  endpoint_url = http://no\n");
	complete(&settings);
	assert_string_equal(settings.region, "eu-west-1");
	assert_string_equal(settings.endpoint, "http://a:1");
	assert_false(settings.requester_pays);
	setenv("AWS_DEFAULT_REGION", "r1", 1);
	setenv("AWS_ENDPOINT_URL", "http://b", 1);
	setenv("AWS_REQUEST_PAYER", "requester", 1);
	complete(&settings);
	assert_string_equal(settings.region, "r1");
	assert_string_equal(settings.endpoint, "http://b");
	assert_true(settings.requester_pays);
	setenv("AWS_REGION", "r2", 1);
	setenv("AWS_ENDPOINT_URL_S3", "http://c", 1);
	complete(&settings);
	assert_string_equal(settings.region, "r2");
	assert_string_equal(settings.endpoint, "http://c");
}

#define WITH_HOME(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_HOME(the_environment_comes_first),
		WITH_HOME(then_the_profile_of_both_files),
		WITH_HOME(then_a_process),
		WITH_HOME(a_pod_has_a_web_identity),
		WITH_HOME(a_container_has_a_service),
		WITH_HOME(an_instance_has_a_role),
		WITH_HOME(a_profile_has_a_role),
		WITH_HOME(without_any_the_error_says_what_to_do),
		WITH_HOME(settings_come_from_the_profile_and_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
