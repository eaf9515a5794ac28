/* test_proc.c - parsers of /proc and cgroups, with names and lengths that are out to break them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/proc.h"

#define STAT(name) "42 (" name ") S 1 42 42 0 -1 4194560 100 0 3 0 250 50 7 8 20 0 9 0 123456 1000000 300 184\n"
#define NET_HEAD                                                                                                       \
	"Inter-|   Receive                            |  Transmit\n"                                                   \
	" face |bytes    packets errs drop fifo frame |bytes packets\n"

/* Parses a copy that ends where its memory does, so that a sanitizer sees a read past the end. */
static bool
stat_of(const char *text, size_t len, struct leat_proc_stat *stat)
{
	char *copy = malloc(len ? len : 1);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, text, len);
	ok = leat_proc_parse_stat(copy, len, stat);
	free(copy);
	return ok;
}

static void
a_thread_may_have_any_name(void **state)
{
	static const struct {
		const char *text, *name;
	} cases[] = {
		{STAT("leat-work-0"), "leat-work-0"},
		{STAT("a b c"), "a b c"},
		{STAT(") S 1 1 (x"), ") S 1 1 (x"},
		{STAT("((("), "((("},
		{STAT(")))"), ")))"},
		{STAT(""), ""},
		{STAT("tab\there\n"), "tab?here?"},
		{STAT("\xff\x01\x7f"), "???"},
		{STAT("a name of more than thirty-one characters"), "a name of more than thirty-one "},
	};
	struct leat_proc_stat stat;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(stat_of(cases[i].text, strlen(cases[i].text), &stat));
		assert_string_equal(stat.name, cases[i].name);
		assert_int_equal(stat.ticks, 300);
		assert_int_equal(stat.start, 123456);
	}
}

static void
a_stat_that_is_cut_off_is_refused_or_the_same(void **state)
{
	const char *text = STAT("x)(y");
	struct leat_proc_stat stat;
	size_t accepted = 0;

	(void)state;
	for (size_t len = 0; len <= strlen(text); len++) {
		if (!stat_of(text, len, &stat))
			continue;
		accepted++;
		assert_string_equal(stat.name, "x)(y");
		assert_int_equal(stat.ticks, 300);
	}
	assert_in_range(accepted, 1, 40);
	assert_false(stat_of("1 (a) S 1 1 1 1 1 1 1 1 1 1 99999999999999999999 1 1 1 1 1 1 1 1 1", 60, &stat));
	assert_false(stat_of("1 (a) S 1 1 1 1 1 1 1 1 1 1 18446744073709551615 1 1 1 1 1 1 1 1 1", 66, &stat));
	assert_false(stat_of("no parentheses", 14, &stat));
	assert_false(stat_of(")(", 2, &stat));
}

static void
statm_gives_resident_pages(void **state)
{
	uint64_t pages = 0;

	(void)state;
	assert_true(leat_proc_parse_statm("765 443 414 5 0 123 0\n", 22, &pages));
	assert_int_equal(pages, 443);
	assert_false(leat_proc_parse_statm("765\n443", 7, &pages));
	assert_false(leat_proc_parse_statm("765 ", 4, &pages));
	assert_false(leat_proc_parse_statm("", 0, &pages));
}

static bool
net_of(const char *text, struct leat_proc_net *net)
{
	return leat_proc_parse_net(text, strlen(text), net);
}

static void
loopback_and_bridges_do_not_count_as_network(void **state)
{
	struct leat_proc_net net;

	(void)state;
	assert_true(net_of(NET_HEAD "    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n"
	                            "  eth0: 50 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
	                            "eth1:300 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
	                            "docker0: 90000 1 0 0 0 0 0 0 90000 1 0 0 0 0 0 0\n"
	                            "veth12ab: 90000 1 0 0 0 0 0 0 90000 1 0 0 0 0 0 0\n",
	                   &net));
	assert_int_equal(net.loopback, 1000);
	assert_int_equal(net.bytes, 357);
	assert_false(net_of(NET_HEAD, &net));
	assert_false(net_of("", &net));
	assert_false(net_of("eth0: 1 2 3\n", &net));
	assert_false(net_of("eth0: 50 1 0 0 0 0 0 0 7", &net)); /* more digits may be missing */
	assert_false(net_of("\n\n:\n::::\n", &net));
}

static void
numbers_are_found_by_the_whole_key(void **state)
{
	const char *io = "rchar: 1\nread_bytes: 20\ncancelled_write_bytes: 3\nwrite_bytes: 40\n";
	const char *cpu = "nr_periods 7\nnr_throttled 5\nthrottled_usec 900\n";
	uint64_t value = 0;

	(void)state;
	assert_true(leat_proc_find(io, strlen(io), "read_bytes", &value));
	assert_int_equal(value, 20);
	assert_true(leat_proc_find(io, strlen(io), "write_bytes", &value));
	assert_int_equal(value, 40);
	assert_true(leat_proc_find(cpu, strlen(cpu), "nr_throttled", &value));
	assert_int_equal(value, 5);
	assert_false(leat_proc_find(cpu, strlen(cpu), "nr", &value));
	assert_false(leat_proc_find(cpu, strlen(cpu), "throttled", &value));
	assert_false(leat_proc_find(cpu, 10, "nr_periods", &value)); /* the key ends the text */
	assert_false(leat_proc_find("x: -1\n", 6, "x", &value));
	assert_false(leat_proc_find("x: 18446744073709551616\n", 24, "x", &value));
}

static void
ids_come_one_after_the_other(void **state)
{
	const char *text = "12 345  6", *end = text + 9;

	(void)state;
	assert_int_equal(leat_proc_next_id(&text, end), 12);
	assert_int_equal(leat_proc_next_id(&text, end), 345);
	assert_int_equal(leat_proc_next_id(&text, end), 6);
	assert_int_equal(leat_proc_next_id(&text, end), 0);
	text = "99999999999";
	assert_int_equal(leat_proc_next_id(&text, text + 11), 0);
	text = "-3";
	assert_int_equal(leat_proc_next_id(&text, text + 2), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_may_have_any_name),
		cmocka_unit_test(a_stat_that_is_cut_off_is_refused_or_the_same),
		cmocka_unit_test(statm_gives_resident_pages),
		cmocka_unit_test(loopback_and_bridges_do_not_count_as_network),
		cmocka_unit_test(numbers_are_found_by_the_whole_key),
		cmocka_unit_test(ids_come_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
