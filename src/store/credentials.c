/* credentials.c - see credentials.h */
#include "store/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/aws_config.h"
#include "store/credentials_fetch.h"
#include "store/s3_list.h"

enum { MAX_OUTPUT = 64 * 1024, PROCESS_SECONDS = 60 };

/* Both files, and the profile that is asked for. */
struct profiles {
	const struct leat_storage *storage;
	const char *name;
	char *config, *credentials;
	size_t config_len, credentials_len;
};

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool
copy(char *to, size_t cap, const char *value)
{
	if (!value || strlen(value) >= cap)
		return false;
	strcpy(to, value);
	return true;
}

/* ---- profiles ---- */

static void
load_profiles(struct profiles *profiles, const struct leat_storage *storage, struct leat_mem *mem)
{
	*profiles = (struct profiles){storage, *storage->profile ? storage->profile : "default", NULL, NULL, 0, 0};
	profiles->config = leat_aws_config_load(mem, "AWS_CONFIG_FILE", "~/.aws/config", &profiles->config_len);
	profiles->credentials = leat_aws_config_load(mem, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials",
	                                             &profiles->credentials_len);
}

static void
free_profiles(struct profiles *profiles, struct leat_mem *mem)
{
	if (profiles->credentials)
		explicit_bzero(profiles->credentials, profiles->credentials_len);
	if (profiles->config)
		explicit_bzero(profiles->config, profiles->config_len);
	leat_free(mem, profiles->config);
	leat_free(mem, profiles->credentials);
}

/* From the file of credentials, then the other one, where sections have another name. */
static bool
get(const struct profiles *profiles, const char *profile, const char *name, char *value, size_t cap)
{
	char section[LEAT_SETTING + 16];

	snprintf(section, sizeof(section), "%s%s", strcmp(profile, "default") == 0 ? "" : "profile ", profile);
	return (profiles->credentials &&
	        leat_aws_config_get(profiles->credentials, profiles->credentials_len, profile, name, value, cap)) ||
	       (profiles->config &&
	        leat_aws_config_get(profiles->config, profiles->config_len, section, name, value, cap));
}

static bool
has_profile(const struct profiles *profiles)
{
	char section[LEAT_SETTING + 16];

	snprintf(section, sizeof(section), "%s%s", strcmp(profiles->name, "default") == 0 ? "" : "profile ",
	         profiles->name);
	return (profiles->credentials &&
	        leat_aws_config_has(profiles->credentials, profiles->credentials_len, profiles->name)) ||
	       (profiles->config && leat_aws_config_has(profiles->config, profiles->config_len, section));
}

/* ---- credential_process ---- */

static const char *
json_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static void
erase_texts(json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value) if (json_is_string(value))
		explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
}

enum leat_status
leat_credentials_parse(struct leat_credentials *credentials, const char *json, size_t len, struct leat_err *err)
{
	json_t *object = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	const char *token = json_text(object, object && json_object_get(object, "Token") ? "Token" : "SessionToken");
	const char *expires = json_text(object, "Expiration");
	enum leat_status status = LEAT_OK;

	*credentials = (struct leat_credentials){0};
	if (!copy(credentials->key_id, LEAT_KEY_ID, json_text(object, "AccessKeyId")) ||
	    !copy(credentials->secret, LEAT_SECRET, json_text(object, "SecretAccessKey")) ||
	    (token && !copy(credentials->token, LEAT_TOKEN, token)))
		status = leat_fail(err, LEAT_INVALID, "the answer has no AccessKeyId and SecretAccessKey");
	credentials->expires = expires ? leat_s3_time(expires) : 0;
	erase_texts(object);
	json_decref(object);
	return status;
}

