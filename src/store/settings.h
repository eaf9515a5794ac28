/* settings.h - the settings of remote stores: storage={"endpoint": ...}
 *
 * One table describes them all; the parser, the help of commands, Python and a test of
 * docs/REMOTE.md read it. In order of precedence, a setting comes from
 *  1. the storage option of a feed or a command,
 *  2. the environment,
 *  3. the profile, for S3 (credentials.c),
 *  4. its default.
 *
 * They say how to reach data, not what it is, so they are not part of a pipeline's hash, of a
 * fingerprint or of a checkpoint. Secrets are not accepted: command lines and logs show options.
 *
 * `open` of a store gets what the user has set. A remote store copies that and completes it by
 * leat_storage_complete, so that variables matter only to those who use remote data.
 *
 * Threads: any; there is no state. */
#ifndef LEAT_STORE_SETTINGS_H
#define LEAT_STORE_SETTINGS_H

#include "base/opt.h"

enum { LEAT_SETTING = 512 }; /* bytes of a text, with its end */

enum leat_storage_style { LEAT_STYLE_AUTO, LEAT_STYLE_PATH, LEAT_STYLE_VIRTUAL };
enum leat_storage_trust { LEAT_TRUST_OWN, LEAT_TRUST_SHARED };

/* A text that is not set is "". */
struct leat_storage {
	uint32_t given; /* bit i: setting i has been set by an option */
	uint32_t known; /* the same, or by the environment or a profile */
	char endpoint[LEAT_SETTING], region[LEAT_SETTING], profile[LEAT_SETTING];
	int style; /* enum leat_storage_style */
	bool anonymous, requester_pays;
	char ca_bundle[LEAT_SETTING], proxy[LEAT_SETTING], resolve[LEAT_SETTING];
	int64_t requests;        /* in flight, at most; 0: automatic */
	int64_t threads;         /* of the wire; 0: automatic */
	float timeout, patience; /* seconds */
	bool hedge;
	char disk_cache[LEAT_SETTING]; /* "": none */
	int64_t disk_cache_size;       /* 0: automatic */
	int disk_cache_trust;          /* enum leat_storage_trust */
};

struct leat_setting {
	struct leat_opt opt;   /* of type STRING: an array of LEAT_SETTING bytes, not a pointer */
	const char *variables; /* the first of these that is set counts; "": none. Those of AWS_ are for S3 only */
	bool is_path;          /* of a local file: ~ is the home folder */
	/* Optional, for texts. NULL: it is fine; else why it is not. */
	const char *(*check)(const char *value);
};

extern const struct leat_setting leat_settings[]; /* ends with one without a name */

/* Appends what it is and its default, as in "seconds without progress ... (default: 20)". */
void leat_setting_doc(const struct leat_setting *setting, struct leat_str *out);

/* All defaults. */
void leat_storage_init(struct leat_storage *storage);
/* Sets one by name. `from`: where it comes from if it is no option, for errors, such as "AWS_REGION"; else NULL. */
enum leat_status leat_storage_put(struct leat_storage *storage, const char *name, const char *value, const char *from,
                                  struct leat_mem *mem, struct leat_err *err);
/* From "NAME=VALUE" texts, the last of which is NULL; NULL: none. The last value of a name counts. */
enum leat_status leat_storage_parse(struct leat_storage *storage, const char *const *texts, struct leat_mem *mem,
                                    struct leat_err *err);
/* What has not been given comes from the environment; for S3 also from variables of AWS_. */
enum leat_status leat_storage_complete(struct leat_storage *storage, bool is_s3, struct leat_mem *mem,
                                       struct leat_err *err);
/* Bits of `given` and `known`, by name; 0: there is no such setting. */
uint32_t leat_storage_bit(const char *name);

#endif
