/* manifest.h - what an action was, what it made, and how it went
 *
 * JSON, written once and never changed. Hostile when read: the store may be shared, or damaged. The key is the SHA-256
 * of the fields, so a manifest proves its own name. */
#ifndef LEAT_CAS_MANIFEST_H
#define LEAT_CAS_MANIFEST_H

#include "cas/cas.h"

/* One thing that the result depends on. In this order, and sorted by name within each group:
 *
 *	kind            "run 1": what kind of step, and its version
 *	command         the text that is run
 *	suffix          of $out; not there if it has none
 *	feed            the spec of $feed; not there if it has none
 *	seed
 *	param.NAME
 *	env.NAME        its value; "sha256 HEX" if it is a secret; not there if it is not set
 *	input_slices.NAME   names of the variables of a sliced step that is an input
 *	input_suffix.NAME   of the path of an input; not there if it has none
 *	code.PATH       content of a file that the command names, or that such a file names
 *	slice.NAME
 *	input.NAME      content
 *
 * Up to "code" all slices of a step have the same, so it is hashed once. Then come the fields that were found after
 * the run, which are called *learned*:
 *
 *	absent.FOLDER   names of modules that Python would have found first in that folder of the project
 *	import.PATH     content of a module that Python imported; an absolute path if it is outside the project
 *	package.NAME    version of a package outside the project; "none" if Python looked for it and did not find it
 *	python.PROGRAM  version of Python */
struct leat_key_field {
	const char *name, *value;
};

struct leat_manifest {
	struct leat_digest key;
	const char *step, *slice; /* slice: "subject=3,bin=7"; "" if the step has none */
	uint64_t number;          /* of the step's actions: with the step's name its id, "decode-42" */
	const struct leat_key_field *field;
	size_t fields, learned; /* how many in all; how many of them, at the end, were found after the run */
	struct leat_content output;
	struct leat_digest log; /* of what it printed */
	const char *run;        /* name of the build that ran it */
	double begun_s;         /* since 1970 */
	double seconds, cpu_s;
	uint64_t peak_bytes;
	unsigned cpus, threads, attempts; /* granted, most seen at a time, how often it was tried */
	const char *metrics;              /* JSON object of numbers and texts that it reported; "" if none */
	const char *warning;              /* "" if none, such as "5 threads on 1 cpu" */
	const char *profile; /* of a table: its sketch as JSON, with its drift (table/sketch.h); "" if none */
};

/* Adds a field to a key that is being computed. */
static inline void
leat_key_add(struct leat_sha256 *sha, const char *name, const char *value)
{
	leat_sha256_add(sha, name, strlen(name) + 1);
	leat_sha256_add(sha, value, strlen(value) + 1);
}

/* The key of a list of fields. The *stem* is that of the fields before the learned ones. */
enum leat_status leat_key_of(const struct leat_key_field *field, size_t fields, struct leat_digest *key,
                             struct leat_err *err);

/* Writes the manifest, and enters it into the index. If there is one with this key already: the same output: nothing
 * happens; another output: `*other` is set to it (it is kept if its blobs are there, else replaced): the action is not
 * deterministic. */
enum leat_status leat_cas_record(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_content *other,
                                 struct leat_err *err);
/* Free with leat_manifest_free. LEAT_DATA: there is none, or it is damaged. */
enum leat_status leat_cas_manifest(struct leat_cas *cas, const struct leat_digest *key, struct leat_manifest **manifest,
                                   struct leat_err *err);
void leat_manifest_free(struct leat_manifest *manifest, struct leat_mem *mem); /* accepts NULL */
/* For fuzzing, and for rebuilding the index. */
enum leat_status leat_manifest_parse(const char *json, size_t len, struct leat_mem *mem,
                                     struct leat_manifest **manifest, struct leat_err *err);

#endif