/* Reads until the end, for a minute at most. */
static ssize_t
read_all(int fd, char *output, size_t cap)
{
	uint64_t end = leat_now() + PROCESS_SECONDS * 1000000000ull;
	size_t len = 0;
	ssize_t got = 1;

	while (got > 0 && len < cap) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		uint64_t now = leat_now();

		if (now >= end || poll(&ready, 1, (int)((end - now) / 1000000)) == 0)
			return -1;
		got = read(fd, output + len, cap - len);
		if (got < 0 && errno != EINTR)
			return -1;
		len += got > 0 ? (size_t)got : 0;
	}
	return len < cap ? (ssize_t)len : -1;
}

static bool
start_process(const char *command, int out, pid_t *pid)
{
	char *arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)command, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	bool started;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	started = posix_spawn(pid, "/bin/sh", &actions, &attributes, arguments, environ) == 0;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return started;
}

/* Its status. One that has said all, or takes too long, has no reason to go on. */
static int
end_process(pid_t pid, bool has_ended)
{
	int code = 0;

	for (int i = 0; has_ended && i < 100; i++) {
		if (waitpid(pid, &code, WNOHANG) != 0)
			return code;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, &code, 0) < 0 && errno == EINTR)
		;
	return has_ended ? 0 : code;
}

static enum leat_status
run_process(struct leat_credentials *credentials, const char *command, const char *profile, struct leat_mem *mem,
            struct leat_err *err)
{
	char *output = leat_alloc(mem, MAX_OUTPUT);
	enum leat_status status;
	ssize_t len = -1;
	int pipes[2], code = 0;
	pid_t pid = -1;

	if (!output)
		return leat_fail_mem(err, mem, MAX_OUTPUT, "credentials");
	if (pipe2(pipes, O_CLOEXEC) == 0) {
		if (!start_process(command, pipes[1], &pid))
			pid = -1;
		close(pipes[1]);
		len = pid > 0 ? read_all(pipes[0], output, MAX_OUTPUT) : -1;
		close(pipes[0]);
	}
	if (pid > 0)
		code = end_process(pid, len >= 0);
	if (len < 0 || code != 0)
		status = leat_fail(err, LEAT_INVALID, "the credential_process of profile '%s' failed", profile);
	else if ((status = leat_credentials_parse(credentials, output, (size_t)len, err)) != LEAT_OK)
		leat_err_in(err, "the credential_process of profile '%s'", profile);
	explicit_bzero(output, MAX_OUTPUT);
	leat_free(mem, output);
	return status;
}

/* ---- finding ---- */

