/* project_keys.c - see project_keys.h */
#include "step/project_keys.h"

#include <string.h>

#include "base/opt.h"

const struct leat_key leat_file_keys[] = {
	{.name = "sources",
         .type = LEAT_KEY_SOURCES,
         .def = "",
         .doc = "Files and folders that steps read: a name and a path, URI or pattern each. {subject} stands for the "
                "value "
                "of "
                "that slice variable; * ? [] and ** match as in a shell. CSV and JSON Lines can be loaded: give a map "
                "of the "
                "keys "
                "below instead of a pattern.",
         .example = "{epochs: 'raw/subject-{subject}.npy'}"},
	{.name = "steps",
         .type = LEAT_KEY_STEPS,
         .def = "",
         .doc = "What is made: a name and the keys of a step each.",
         .example = "{count: {run: 'wc -l \"$table\" > \"$out\"', in: table}}"},
	{.name = "storage",
         .type = LEAT_KEY_STORAGE,
         .def = "",
         .doc = "How remote sources are reached: settings of REMOTE.md, which no key of an action holds. Secrets are "
                "not "
                "among them.",
         .example = "{endpoint: 'https://minio.lab:9000', profile: lab}"},
	{.name = NULL},
};

const struct leat_key leat_source_keys[] = {
	{.name = "files",
         .type = LEAT_KEY_TEXT,
         .def = "",
         .doc = "Path, URI or pattern of the files.",
         .example = "raw/events-*.csv.gz"},
	{.name = "columns",
         .type = LEAT_KEY_COLUMNS,
         .def = "",
         .doc = "Check each record of these CSV or JSON Lines files against columns and their types, and give steps a "
                "folder of "
                "Parquet files; one file at a time, so new files are loaded alone. Types: bool, int8 to int64, uint8 "
                "to "
                "uint64, float, double, decimal(10,2), text, date, timestamp, and skip.",
         .example = "{user: int64, ts: timestamp, amount: double}"},
	{.name = "rejects",
         .type = LEAT_KEY_REJECTS,
         .def = "0",
         .doc = "Records of a file that may be bad and are left out; more is an error. 'leat show NAME --rejects' "
                "lists "
                "them.",
         .example = "0.1%"},
	{.name = "delimiter",
         .type = LEAT_KEY_TEXT,
         .def = ",",
         .doc = "Character between fields; 'tab' for a tab.",
         .example = "tab"},
	{.name = "header",
         .type = LEAT_KEY_FLAG,
         .def = "true",
         .doc = "The first line of each file names its columns, in any order; else they are in the order of 'columns'.",
         .example = "false"},
	{.name = "null",
         .type = LEAT_KEY_NULLS,
         .def = "",
         .doc = "Texts that stand for NULL, besides an empty field.",
         .example = "[NA, '-']"},
	{.name = NULL},
};

#define AT(member) .offset = offsetof(struct leat_step, member)

