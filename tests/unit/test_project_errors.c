/* test_project_errors.c - what every mistake in leat.yaml is told, with line, column and caret */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "step/project.h"
#include "step/yaml.h"

static struct leat_mem mem;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	return 0;
}

static void
parse_refused(const char *text, size_t len, struct leat_err *err)
{
	struct leat_project *project;

	leat_err_clear(err);
	assert_int_equal(leat_project_parse(&project, &mem, NULL, text, len, err), LEAT_SPEC);
	assert_int_equal(err->status, LEAT_SPEC);
	assert_null(project);
	/* Without a leat_err it is refused just the same. */
	assert_int_equal(leat_project_parse(&project, &mem, NULL, text, len, NULL), LEAT_SPEC);
	assert_int_equal(mem.used, 0);
}

/* The first line of the error. */
static void
refused(const char *text, const char *expected)
{
	struct leat_err err;

	parse_refused(text, strlen(text), &err);
	err.text[strcspn(err.text, "\n")] = '\0';
	assert_string_equal(err.text, expected);
}

/* The same for the keys of one step, which begin at line 4, column 5; "leat.yaml:" is left out. */
static void
step_refused(const char *keys, const char *expected)
{
	char text[2000], whole[1000];

	snprintf(text, sizeof(text), "sources: {raw: x, days: 'day-{day}'}\nsteps:\n  a:\n    %s\n  other: {run: x}\n",
	         keys);
	snprintf(whole, sizeof(whole), "leat.yaml:%s", expected);
	refused(text, whole);
}

static void
run_refused(const char *command, const char *expected)
{
	char keys[1500], whole[500];

	snprintf(keys, sizeof(keys), "in: raw\n    params: {folds: 3}\n    run: %s", command);
	snprintf(whole, sizeof(whole), "%s", expected);
	step_refused(keys, whole);
}