/* LEAT_AGAIN: none here. */
static enum leat_status
from_environment(struct leat_credentials *credentials, struct leat_err *err)
{
	const char *key_id = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
	const char *token = variable("AWS_SESSION_TOKEN");

	if (!key_id && !secret)
		return LEAT_AGAIN;
	if (!key_id || !secret)
		return leat_fail(err, LEAT_INVALID, "%s is set, but %s is not",
		                 key_id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
		                 key_id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
	if (!copy(credentials->key_id, LEAT_KEY_ID, key_id) || !copy(credentials->secret, LEAT_SECRET, secret) ||
	    (token && !copy(credentials->token, LEAT_TOKEN, token)))
		return leat_fail(err, LEAT_INVALID,
		                 "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN is too "
		                 "long");
	return LEAT_OK;
}

static void
find_region(const struct profiles *profiles, const char *profile, char region[LEAT_SETTING])
{
	const char *set = variable("AWS_REGION");

	strcpy(region, "us-east-1");
	get(profiles, profile, "region", region, LEAT_SETTING);
	set = set ? set : variable("AWS_DEFAULT_REGION");
	if (profiles->storage->given & leat_storage_bit("region"))
		set = profiles->storage->region;
	if (set)
		snprintf(region, LEAT_SETTING, "%s", set);
}

static enum leat_status from_profile(struct leat_credentials *credentials, const struct profiles *profiles,
                                     const char *profile, int depth, struct leat_mem *mem, struct leat_err *err);

/* What a role is assumed with. */
static enum leat_status
find_source(struct leat_credentials *source, const struct profiles *profiles, const char *profile, int depth,
            struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_AGAIN;
	char name[LEAT_SETTING];

	if (get(profiles, profile, "source_profile", name, sizeof(name)))
		status = from_profile(source, profiles, name, depth + 1, mem, err);
	else if (!get(profiles, profile, "credential_source", name, sizeof(name)))
		return leat_fail(err, LEAT_INVALID,
		                 "profile '%s' has a role_arn, but neither source_profile nor "
		                 "credential_source nor web_identity_token_file",
		                 profile);
	else if (strcmp(name, "Environment") == 0)
		status = from_environment(source, err);
	else if (strcmp(name, "EcsContainer") == 0)
		status = leat_credentials_from_container(source, mem, err);
	else if (strcmp(name, "Ec2InstanceMetadata") == 0)
		status = leat_credentials_from_instance(source, mem, err);
	return status == LEAT_AGAIN
	               ? leat_fail(err, LEAT_INVALID, "profile '%s': '%s' has no credentials", profile, name)
	               : status;
}

static enum leat_status
assume_role(struct leat_credentials *credentials, const struct profiles *profiles, const char *profile,
            const char *role, int depth, struct leat_mem *mem, struct leat_err *err)
{
	char session[LEAT_SETTING] = "leat", file[LEAT_SETTING], external[LEAT_SETTING] = "", region[LEAT_SETTING];
	const struct leat_sts sts = {profiles->storage, region, role, session};
	struct leat_credentials *source;
	enum leat_status status;

	get(profiles, profile, "role_session_name", session, sizeof(session));
	get(profiles, profile, "external_id", external, sizeof(external));
	find_region(profiles, profile, region);
	if (get(profiles, profile, "web_identity_token_file", file, sizeof(file)))
		return leat_credentials_from_identity(credentials, mem, &sts, file, err);
	source = leat_alloc(mem, sizeof(*source));
	if (!source)
		return leat_fail_mem(err, mem, sizeof(*source), "credentials");
	status = find_source(source, profiles, profile, depth, mem, err);
	if (status == LEAT_OK)
		status = leat_credentials_from_role(credentials, mem, &sts, source, external, err);
	leat_credentials_forget(source);
	leat_free(mem, source);
	return status;
}

/* LEAT_AGAIN: none there. A profile may name itself as its source, for its keys. */
static enum leat_status
from_profile(struct leat_credentials *credentials, const struct profiles *profiles, const char *profile, int depth,
             struct leat_mem *mem, struct leat_err *err)
{
	enum { DEEPEST = 5 };
	char command[4096], role[LEAT_SETTING], source[LEAT_SETTING];
	bool has_id = get(profiles, profile, "aws_access_key_id", credentials->key_id, LEAT_KEY_ID);
	bool is_own_source = depth > 0 && get(profiles, profile, "source_profile", source, sizeof(source)) &&
	                     strcmp(source, profile) == 0;

	if (depth > DEEPEST)
		return leat_fail(err, LEAT_INVALID, "profile '%s': too many profiles name each other as source_profile",
		                 profile);
	if (!is_own_source && get(profiles, profile, "role_arn", role, sizeof(role)))
		return assume_role(credentials, profiles, profile, role, depth, mem, err);
	if (has_id != get(profiles, profile, "aws_secret_access_key", credentials->secret, LEAT_SECRET))
		return leat_fail(err, LEAT_INVALID,
		                 "profile '%s' needs both aws_access_key_id and aws_secret_access_key", profile);
	if (has_id) {
		get(profiles, profile, "aws_session_token", credentials->token, LEAT_TOKEN);
		return LEAT_OK;
	}
	if (get(profiles, profile, "credential_process", command, sizeof(command)))
		return run_process(credentials, command, profile, mem, err);
	return LEAT_AGAIN;
}

/* LEAT_AGAIN: none here. */
static enum leat_status
from_pod(struct leat_credentials *credentials, const struct profiles *profiles, struct leat_mem *mem,
         struct leat_err *err)
{
	const char *file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), *role = variable("AWS_ROLE_ARN");
	const char *session = variable("AWS_ROLE_SESSION_NAME");
	char region[LEAT_SETTING];

	if (!file || !role)
		return LEAT_AGAIN;
	find_region(profiles, profiles->name, region);
	return leat_credentials_from_identity(
		credentials, mem, &(struct leat_sts){profiles->storage, region, role, session ? session : "leat"}, file,
		err);
}