const struct leat_key leat_step_keys[] = {
	{.name = "in",
         .type = LEAT_KEY_NAMES,
         .def = "",
         .doc = "Sources and steps that the command reads, each as a shell variable with its path.",
         .example = "[epochs, layout]"},
	{.name = "slices",
         .type = LEAT_KEY_SLICES,
         .def = "",
         .doc = "Run the step once for each value, or each combination of values, of these variables.",
         .example = "{subject: 1..18, bin: [early, late]}"},
	{.name = "params",
         .type = LEAT_KEY_PARAMS,
         .def = "",
         .doc = "Texts and numbers for the command, each as a shell variable, verbatim.",
         .example = "{folds: 10, rate: 1e-3}"},
	{.name = "env",
         .type = LEAT_KEY_ENV,
         .def = "",
         .doc = "Environment variables that the result depends on: a list passes them on, a map sets them (and passes "
                "on those without a value).",
         .example = "[CUDA_VISIBLE_DEVICES]"},
	{.name = "code",
         .type = LEAT_KEY_GLOBS,
         .def = "**/*.{py,sh,sql}",
         .doc = "Files of the project that the command can see in its working folder.",
         .example = "[src/**, config/*.json]"},
	{.name = "suffix",
         .type = LEAT_KEY_SUFFIX,
         AT(suffix),
         .def = "",
         .doc = "End of the name of $out and of its link below out/, for programs that look at it.",
         .example = ".npy"},
	{.name = "seed",
         .type = LEAT_KEY_SEED,
         AT(seed),
         .def = "0",
         .doc = "Random seed, which a command gets as $seed. 'shards' shuffles all rows with it; without the key, it "
                "keeps their order.",
         .example = "7"},
	{.name = "cpus",
         .type = LEAT_KEY_COUNT,
         AT(cpus),
         .min = 1,
         .max = 4096,
         .def = "1",
         .doc = "Threads that one action uses; the libraries of numerics are told so.",
         .example = "4"},
	{.name = "memory",
         .type = LEAT_KEY_SIZE,
         AT(memory_bytes),
         .min = 1 << 20,
         .max = 1e15,
         .def = "",
         .doc = "Memory limit of one action.",
         .example = "4GiB"},
	{.name = "timeout",
         .type = LEAT_KEY_TIME,
         AT(timeout_s),
         .min = 1,
         .max = 1e7,
         .def = "",
         .doc = "Time after which an action is killed and counts as failed.",
         .example = "2h"},
	{.name = "retries",
         .type = LEAT_KEY_COUNT,
         AT(retries),
         .min = 0,
         .max = 100,
         .def = "0",
         .doc = "How often an action that failed is tried again.",
         .example = "2"},
	{.name = "feed",
         .type = LEAT_KEY_TEXT,
         AT(feed),
         .def = "",
         .doc = "Spec of a feed, which the command gets as $feed.",
         .example = "folder('images') | decode | resize(64, 64) | batch(32)"},
	{.name = "resume",
         .type = LEAT_KEY_FLAG,
         AT(resume),
         .def = "false",
         .doc = "Keep the folder $checkpoint until the action has succeeded, so a retry or the next build resumes.",
         .example = "true"},
	{.name = "key",
         .type = LEAT_KEY_TEXTS,
         AT(key),
         .def = "",
         .doc = "Columns that no two rows have alike and that are never NULL. Rows are sorted by them.",
         .example = "[user, ts]",
         .kind = "sql|asof"},
	{.name = "by",
         .type = LEAT_KEY_BY,
         .def = "",
         .doc = "Run the query once for each partition of these tables, which are split by a hash of the column; other "
                "tables are whole in each. Growth runs only the partitions whose rows changed.",
         .example = "{events: user, users: id}",
         .kind = "sql"},
	{.name = "partitions",
         .type = LEAT_KEY_COUNT,
         AT(partitions),
         .min = 1,
         .max = 4096,
         .def = "64",
         .doc = "Number of partitions, with 'by'. Another number runs all of them again.",
         .example = "16",
         .kind = "sql"},
	{.name = "check",
         .type = LEAT_KEY_CHECKS,
         AT(check),
         .def = "",
         .doc = "What must hold for columns of the result, and for the number of rows. The result is then a folder "
                "with "
                "kept.parquet and rejects.jsonl.",
         .example = "{amount: [not null, 0..1e6], user: in users.id, rows: 1..}",
         .kind = "sql|asof"},
	{.name = "checks",
         .type = LEAT_KEY_ACTION,
         AT(checks),
         .def = "fail",
         .doc = "What to do with rows that fail a check: fail, quarantine (take them out) or warn. The last two may "
                "have "
                "a share of rows above which the step fails.",
         .example = "quarantine up to 0.1%",
         .kind = "sql|asof"},
	{.name = "format",
         .type = LEAT_KEY_CHOICE,
         AT(format),
         .choices = "tfrecord|parquet|npy|tar",
         .def = "tfrecord",
         .doc = "Format of the shards.",
         .example = "parquet",
         .kind = "shards"},
	{.name = "compression",
         .type = LEAT_KEY_CHOICE,
         AT(compression),
         .choices = "auto|none|gzip|snappy|zstd",
         .def = "auto",
         .doc = "Compression of the shards: gzip for tfrecord; gzip, snappy or zstd for parquet. auto: zstd for "
                "parquet, "
                "else none.",
         .example = "gzip",
         .kind = "shards"},
	{.name = "count",
         .type = LEAT_KEY_COUNT,
         AT(count),
         .min = 1,
         .max = 99999,
         .def = "",
         .doc = "Number of shards; their numbers of rows differ by one at most.",
         .example = "16",
         .kind = "shards"},
	{.name = "parts",
         .type = LEAT_KEY_TEXT,
         AT(parts),
         .def = "",
         .doc = "Column whose values divide the rows: each gets a folder of shards. Without the key, the parts of a "
                "features step with a split (train, valid, ...); none: all rows together.",
         .example = "split",
         .kind = "shards"},
	{.name = "images",
         .type = LEAT_KEY_TEXT,
         AT(images),
         .def = "",
         .doc = "Column with names of image files, which take their place.",
         .example = "path",
         .kind = "shards"},
	{.name = "root",
         .type = LEAT_KEY_TEXT,
         AT(root),
         .def = "",
         .doc = "Source or step with the image files: a folder that their names are relative to.",
         .example = "photos",
         .kind = "shards"},
	{.name = "resize",
         .type = LEAT_KEY_COUNT,
         AT(resize),
         .min = 1,
         .max = 65500,
         .def = "",
         .doc = "Scale images down to this length of the shorter side, and store them as JPEG.",
         .example = "256",
         .kind = "shards"},
	{.name = "quality",
         .type = LEAT_KEY_COUNT,
         AT(quality),
         .min = 1,
         .max = 100,
         .def = "",
         .doc = "Store all images as JPEG of this quality. Without the key, 90 for those that were scaled; others stay "
                "as "
                "they are.",
         .example = "90",
         .kind = "shards"},
	{.name = "rejects",
         .type = LEAT_KEY_TEXT,
         AT(rejects),
         .def = "0",
         .doc = "Rows that may be left out because their image file is missing or broken: a share such as 0.1%, or a "
                "number; more is an error. 'leat show NAME --rejects' lists them.",
         .example = "0.1%",
         .kind = "shards"},
	{.name = "columns",
         .type = LEAT_KEY_CHAINS,
         .def = "",
         .doc = "Features and their transforms, each of the column with its name unless it begins with column(...). "
                "See "
                "FEATURES.md.",
         .example = "{amount: 'clip(p01, p99) | log1p | standardize', label: keep}",
         .kind = "features"},
	{.name = "split",
         .type = LEAT_KEY_SPLIT,
         .def = "",
         .doc = "How rows are divided, by the hash of a column or by time. Features are fitted on the part 'train'; "
                "without the key, on all rows.",
         .example = "{by: user, train: 80%, valid: 10%, test: 10%}",
         .kind = "features"},
	{.name = "dedupe",
         .type = LEAT_KEY_DEDUPE,
         .def = "",
         .doc = "Of rows with equal values in 'by', keep the first or the last by 'order', before anything else is "
                "done.",
         .example = "{by: [user, item], order: ts, keep: last}",
         .kind = "features"},
	{.name = "at",
         .type = LEAT_KEY_TEXT,
         AT(at),
         .def = "",
         .doc = "Column of the time of each row.",
         .example = "ts",
         .kind = "asof"},
	{.name = "take",
         .type = LEAT_KEY_TAKE,
         .def = "",
         .doc = "Tables that rows get columns from, each with 'at', the column of its times, and 'columns'; and if "
                "needed 'by', columns that both have, 'known', when a row came in, 'max_age', and 'strict'.",
         .example = "{prices: {at: valid_from, by: product, columns: [price], max_age: 30d}}",
         .kind = "asof"},
	{.name = NULL},
};

