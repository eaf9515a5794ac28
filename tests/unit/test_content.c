/* test_content.c - contents as text, and trees that nobody can fool us with */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/mem.h"
#include "cas/content.h"

#define HEX "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

static struct leat_mem mem;

static void
a_content_is_what_its_text_says(void **state)
{
	static const char *const texts[] = {"file 0 " HEX, "executable 88 " HEX, "folder 18446744073709551615 " HEX};
	char text[LEAT_CONTENT_TEXT];
	struct leat_content content;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(leat_content_parse(texts[i], &content, NULL), LEAT_OK);
		assert_string_equal(leat_content_text(&content, text), texts[i]);
	}
}

static void
other_texts_are_no_contents(void **state)
{
	static const char *const texts[] = {"",
	                                    "file",
	                                    "file 1",
	                                    "none 1 " HEX,
	                                    "fil 1 " HEX,
	                                    "file 01 " HEX,
	                                    "file -1 " HEX,
	                                    "file 18446744073709551616 " HEX,
	                                    "file 1 " HEX "0",
	                                    "file 1 9F86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
	                                    "file 1  " HEX};
	struct leat_content content;
	struct leat_err err;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		leat_err_clear(&err);
		assert_int_equal(leat_content_parse(texts[i], &content, &err), LEAT_DATA);
	}
}

struct listing {
	char text[2000];
};

static enum leat_status
list(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct listing *listing = arg;
	size_t len = strlen(listing->text);

	(void)err;
	snprintf(listing->text + len, sizeof listing->text - len, "%d %llu %s %s\n", content->kind,
	         (unsigned long long)content->bytes, name, target ? target : "");
	return LEAT_OK;
}

static void
a_tree_reads_as_it_was_written(void **state)
{
	struct leat_content content = {.bytes = 7, .kind = LEAT_CONTENT_FILE};
	struct listing listing = {""};
	const struct leat_tree_reader reader = {list, &listing};
	struct leat_str tree;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&tree, &mem, SIZE_MAX);
	assert_int_equal(leat_tree_add(&tree, " a%\n\x7f", &content, NULL), LEAT_OK);
	content.kind = LEAT_CONTENT_FOLDER;
	assert_int_equal(leat_tree_add(&tree, "B", &content, NULL), LEAT_OK);
	assert_int_equal(leat_tree_add_link(&tree, "a", "../b c", NULL), LEAT_OK);
	content.kind = LEAT_CONTENT_EXECUTABLE;
	assert_int_equal(leat_tree_add(&tree, "\xff", &content, NULL), LEAT_OK);
	assert_non_null(strstr(tree.text, "%20a%25%0A%7F\n"));
	assert_int_equal(leat_tree_read(tree.text, tree.len, &reader, NULL), LEAT_OK);
	assert_string_equal(listing.text, "1 7  a%\n\x7f \n3 7 B \n0 0 a ../b c\n2 7 \xff \n");
	leat_str_free(&tree);
	assert_int_equal(mem.used, 0);
}

static void
names_out_of_order_or_outside_are_refused_when_written(void **state)
{
	static const char *const names[] = {"", ".", "..", "a/b", "/", "b", "ab"};
	struct leat_content content = {.kind = LEAT_CONTENT_FILE};
	struct leat_str tree;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&tree, &mem, SIZE_MAX);
	assert_int_equal(leat_tree_add(&tree, "b", &content, NULL), LEAT_OK);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(leat_tree_add(&tree, names[i], &content, NULL), LEAT_INVALID);
	content.kind = LEAT_CONTENT_NONE;
	assert_int_equal(leat_tree_add(&tree, "c", &content, NULL), LEAT_INVALID);
	assert_int_equal(leat_tree_add_link(&tree, "c", "/etc/passwd", NULL), LEAT_INVALID);
	assert_int_equal(leat_tree_add_link(&tree, "c", "a/../../b", NULL), LEAT_INVALID);
	leat_str_free(&tree);
}

static void
hostile_trees_are_refused(void **state)
{
	static const char *const trees[] = {
		"f " HEX " 1 a",                      /* no end of line */
		"f " HEX " 1 a/b\n",                  /* a path */
		"f " HEX " 1 ..\n",                   /* the folder above */
		"f " HEX " 1 \n",                     /* no name */
		"f " HEX " 1 %2e%2e\n",               /* escaped although it need not be */
		"f " HEX " 1 a%0a\n",                 /* lower case */
		"f " HEX " 1 a%00\n",                 /* NUL */
		"f " HEX " 01 a\n",                   /* leading zero */
		"f " HEX " 99999999999999999999 a\n", /* too large */
		"f " HEX " 1 b\nf " HEX " 1 a\n",     /* order */
		"f " HEX " 1 a\nf " HEX " 1 a\n",     /* twice */
		"f " HEX " a\n",                      /* no size */
		"f 9f86 1 a\n",                       /* short digest */
		"l /etc a\n",
		"l b/../../.. a\n",
		"l  a\n", /* links */
		"l b\n",
		"q " HEX " 1 a\n",
		"\n",
		" ", /* no entries */
		"f " HEX " 1  a\n",
	};
	struct listing listing = {""};
	const struct leat_tree_reader reader = {list, &listing};

	(void)state;
	for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
		if (leat_tree_read(trees[i], strlen(trees[i]), &reader, NULL) != LEAT_DATA)
			fail_msg("accepted: %s", trees[i]);
	assert_int_equal(leat_tree_read("", 0, &reader, NULL), LEAT_OK);
}

static void
links_stay_inside(void **state)
{
	(void)state;
	assert_true(leat_link_stays("a", 0));
	assert_true(leat_link_stays("./a//b/.", 0));
	assert_true(leat_link_stays("../../a", 2));
	assert_true(leat_link_stays("..", 1));
	assert_false(leat_link_stays("..", 0));
	assert_false(leat_link_stays("../../a", 1));
	assert_false(leat_link_stays("/a", 9));
	assert_false(leat_link_stays("", 9));
	assert_false(leat_link_stays("a/..", 9)); /* a may be a link */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_content_is_what_its_text_says),
		cmocka_unit_test(other_texts_are_no_contents),
		cmocka_unit_test(a_tree_reads_as_it_was_written),
		cmocka_unit_test(names_out_of_order_or_outside_are_refused_when_written),
		cmocka_unit_test(hostile_trees_are_refused),
		cmocka_unit_test(links_stay_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