/* LEAT_AGAIN: none. A profile that was chosen by name must exist, and goes before what the environment has. */
static enum leat_status
from_variables_or_profile(struct leat_credentials *credentials, const struct profiles *profiles, struct leat_mem *mem,
                          struct leat_err *err)
{
	enum leat_status status = LEAT_AGAIN;

	if (profiles->storage->given & leat_storage_bit("profile")) {
		if (!has_profile(profiles))
			return leat_fail(err, LEAT_INVALID,
			                 "option 'profile' of 'storage' cannot be '%s': there is no such profile in "
			                 "~/.aws/credentials or ~/.aws/config",
			                 profiles->name);
	} else {
		status = from_environment(credentials, err);
		if (status == LEAT_AGAIN)
			status = from_pod(credentials, profiles, mem, err);
	}
	if (status == LEAT_AGAIN)
		status = from_profile(credentials, profiles, profiles->name, 0, mem, err);
	return status;
}

/* They become lines of a request: a line end in them, as from a file that was read badly, would end it. */
static enum leat_status
check(const struct leat_credentials *credentials, struct leat_err *err)
{
	const char *const values[] = {credentials->key_id, credentials->token};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		for (const char *at = values[i]; *at; at++)
			if (*at <= ' ' || *at > '~')
				return leat_fail(
					err, LEAT_INVALID,
					"credentials for S3: the %s has characters that do not belong there, such as "
					"blanks or line ends",
					i ? "session token" : "access key ID");
	return LEAT_OK;
}

enum leat_status
leat_credentials_find(struct leat_credentials *credentials, const struct leat_storage *storage, struct leat_mem *mem,
                      struct leat_err *err)
{
	struct profiles profiles;
	enum leat_status status;

	*credentials = (struct leat_credentials){.anonymous = storage->anonymous};
	if (credentials->anonymous)
		return LEAT_OK;
	load_profiles(&profiles, storage, mem);
	status = from_variables_or_profile(credentials, &profiles, mem, err);
	if (status == LEAT_AGAIN)
		status = leat_credentials_from_container(credentials, mem, err);
	if (status == LEAT_AGAIN)
		status = leat_credentials_from_instance(credentials, mem, err);
	if (status == LEAT_AGAIN)
		status = leat_fail(
			err, LEAT_INVALID,
			"there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
			"add profile '%s' to ~/.aws/credentials, or set AWS_NO_SIGN_REQUEST=1 for public data",
			profiles.name);
	free_profiles(&profiles, mem);
	return status == LEAT_OK ? check(credentials, err) : status;
}

void
leat_credentials_forget(struct leat_credentials *credentials)
{
	explicit_bzero(credentials, sizeof(*credentials));
}

enum leat_status
leat_profile_settings(struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err)
{
	static const char *const names[][2] = {
		{"endpoint", "endpoint_url"}, {"region", "region"}, {"ca_bundle", "ca_bundle"}};
	struct profiles profiles;
	char value[LEAT_SETTING], from[LEAT_SETTING + 16];
	enum leat_status status = LEAT_OK;

	load_profiles(&profiles, storage, mem);
	snprintf(from, sizeof(from), "profile '%s'", profiles.name);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && status == LEAT_OK; i++)
		if (!(storage->known & leat_storage_bit(names[i][0])) &&
		    get(&profiles, profiles.name, names[i][1], value, sizeof(value)))
			status = leat_storage_put(storage, names[i][0], value, from, mem, err);
	free_profiles(&profiles, mem);
	return status;
}
