/* test_sources.c - patterns as a shell has them, and the files that each slice of a step gets */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <limits.h>

#include "base/rng.h"
#include "step/glob.h"
#include "step/listings.h"
#include "step/sources.h"
#include "support/temp.h"

static struct leat_mem mem;
static struct leat_project *project;
static struct temp temp;

static int
setup(void **state)
{
	static const char *const folders[] = {"raw", "raw/a", "raw/a/b", "raw/.hidden", "out", "raw/set.npy"};
	static const char *const files[] = {"raw/s-1.npy", "raw/s-2.npy",        "raw/a/s-3.npy", "raw/a/b/s-4.npy",
	                                    "raw/x.csv",   "raw/.hidden/s5.npy", "raw/.s6.npy",   "out/s-7.npy",
	                                    "raw/[1].txt", "raw/{b,c}.txt",      "top.py",        "raw/set.npy/0"};

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		assert_int_equal(mkdir(temp_path(&temp, folders[i]), 0777), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		temp_write(&temp, files[i], "", 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_project_close(project);
	project = NULL;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

/* A path, and whether a pattern matches it. */
struct match {
	const char *path;
	bool matches;
};

static enum leat_status
match_one(void *arg, const char *pattern, struct leat_err *err)
{
	struct match *match = arg;
	char text[100], path[100], *rest = NULL;
	struct leat_glob glob;
	uint64_t state;

	(void)err;
	snprintf(text, sizeof(text), "%s", pattern);
	snprintf(path, sizeof(path), "%s", match->path);
	assert_true(leat_glob_split(&glob, text));
	state = leat_glob_begin(&glob);
	for (char *name = strtok_r(path, "/", &rest); name; name = strtok_r(NULL, "/", &rest))
		state = leat_glob_next(&glob, state, name);
	match->matches |= (state & leat_glob_matched(&glob)) != 0;
	return LEAT_OK;
}

static bool
is_match(const char *pattern, const char *path)
{
	struct match match = {path, false};

	assert_int_equal(leat_glob_expand(pattern, &mem, &(struct leat_glob_reader){match_one, &match}, NULL), LEAT_OK);
	return match.matches;
}

static void
a_path_matches_a_pattern_name_by_name(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} cases[] = {
		{"a.py", "a.py", true},
		{"*.py", "a.py", true},
		{"*.py", "src/a.py", false},
		{"*.py", ".a.py", false},
		{".*.py", ".a.py", true},
		{"src/*.py", "src/a.py", true},
		{"src/*", "src/a/b", false},
		{"**/*.py", "a.py", true},
		{"**/*.py", "x/y/a.py", true},
		{"**/*.py", "x/.y/a.py", false},
		{"**/*.py", "x/y/.a.py", false},
		{"**/*.py", "x/y/a.c", false},
		{"src/**", "src/a/b", true},
		{"src/**", "srcs/a", false},
		{"src/**/x/*.c", "src/x/a.c", true},
		{"src/**/x/*.c", "src/x/x/a.c", true},
		{"src/**/x/*.c", "src/x/y/a.c", false},
		{"**/a/**/b", "a/a/x/a/b", true},
		{"**/a/**/b", "a/a/x/a/c", false},
		{"**/**/a", "a", true},
		{"*.{py,sh,sql}", "a.sh", true},
		{"*.{py,sh,sql}", "a.c", false},
		{"{a,b}/{c,d}", "b/c", true},
		{"{a,b}/{c,d}", "b/b", false},
		{"a{,.b}", "a", true},
		{"a{,.b}", "a.b", true},
		{"[ab].c", "b.c", true},
		{"[!ab].c", "b.c", false},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"\\{a,b\\}", "{a,b}", true},
		{"{a\\,b,c}", "a,b", true},
		{"{a,b{c,d}}", "bd", true},
		{"{a,b{c,d}}", "d", false},
		{"{a}{b,c}", "{a}c", true},
		{"{a{b,c}", "{ac", true},
		{"{a,b", "{a,b", true},
		{"./a", "a", true},
		{"?", "ab", false},
		{"", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (is_match(cases[i].pattern, cases[i].path) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].path);
}

static void
a_pattern_that_stands_for_too_many_matches_nothing(void **state)
{
	struct leat_paths paths = {0};
	char braces[100], longest[PATH_MAX + 1];
	struct leat_err err;

	(void)state;
	memset(braces, '{', 65);
	braces[65] = '\0';
	memset(longest, 'a', PATH_MAX);
	longest[PATH_MAX] = '\0';
	assert_int_equal(leat_glob_paths(temp.folder, braces, NULL, &mem, &paths, NULL), LEAT_INVALID);
	assert_int_equal(leat_glob_paths(temp.folder, longest, NULL, &mem, &paths, NULL), LEAT_INVALID);
	leat_err_clear(&err);
	assert_int_equal(
		leat_glob_paths(temp.folder, "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", NULL, &mem, &paths, &err),
		LEAT_INVALID);
	assert_string_equal(err.text,
	                    "the pattern '{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}' has too many alternatives");
	leat_paths_free(&paths, &mem);
}

/* Paths that match, joined. */
static void
finds_in(const char *pattern, struct leat_listings *listings, const char *expected)
{
	struct leat_paths paths = {0};
	char joined[1000] = "";
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_glob_paths(temp.folder, pattern, listings, &mem, &paths, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_paths_sort(&paths, &mem);
	for (size_t i = 0; i < paths.count; i++)
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? " " : "", paths.path[i]);
	assert_string_equal(joined, expected);
	leat_paths_free(&paths, &mem);
}

/* Whether folders are read now, the first time, or were read before. */
static void
finds(const char *pattern, const char *expected)
{
	struct leat_listings listings;

	leat_listings_init(&listings, &mem);
	finds_in(pattern, NULL, expected);
	finds_in(pattern, &listings, expected);
	finds_in(pattern, &listings, expected);
	leat_listings_free(&listings);
}

static void
a_random_text(struct leat_rng *rng, const char *letters, char *text, size_t most)
{
	size_t len = 1 + leat_rng_below(rng, most);

	for (size_t i = 0; i < len; i++)
		text[i] = letters[leat_rng_below(rng, strlen(letters))];
	text[len] = '\0';
}

/* Compared with fnmatch on each name. */
static void
no_name_that_matches_is_passed_over(void **state)
{
	struct leat_listing listing;
	struct leat_rng rng;
	size_t matches = 0, candidates = 0;
	char text[32];

	(void)state;
	leat_rng_init(&rng, 1, 0, 0, 0);
	assert_int_equal(mkdir(temp_path(&temp, "names"), 0777), 0);
	for (int i = 0; i < 200; i++) {
		char path[64];

		a_random_text(&rng, "ab-[]*\\\xff", text, 6);
		snprintf(path, sizeof(path), "names/%s", text);
		temp_write(&temp, path, "", 0);
	}
	assert_int_equal(leat_listing_read(&listing, &mem, temp_path(&temp, "names"), NULL), LEAT_OK);
	for (int i = 0; i < 5000; i++) {
		struct leat_candidates c;

		a_random_text(&rng, "ab-[]*?\\", text, 8);
		c = leat_listing_find(&listing, text);
		candidates += c.count;
		for (size_t n = 0; n < listing.count; n++) {
			size_t at = 0;

			if (fnmatch(text, listing.name[n].name, FNM_PERIOD) != 0)
				continue;
			matches++;
			while (at < c.count && (c.by_end ? listing.by_end[c.first + at] : c.first + at) != n)
				at++;
			if (at == c.count)
				fail_msg("'%s' is not a candidate for '%s'", listing.name[n].name, text);
		}
	}
	assert_true(matches > 1000);
	assert_true(candidates < 5000 * listing.count / 2); /* most names are not compared */
	leat_listing_free(&listing);
}

static void
files_are_found_by_pattern_and_sorted(void **state)
{
	(void)state;
	finds("raw/s-*.npy", "raw/s-1.npy raw/s-2.npy");
	finds("raw/*.npy", "raw/s-1.npy raw/s-2.npy raw/set.npy");
	finds("raw/**/*.npy", "raw/a/b/s-4.npy raw/a/s-3.npy raw/s-1.npy raw/s-2.npy");
	finds("raw/a/**", "raw/a/b/s-4.npy raw/a/s-3.npy");
	finds("*/s-1.npy", "raw/s-1.npy");
	finds("raw/{x.csv,s-*}", "raw/s-1.npy raw/s-2.npy raw/x.csv");
	finds("raw/{s-1*,s-*}", "raw/s-1.npy raw/s-2.npy");
	finds("raw/?/s-?.npy", "raw/a/s-3.npy");
	finds("none/*", "");
	finds("top.py/*", "");
}

static void
results_and_hidden_files_are_skipped(void **state)
{
	(void)state;
	finds("**/s-7.npy", "");
	finds("*/s-7.npy", "");
	finds("out/s-*.npy", "out/s-7.npy"); /* named */
	finds("raw/*/s5.npy", "");
	finds("raw/.h*/s5.npy", "raw/.hidden/s5.npy");
}

static void
a_loop_of_links_ends(void **state)
{
	char link[600];

	(void)state;
	snprintf(link, sizeof(link), "%s/raw/a/b/up", temp.folder);
	assert_int_equal(symlink("../..", link), 0);
	finds("raw/**/s-1.npy", "raw/s-1.npy");
	finds("raw/a/b/*/s-1.npy", "raw/a/b/up/s-1.npy");
}

/* ---- sources ---- */

static void
open_project(const char *pattern)
{
	struct leat_err err;
	char text[1000];

	leat_project_close(project);
	leat_err_clear(&err);
	snprintf(text, sizeof(text),
	         "sources:\n  s: '%s'\nsteps: {a: {run: x, in: s, slices: {n: ['1', '2', '[1]', '{b,c}', '9'], k: "
	         "[raw]}}}\n",
	         pattern);
	if (leat_project_parse(&project, &mem, temp.folder, text, strlen(text), &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static void
gets(size_t slice, const char *expected)
{
	struct leat_paths paths;
	char joined[1000] = "";
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_source_paths(project, &project->source[0], &project->step[0].slices, slice, NULL, &paths, &err) !=
	    LEAT_OK)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < paths.count; i++)
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? " " : "",
		         paths.path[i] + paths.fixed);
	assert_string_equal(joined, expected);
	leat_paths_free(&paths, &mem);
}

static void
misses(size_t slice, const char *expected)
{
	struct leat_paths paths;
	struct leat_err err;

	leat_err_clear(&err);
	assert_int_equal(
		leat_source_paths(project, &project->source[0], &project->step[0].slices, slice, NULL, &paths, &err),
		LEAT_DATA);
	assert_non_null(strstr(err.text, expected));
	assert_int_equal(paths.count, 0);
}

static void
a_slice_gets_its_file(void **state)
{
	(void)state;
	open_project("raw/s-{n}.npy");
	gets(0, "raw/s-1.npy");
	gets(1, "raw/s-2.npy");
	misses(4, "cannot find 'raw/s-9.npy': No such file or directory");
	misses(4, "source 's' (");
	misses(4, "/leat.yaml:2)");
	open_project("{k}/{n}.txt");
	gets(2, "raw/[1].txt");
	open_project("raw");
	gets(0, "raw");
}

static void
values_are_no_patterns(void **state)
{
	(void)state;
	open_project("{k}/{n}.t*");
	gets(2, "[1].txt");
	gets(3, "{b,c}.txt");
	misses(0, "no file matches 'raw/1.t*'");
}

static void
alternatives_may_be_empty(void **state)
{
	(void)state;
	open_project("raw/s-1.npy{.gz,}");
	gets(0, "s-1.npy");
	open_project("raw/s-{n}{,.gz}.npy");
	gets(1, "s-2.npy");
	open_project("raw/{x,}.csv");
	gets(0, "x.csv");
}

static void
several_files_are_named_below_the_fixed_part(void **state)
{
	struct leat_paths paths;

	(void)state;
	open_project("raw/**/s-*.npy");
	gets(0, "a/b/s-4.npy a/s-3.npy s-1.npy s-2.npy");
	assert_int_equal(
		leat_source_paths(project, &project->source[0], &project->step[0].slices, 0, NULL, &paths, NULL),
		LEAT_OK);
	assert_true(paths.is_pattern);
	assert_int_equal(paths.fixed, 4);
	leat_paths_free(&paths, &mem);
	open_project("raw/none-*");
	misses(0, "no file matches 'raw/none-*'");
}

static void
absolute_patterns_give_absolute_paths(void **state)
{
	char pattern[600], expected[600];

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/raw/s-1*", temp.folder);
	open_project(pattern);
	gets(0, "s-1.npy");
	snprintf(pattern, sizeof(pattern), "%s/raw/s-{n}.npy", temp.folder);
	snprintf(expected, sizeof(expected), "%s/raw/s-1.npy", temp.folder);
	open_project(pattern);
	gets(0, expected);
}

static void
every_allocation_may_fail(void **state)
{
	static const char *const patterns[] = {"raw/**/*.npy", "raw/s-{n}.npy"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		enum leat_status status = LEAT_NOMEM;
		size_t used;
		long n = 0;

		open_project(patterns[i]);
		used = mem.used;
		for (; status != LEAT_OK; n++) {
			struct leat_paths paths;
			struct leat_err err;

			leat_err_clear(&err);
			atomic_store(&mem.fail_after, n);
			status = leat_source_paths(project, &project->source[0], &project->step[0].slices, 0, NULL,
			                           &paths, &err);
			atomic_store(&mem.fail_after, -1);
			if (status == LEAT_OK)
				leat_paths_free(&paths, &mem);
			else
				assert_int_equal(status, LEAT_NOMEM);
			assert_int_equal(mem.used, used);
			assert_true(n < 1000);
		}
		assert_true(n > 2);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_path_matches_a_pattern_name_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pattern_that_stands_for_too_many_matches_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(files_are_found_by_pattern_and_sorted, setup, teardown),
		cmocka_unit_test_setup_teardown(no_name_that_matches_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(results_and_hidden_files_are_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(a_loop_of_links_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slice_gets_its_file, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_no_patterns, setup, teardown),
		cmocka_unit_test_setup_teardown(alternatives_may_be_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(several_files_are_named_below_the_fixed_part, setup, teardown),
		cmocka_unit_test_setup_teardown(absolute_patterns_give_absolute_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