static void
run_accepted(const char *command)
{
	struct leat_project *project;
	struct leat_err err;
	char text[2000];

	leat_err_clear(&err);
	snprintf(text, sizeof(text),
	         "sources: {raw: x}\nsteps:\n  a:\n    in: raw\n    slices: {day: 1..2}\n    params: {folds: 3}\n    "
	         "env: [TOKEN]\n    run: |\n      %s\n",
	         command);
	if (leat_project_parse(&project, &mem, NULL, text, strlen(text), &err) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_project_close(project);
}

/* ---- YAML ---- */

static void
an_error_shows_its_line_with_a_caret(void **state)
{
	static const char text[] = "steps:\n  decode:\n    run: x\n    retires: 3\n";
	struct leat_err err;

	(void)state;
	parse_refused(text, strlen(text), &err);
	assert_string_equal(err.text, "leat.yaml:4:5: step 'decode' has no key 'retires', did you mean 'retries'?\n"
	                              "    retires: 3\n"
	                              "    ^^^^^^^");
}

static void
columns_count_characters_and_lines_end_as_they_like(void **state)
{
	(void)state;
	refused("# \xc3\xa9\r\n\xc3\xa9t\xc3\xa9: 1\n",
	        "leat.yaml:2:1: leat.yaml has no key '\xc3\xa9t\xc3\xa9'; it has sources, steps, storage");
	refused("steps: {\xc3\xa9\xc3\xa9: {run: x}, b: {rum: x}}\n",
	        "leat.yaml:1:9: '\xc3\xa9\xc3\xa9' cannot be the name of a step, because names become shell variables; "
	        "use "
	        "letters, digits and _, and begin with a letter");
	refused("\xef\xbb\xbfstep: {}\n", "leat.yaml:1:2: leat.yaml has no key 'step', did you mean 'steps'?");
}

static void
traps_of_yaml_are_told_with_their_remedy(void **state)
{
	(void)state;
	step_refused("run: echo a: b",
	             "4:16: not valid YAML: mapping values are not allowed in this context; a text that "
	             "contains ': ' needs quotes, or put it on the next line, after |");
	step_refused("run: \"$raw\" x",
	             "4:17: not valid YAML: did not find expected key; check the indentation; a text that "
	             "begins with a quote ends at the next one, so put such a command on the next line, "
	             "after |");
	step_refused("code: *.csv",
	             "4:12: not valid YAML: did not find expected alphabetic or numeric character; a text that "
	             "begins with * or & needs quotes, such as '*.csv'");
	step_refused("code: [${x}]",
	             "4:13: not valid YAML: did not find expected ',' or ']'; inside [ ] and { }, a text with "
	             "any of {}[],:# needs quotes, such as '${x}'");
	step_refused("code: [clip(p01, p99), log1p]", "4:12: 'clip(p01' has a parenthesis without its pair: inside [ ] "
	                                              "and { } a comma ends a text; put quotes "
	                                              "around it");
	step_refused("run: @x",
	             "4:10: not valid YAML: found character that cannot start any token; a text that begins with @, "
	             "` or % needs quotes");
	step_refused("run: 'x", "4:10: not valid YAML: found unexpected end of stream; a quote is not closed");
	refused("steps:\n\ta: 1\n",
	        "leat.yaml:2:1: not valid YAML: found character that cannot start any token; indent with "
	        "spaces, not tabs");
}

static void
what_a_file_of_steps_has_no_use_for_is_refused(void **state)
{
	(void)state;
	step_refused("run: &x y", "4:10: anchors (&name) are not supported; a text that begins with & needs quotes");
	step_refused("in: &x [raw]", "4:9: anchors (&name) are not supported; a text that begins with & needs quotes");
	step_refused("run: !x y", "4:10: tags (!name) are not supported; a text that begins with ! needs quotes");
	step_refused("params: !x {}", "4:13: tags (!name) are not supported; a text that begins with ! needs quotes");
	step_refused("run: *x",
	             "4:10: aliases (*name) are not supported; write the value again, or put quotes around a text "
	             "that begins with *");
	step_refused("? [a]\n    : b", "4:7: a key must be a text; [ and { need quotes here");
	step_refused("<<: {a: b}", "4:5: merging maps (<<) is not supported; write the keys again");
	step_refused("run: x\n    run: y", "5:5: 'run' is here twice: first in line 4");
	refused("steps: {a: {run: x}}\n---\nsteps: {}\n",
	        "leat.yaml:2:1: a second document begins here; a file has one");
	refused("steps: {\"a\\0b\": x}\n", "leat.yaml:1:9: a text cannot contain the character NUL");
}

static void
bytes_that_are_not_text_are_refused(void **state)
{
	struct leat_err err;

	(void)state;
	parse_refused("steps:\0 x", 9, &err);
	err.text[strcspn(err.text, "\n")] = '\0';
	assert_string_equal(
		err.text, "leat.yaml:1:7: not UTF-8 text: control characters are not allowed; save the file as UTF-8");
	refused("steps: \xff\n", "leat.yaml:1:8: not UTF-8 text: invalid leading UTF-8 octet; save the file as UTF-8");
}

static void
a_hostile_file_meets_limits(void **state)
{
	char *large = malloc(LEAT_YAML_BYTES + 2), deep[60];
	struct leat_err err;

	(void)state;
	assert_non_null(large);
	memset(deep, '[', sizeof(deep));
	parse_refused(deep, sizeof(deep), &err);
	assert_non_null(strstr(err.text, "leat.yaml:1:17: nested more than 16 levels deep"));
	memset(large, ' ', LEAT_YAML_BYTES + 1);
	parse_refused(large, LEAT_YAML_BYTES + 1, &err);
	assert_string_equal(err.text, "leat.yaml has more than 16 MiB");
	for (size_t i = 0; i < LEAT_YAML_BYTES; i++)
		large[i] = i % 2 ? ',' : 'a';
	large[0] = '[';
	parse_refused(large, LEAT_YAML_BYTES, &err);
	free(large);
}

/* ---- the file ---- */

static void
a_file_without_steps_is_refused(void **state)
{
	(void)state;
	refused("", "leat.yaml is empty; 'leat init' in an empty folder writes an example");
	refused("# only a comment\n", "leat.yaml is empty; 'leat init' in an empty folder writes an example");
	refused("- a\n", "leat.yaml:1:1: expected 'sources:' and 'steps:'");
	refused("steps\n", "leat.yaml:1:1: expected 'sources:' and 'steps:'");
	refused("sources: {a: b}\n", "leat.yaml has no steps; add one under 'steps:'");
	refused("steps: {}\n", "leat.yaml has no steps; add one under 'steps:'");
	refused("steps:\n", "leat.yaml:1:1: 'steps' must be a map: a name, a colon and a value in each line below");
	refused("steps: [a]\n", "leat.yaml:1:1: 'steps' must be a map: a name, a colon and a value in each line below");
	refused("source: {}\n", "leat.yaml:1:1: leat.yaml has no key 'source', did you mean 'sources'?");
	refused("steps:a: {run: x}\n", "leat.yaml:1:1: there is no key 'steps:a'; is a space missing after ':'?");
}

static void
a_source_is_a_path_or_pattern(void **state)
{
	(void)state;
	refused("sources: {a: }\n", "leat.yaml:1:11: source 'a' must be a path or pattern");
	refused("sources: {a: [b]}\n", "leat.yaml:1:14: source 'a' must be a path or pattern");
	refused("sources:\n  a: {subject}.npy\n",
	        "leat.yaml:2:15: not valid YAML: did not find expected key; check the "
	        "indentation; a text that begins with a quote ends at the next one, so "
	        "put such a command on the next line, after |");
	refused("sources: {a: {b: }}\n",
	        "leat.yaml:1:14: source 'a' must be a path or pattern; put quotes around {...}");
	refused("sources: {a: gs://b/c}\n",
	        "leat.yaml:1:14: source 'a' is in no store that Leat knows: 'gs' is not s3, "
	        "https, http or file");
	refused("sources: {a: s3://b/**/c}\n", "leat.yaml:1:14: source 'a' has '**', which only local files have; name "
	                                       "the folders, or use several sources");
	refused("sources: {a: 'https://h/x*.csv'}\n", "leat.yaml:1:14: source 'a' is a pattern, but web servers cannot "
	                                              "list files; name each one");
	refused("sources: {a: 'https://h/x.csv?sig=1'}\n",
	        "leat.yaml:1:14: source 'a' is a URL with a query, which may be secret and may expire; use s3:// with "
	        "credentials, or a URL without it");
	refused("storage: {disk_cache: /x}\n",
	        "leat.yaml:1:11: 'disk_cache' is for feeds; copies of remote sources are "
	        "in .leat, and 'leat gc' limits their size");
	refused("storage: {ca_bundle: x.pem}\n", "leat.yaml:1:22: 'ca_bundle' of 'storage' must begin with / or ~");
	refused("storage: {enpoint: x}\n", "leat.yaml:1:11: storage has no option 'enpoint', did you mean 'endpoint'?");
	refused("sources: {a: out/b}\n",
	        "leat.yaml:1:14: source 'a' is below out/, where results appear; name the step under 'in' instead");
	refused("sources: {a: ./.leat/cas}\n", "leat.yaml:1:14: source 'a' is below .leat/, which belongs to Leat");
	refused("sources: {a: ./}\n", "leat.yaml:1:14: source 'a' has no path");
	refused("sources: {a: 'x{b'}\n", "leat.yaml:1:14: 'x{b' has a brace without its pair");
	refused("sources: {a: 'x}b'}\n", "leat.yaml:1:14: 'x}b' has a brace without its pair");
	refused("sources: {a: 'x{b c}'}\n", "leat.yaml:1:14: '{b c}' is neither a slice variable, such as {subject}, "
	                                    "nor alternatives, such as {a,b}");
	refused("sources: {a: 'x{}'}\n",
	        "leat.yaml:1:14: '{}' is neither a slice variable, such as {subject}, nor alternatives, such as {a,b}");
	refused("sources: {a: x}\nsteps: {a: {run: x}}\n",
	        "leat.yaml:1:11: 'a' is a source and, in line 2, a step; rename one");
}

static void
names_are_free_shell_names(void **state)
{
	char text[300];

	(void)state;
	refused("steps: {a-b: {run: x}}\n", "leat.yaml:1:9: 'a-b' cannot be the name of a step, because names become "
	                                    "shell variables; use letters, digits and "
	                                    "_, and begin with a letter");
	refused("sources: {1a: x}\n", "leat.yaml:1:11: '1a' cannot be the name of a source, because names become shell "
	                              "variables; use letters, digits "
	                              "and _, and begin with a letter");
	refused("steps: {out: {run: x}}\n",
	        "leat.yaml:1:9: $out means something else in every command; give a step another name");
	refused("sources: {PATH: x}\n",
	        "leat.yaml:1:11: $PATH means something else in every command; give a source another name");
	refused("sources: {LC_ALL: x}\n",
	        "leat.yaml:1:11: $LC_ALL means something else in every command; give a source another name");
	step_refused("params: {cpus: 3}",
	             "4:14: $cpus means something else in every command; give a parameter another name");
	snprintf(text, sizeof(text), "steps: {a%0100d: {run: x}}\n", 0);
	refused(text, "leat.yaml:1:9: the name of a step has more than 100 characters");
}

/* ---- steps ---- */

static void
a_step_has_one_kind_and_known_keys(void **state)
{
	(void)state;
	refused("steps: {a: x}\n", "leat.yaml:1:9: step 'a' must have keys, such as 'run', in lines below it");
	refused("steps:\n  a:\n", "leat.yaml:2:3: step 'a' must have keys, such as 'run', in lines below it");
	step_refused("in: raw",
	             "3:3: step 'a' does nothing; give it one of these keys: asof, features, run, shards, sql");
	step_refused("inn: raw", "4:5: step 'a' has no key 'inn', did you mean 'in'?");
	step_refused(
		"command: x",
		"4:5: step 'a' has no key 'command'; it has asof, features, run, shards, sql, in, slices, params, env, "
		"code, suffix, "
		"seed, cpus, memory, timeout, retries, feed, resume, key, by, partitions, check, checks, format, "
		"compression, count, parts, images, root, resize, quality, rejects, columns, split, dedupe, at, take");
	step_refused("features: raw", "4:15: step 'a' needs features, such as 'columns: {amount: standardize}'");
	step_refused("features: raw\n    columns: {a: log1q}",
	             "5:18: there is no transform 'log1q', did you mean 'log1p'?");
	step_refused("features: raw\n    columns: {a: [log1p]}",
	             "5:18: feature 'a' of step 'a' must be a text, such as 'log1p | standardize'");
	step_refused("features: raw\n    columns: {a: log1p}\n    split: {by: [], train: 100%}",
	             "6:17: 'by' must be the name of a column, or a list of names");
	step_refused("features: raw\n    columns: {a: log1p}\n    split: {by: u, train: 70%}",
	             "6:12: the parts of the split are 70% together, not 100%");
	step_refused("features: raw\n    columns: {a: log1p}\n    split: {by: u, train: '70%, x 30%'}",
	             "6:20: part 'train' must be a percentage such as 80%, 'before' and a time, or 'rest'");
	step_refused("count: 3\n    run: x", "4:5: 'count' is a key of 'shards', and step 'a' has 'run'");
	step_refused("shards: [raw]", "4:13: 'shards' of step 'a' must be the name of a source or step");
	step_refused("shards: raw", "4:13: step 'a' needs a number of shards, such as 'count: 16'");
	step_refused("shards: raw\n    count: 2\n    format: csv",
	             "6:13: 'format' of step 'a' must be one of tfrecord|parquet|npy|tar, not 'csv'");
	step_refused("shards: raws\n    count: 2", "4:13: there is no source or step 'raws', did you mean 'raw'?");
	step_refused("run: [a, b]",
	             "4:10: 'run' of step 'a' must be one text; write several lines after |, or join them with &&");
	step_refused("run: {a: b}", "4:10: 'run' of step 'a' must be a text");
	step_refused("run: ' '", "4:5: 'run' of step 'a' must be a text");
	step_refused("run:", "4:5: 'run' of step 'a' must be a text");
	step_refused("in:", "4:8: 'in' of step 'a' has no value; remove it, or write one");
}

static void
a_value_has_the_type_and_range_of_its_key(void **state)
{
	static const char cpus[] = "4:11: 'cpus' of step 'a' must be a whole number between 1 and 4096";
	char expected[200];

	(void)state;
	step_refused("cpus: []", cpus);
	for (size_t i = 0; i < 5; i++) {
		static const char *const values[] = {"0", "4097", "1.5", "-1", "0x2"};
		char keys[100];

		snprintf(keys, sizeof(keys), "cpus: %s", values[i]);
		snprintf(expected, sizeof(expected), "%s, not '%s'", cpus, values[i]);
		step_refused(keys, expected);
	}
	step_refused("seed: 18446744073709551616", "4:11: 'seed' of step 'a' must be a whole number between 0 and "
	                                           "18446744073709551615, not '18446744073709551616'");
	step_refused("timeout: 90",
	             "4:14: 'timeout' of step 'a' must be a time with its unit, between 1s and 100d, such as 90s, "
	             "15m or 2h, not '90'");
	step_refused("timeout: 0.5s",
	             "4:14: 'timeout' of step 'a' must be a time with its unit, between 1s and 100d, such as "
	             "90s, 15m or 2h, not '0.5s'");
	step_refused("timeout: 1.h",
	             "4:14: 'timeout' of step 'a' must be a time with its unit, between 1s and 100d, such as "
	             "90s, 15m or 2h, not '1.h'");
	step_refused("timeout: 2hm",
	             "4:14: 'timeout' of step 'a' must be a time with its unit, between 1s and 100d, such as "
	             "90s, 15m or 2h, not '2hm'");
	step_refused("memory: 4kB",
	             "4:13: 'memory' of step 'a' must be a size of at least 1MiB, such as 4GiB, not '4kB'");
	step_refused("memory: lots",
	             "4:13: 'memory' of step 'a' must be a size of at least 1MiB, such as 4GiB, not 'lots'");
	step_refused("resume: yes", "4:13: 'resume' of step 'a' must be true or false, not 'yes'");
	step_refused("suffix: npy",
	             "4:13: 'suffix' of step 'a' must be a dot and letters or digits, such as .npy, not 'npy'");
	step_refused("suffix: ./x",
	             "4:13: 'suffix' of step 'a' must be a dot and letters or digits, such as .npy, not './x'");
	step_refused("suffix: ..",
	             "4:13: 'suffix' of step 'a' must be a dot and letters or digits, such as .npy, not '..'");
	step_refused("feed: [a]", "4:11: 'feed' of step 'a' must be a text");
}

static void
lists_and_maps_of_a_step_are_checked(void **state)
{
	(void)state;
	step_refused("in: {raw: x}", "4:9: 'in' of step 'a' must be the name of a source or step, or a list of them");
	step_refused("in: [raw, [b]]",
	             "4:15: 'in' of step 'a' must be the name of a source or step, or a list of them");
	step_refused("in: [raw, raw]", "4:15: step 'a' reads 'raw' twice");
	step_refused("params: [a]", "4:13: 'params' of step 'a' must be a map of names and texts");
	step_refused("params: {k: [1]}", "4:17: parameter 'k' must be one text; put quotes around it");
	step_refused("params: {k: }", "4:14: parameter 'k' has no value; write '' for an empty text");
	step_refused("env: [A, A]", "4:14: 'A' is here twice");
	step_refused("env: {A: [b]}", "4:14: environment variable 'A' must be one text");
	step_refused("env: [[A]]", "4:11: expected the name of an environment variable");
	step_refused("env: [OMP_NUM_THREADS]", "4:11: OMP_NUM_THREADS is set from 'cpus'; use that key");
	step_refused("env: [TMPDIR]", "4:11: TMPDIR is set for every command and cannot be changed");
	step_refused("env: [LEAT_STEP]", "4:11: LEAT_STEP is set for every command and cannot be changed");
	step_refused("code: /etc", "4:11: code is below the project's folder, and '/etc' is not; make it a source");
	step_refused("code: [a, x/../../b]",
	             "4:15: code is below the project's folder, and 'x/../../b' is not; make it a source");
	step_refused("code: {a: b}", "4:11: 'code' of step 'a' must be a glob, or a list of globs");
	step_refused("code: ['']", "4:12: 'code' of step 'a' must be a glob, or a list of globs");
	step_refused("slices: {d: {lines: x}}", "4:18: there is no folder to look for files in");
}

/* ---- the graph ---- */

static void
inputs_exist(void **state)
{
	(void)state;
	step_refused("{run: x, in: rwa}", "4:18: there is no source or step 'rwa', did you mean 'raw'?");
	step_refused("{run: x, in: [raw, zzz]}",
	             "4:24: there is no source or step 'zzz'; the source or steps here are raw, days, a, other");
	step_refused("{run: x, in: raw/x.npy}", "4:18: there is no source or step 'raw/x.npy'; the source or steps "
	                                        "here are raw, days, a, other; name a file "
	                                        "under 'sources:' first");
}

static void
variables_of_a_source_are_slice_variables(void **state)
{
	(void)state;
	step_refused("{run: x, in: days}",
	             "4:18: source 'days' needs {day}, but step 'a' has no such slice variable; add it to "
	             "'slices', or write * in line 1");
	step_refused("{run: x, in: days, slices: {dya: 1..2}}",
	             "4:18: source 'days' needs {day}, but step 'a' has no such slice variable, did you mean 'dya'?");
}

static void
cycles_are_named(void **state)
{
	(void)state;
	refused("steps: {a: {run: x, in: a}}\n", "leat.yaml:1:25: the steps go round in a circle: a reads a");
	refused("steps:\n  x: {run: x, in: a}\n  a: {run: x, in: b}\n  b: {run: x, in: [c]}\n  c: {run: x, in: [d, "
	        "a]}\n  d: {run: "
	        "x}\n",
	        "leat.yaml:5:23: the steps go round in a circle: a reads b, b reads c, c reads a");
}

static void
a_name_means_one_thing_in_a_command(void **state)
{
	(void)state;
	step_refused("{run: x, in: raw, params: {raw: 1}}",
	             "3:3: step 'a' has two things called $raw: an input and a parameter; rename one");
	step_refused("{run: x, slices: {k: 1..2}, params: {k: 1}}",
	             "3:3: step 'a' has two things called $k: a slice variable and a parameter; rename one");
	step_refused("{run: x, params: {K: 1}, env: [K]}",
	             "3:3: step 'a' has two things called $K: a parameter and an environment variable; rename one");
}

/* ---- commands ---- */

static void
a_command_that_uses_what_it_does_not_get_is_refused(void **state)
{
	(void)state;
	run_refused("cat $days > $out", "6:15: step 'a' uses $days, but does not read it; add 'in: days'");
	run_refused("cat \"${other}\" > $out", "6:17: step 'a' uses $other, but does not read it; add 'in: other'");
	run_refused("cat $rwa", "6:15: step 'a' gets no variable $rwa, did you mean $raw?");
	run_refused("cat $raw > $uot", "6:22: step 'a' gets no variable $uot, did you mean $out?");
	run_refused("echo ${#fold}", "6:18: step 'a' gets no variable $fold, did you mean $folds?");
	run_refused("echo $nothing",
	            "6:16: step 'a' gets no variable $nothing; declare it under 'params' or 'env', or write "
	            "${nothing:-} if it may be empty");
	run_refused("|\n      echo 'it' # don't\n      echo \"$(cat '$x' $zebra)\"",
	            "8:25: step 'a' gets no variable $zebra; declare it under 'params' or 'env', or write ${zebra:-} "
	            "if it may be "
	            "empty");
	run_refused("echo `cat $zebra`",
	            "6:21: step 'a' gets no variable $zebra; declare it under 'params' or 'env', or write "
	            "${zebra:-} if it may be empty");
	run_refused("echo ${raw:-$zebra}",
	            "6:23: step 'a' gets no variable $zebra; declare it under 'params' or 'env', or write "
	            "${zebra:-} if it may be empty");
	run_refused("|\n      cat <<EOF\n      it's $zebra\n      EOF",
	            "8:13: step 'a' gets no variable $zebra; declare it under 'params' or 'env', or write ${zebra:-} "
	            "if it may be "
	            "empty");
	run_refused("awk -v zebra=\"$zebra\" '{print $1}'", "6:25: step 'a' gets no variable $zebra; declare it under "
	                                                    "'params' or 'env', or write ${zebra:-} if it may be "
	                                                    "empty");
	run_refused("python train.py zebra=$zebra", "6:33: step 'a' gets no variable $zebra; declare it under 'params' "
	                                            "or 'env', or write ${zebra:-} if it may be "
	                                            "empty");
	run_refused("echo {folds}", "6:16: {folds} means nothing in a command; write \"$folds\"");
	step_refused("{run: x, feed: \"folder('$imgs')\"}",
	             "4:30: the feed of step 'a' gets no variable $imgs, only inputs, parameters, slice variables, "
	             "$seed, $cpus, $out and $checkpoint; make it a parameter");
	step_refused("{run: x, env: [DATA], feed: \"folder('$DATA')\"}",
	             "4:43: the feed of step 'a' gets no variable $DATA, only inputs, parameters, slice variables, "
	             "$seed, $cpus, $out and $checkpoint; make it a parameter");
	step_refused("{run: x, feed: \"folder('${HOME}/x')\"}",
	             "4:31: the feed of step 'a' gets no variable $HOME, only inputs, parameters, slice variables, "
	             "$seed, $cpus, $out and $checkpoint; make it a parameter");
}

static void
lists_have_a_limit(void **state)
{
	static const char *const keys[][2] = {
		{"in", "leat.yaml:4:9: 'in' of step 'a' has more than 1000 entries; slice a step, or use a pattern"},
		{"env", "leat.yaml:4:10: 'env' of step 'a' has more than 1000 entries"},
	};
	char text[20000];

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		size_t len = (size_t)snprintf(text, sizeof(text), "steps:\n  a:\n    run: x\n    %s: [", keys[k][0]);

		for (int i = 0; i <= 1000; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%si%d", i ? ", " : "", i);
		snprintf(text + len, sizeof(text) - len, "]\n");
		refused(text, keys[k][1]);
	}
}

static void
a_command_may_use_what_it_gets_or_sets(void **state)
{
	static const char *const commands[] = {
		"cat $raw ${raw} \"$raw\" ${raw%.npy} ${#raw} > $out",
		"echo $day $folds $TOKEN $seed $cpus $checkpoint $feed $LEAT_STEP",
		"echo $PATH $HOME $LC_ALL $TMPDIR $PWD $OMP_NUM_THREADS $IFS",
		"echo $$ $! $? $# $@ $* $- $0 $1 ${1} ${@} $",
		"echo '$none' \\$none \"\\$none\" \"'$raw'\"",
		"awk '{print $1, $NF, $none}' $raw",
		"echo ${none:-x} ${none-x} ${none:=x} ${none=x} ${none:+x} ${none+x} ${none:?x}",
		"x=1; echo $x",
		"x=$(wc -l < $raw) && echo ${x}",
		"x=\"a b\" y='c d' z=$(a=1; echo $a) w+=1 env; echo $x $y $z $w",
		"if true; then x=1; else { y=2; }; fi; (z=3; echo $z); case $day in 1) q=4;; esac; echo $x $y $q",
		"echo a && x=1 || y=1; ! z=1\n      echo $x $y $z",
		"echo $((n=3)); echo $n",
		"export x=1; echo $x",
		"for f in $raw/*; do echo \"$f\"; done",
		"while read -r line; do echo $line; done < $raw",
		"cat $raw | while read a b; do echo $a $b; done",
		"echo $((folds + $folds * 2)) $(( (1 + 2) ))",
		". ./vars.sh; echo $anything",
		"eval \"$(cat $raw)\"; echo $anything",
		"echo ok # it's $nothing",
		"cat <<'EOF' > $out\n      $none '\n      EOF\n      echo $raw",
		"cat <<-EOF\n      it's $raw \\$none\n      EOF",
		"cat <<< $raw",
		"python -c \"print('{day}')\"; echo '{day}' {none} {a,b} ${day}",
		"echo \"${raw:-\"$day\"}\" \"`echo \"$day\"`\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		run_accepted(commands[i]);
}

static void
a_command_that_no_shell_could_be_given_is_refused(void **state)
{
	enum { LARGE = 110 * 1024 };
	char *text = malloc(LARGE);
	struct leat_err err;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', LARGE);
	memcpy(text, "steps: {a: {run: ", 17);
	memcpy(text + LARGE - 2, "}}", 2);
	parse_refused(text, LARGE, &err);
	assert_non_null(strstr(err.text, "the command of step 'a' has more than 100 KiB; put it into a script"));
	free(text);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_shows_its_line_with_a_caret),
		cmocka_unit_test(columns_count_characters_and_lines_end_as_they_like),
		cmocka_unit_test(traps_of_yaml_are_told_with_their_remedy),
		cmocka_unit_test(what_a_file_of_steps_has_no_use_for_is_refused),
		cmocka_unit_test(bytes_that_are_not_text_are_refused),
		cmocka_unit_test(a_hostile_file_meets_limits),
		cmocka_unit_test(a_file_without_steps_is_refused),
		cmocka_unit_test(a_source_is_a_path_or_pattern),
		cmocka_unit_test(names_are_free_shell_names),
		cmocka_unit_test(a_step_has_one_kind_and_known_keys),
		cmocka_unit_test(a_value_has_the_type_and_range_of_its_key),
		cmocka_unit_test(lists_and_maps_of_a_step_are_checked),
		cmocka_unit_test(inputs_exist),
		cmocka_unit_test(variables_of_a_source_are_slice_variables),
		cmocka_unit_test(cycles_are_named),
		cmocka_unit_test(a_name_means_one_thing_in_a_command),
		cmocka_unit_test(a_command_that_uses_what_it_does_not_get_is_refused),
		cmocka_unit_test(lists_have_a_limit),
		cmocka_unit_test(a_command_may_use_what_it_gets_or_sets),
		cmocka_unit_test(a_command_that_no_shell_could_be_given_is_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