bool
leat_key_is_of(const struct leat_key *key, const char *kind)
{
	const char *at = key->kind;
	size_t len = strlen(kind);

	while (at && !(strncmp(at, kind, len) == 0 && (at[len] == '|' || !at[len])))
		at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL;
	return !key->kind || at;
}

const struct leat_key *
leat_key_find(const struct leat_key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (!strcmp(keys->name, name))
			return keys;
	return NULL;
}

void
leat_key_values(const struct leat_key *key, struct leat_str *out)
{
	static const char *const words[] = {
		[LEAT_KEY_TEXT] = "a text",
		[LEAT_KEY_SUFFIX] = "a dot and letters or digits, such as .npy",
		[LEAT_KEY_SEED] = "a whole number between 0 and 18446744073709551615",
		[LEAT_KEY_TIME] = "a time with its unit, between 1s and 100d, such as 90s, 15m or 2h",
		[LEAT_KEY_SIZE] = "a size of at least 1MiB, such as 4GiB",
		[LEAT_KEY_FLAG] = "true or false",
		[LEAT_KEY_NAMES] = "the name of a source or step, or a list of them",
		[LEAT_KEY_SLICES] = "a map of variables and their values",
		[LEAT_KEY_PARAMS] = "a map of names and texts",
		[LEAT_KEY_ENV] = "a list of names, or a map of names and texts",
		[LEAT_KEY_GLOBS] = "a glob, or a list of globs",
		[LEAT_KEY_CHECKS] = "a map of columns, each with a check or a list of checks",
		[LEAT_KEY_ACTION] = "fail, quarantine or warn, the last two also with a share such as 'up to 0.1%'",
		[LEAT_KEY_TEXTS] = "a name, or a list of names",
		[LEAT_KEY_COLUMNS] = "a map of names and types",
		[LEAT_KEY_REJECTS] = "a share such as 0.1%, or a number",
		[LEAT_KEY_NULLS] = "a text, or a list of texts",
		[LEAT_KEY_BY] = "a map of tables and a column of each",
		[LEAT_KEY_CHAINS] = "a map of names and transforms",
		[LEAT_KEY_SPLIT] = "a map of 'by', and of parts and their shares",
		[LEAT_KEY_DEDUPE] = "a map of 'by', 'order' and 'keep'",
		[LEAT_KEY_TAKE] = "a map of tables, each with a map of its keys",
		[LEAT_KEY_SOURCES] = "a map of names and paths",
		[LEAT_KEY_STEPS] = "a map of names and steps",
		[LEAT_KEY_STORAGE] = "a map of settings and values",
	};

	if (key->type == LEAT_KEY_CHOICE)
		leat_str_addf(out, strchr(key->choices, '|') ? "one of %s" : "%s", key->choices);
	else if (key->type == LEAT_KEY_COUNT)
		leat_str_addf(out, "a whole number between %.0f and %.0f", key->min, key->max);
	else
		leat_str_add(out, words[key->type]);
}
