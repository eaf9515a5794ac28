/* test_addresses.c - which address of a host gets connections and requests, and lists of addresses */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "store/lookup.h"

static const uint64_t ms = 1000000, second = 1000000000;
static const leat_address_text four[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3", "::1"};

static struct leat_addresses set;
static uint64_t now;

static int
start(void **state)
{
	(void)state;
	leat_addresses_init(&set);
	leat_addresses_set(&set, four, 4);
	now = 1000 * second;
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	leat_addresses_free(&set);
	return 0;
}

static struct leat_address *
address(int i)
{
	return &set.address[i];
}

/* All but one work, and have a connection each. */
static void
connect_all_but(int but)
{
	for (int i = 0; i < 4; i++)
		if (i != but)
			assert_ptr_equal(leat_addresses_find(&set, four[i]), address(i));
}

static void
answer(struct leat_address *at, uint64_t ns, int times)
{
	for (int i = 0; i < times; i++) {
		leat_addresses_begin(&set, at, now);
		leat_addresses_end(&set, at, LEAT_ADDRESS_ANSWERED, ns, 100000, now);
	}
}

static void
connections_are_spread(void **state)
{
	(void)state;
	connect_all_but(-1);
	for (int i = 0; i < 36; i++)
		leat_addresses_connected(&set, leat_addresses_choose(&set, false, now), now);
	for (int i = 0; i < 4; i++)
		assert_int_equal(address(i)->links, 10);
}

/* Two attempts at a time, and none if it were the only connection. */
static void
an_address_that_is_not_known_to_work_gets_few_attempts(void **state)
{
	(void)state;
	connect_all_but(3);
	for (int i = 0; i < 40; i++)
		leat_addresses_connected(&set, leat_addresses_choose(&set, true, now), now);
	assert_int_equal(address(3)->attempts, 0);
	for (int i = 0; i < 40; i++) {
		struct leat_address *at = leat_addresses_choose(&set, false, now);

		if (at != address(3))
			leat_addresses_connected(&set, at, now);
	}
	assert_int_equal(address(3)->attempts, 2);
	/* They take long. */
	now += 600 * ms;
	leat_addresses_closed(&set, address(3), true);
	for (int i = 0; i < 40; i++)
		assert_ptr_not_equal(leat_addresses_choose(&set, false, now), address(3));
}

static void
a_dead_address_is_left_alone_for_longer_each_time(void **state)
{
	unsigned attempts = 0;

	(void)state;
	connect_all_but(2);
	for (uint64_t end = now + 600 * second; now < end; now += 50 * ms) {
		struct leat_address *at = leat_addresses_choose(&set, false, now);

		if (at == address(2)) {
			attempts++;
			assert_true(leat_addresses_failed(&set, at, now));
		}
		leat_addresses_closed(&set, at, true);
	}
	assert_in_range(attempts, 6, 20);
	/* It works again. */
	now += 120 * second;
	for (int i = 0; i < 20; i++)
		leat_addresses_connected(&set, leat_addresses_choose(&set, false, now), now);
	assert_in_range(address(2)->links, 3, 8);
}

static void
when_none_works_there_is_no_choice(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct leat_address *at = leat_addresses_choose(&set, false, now);

		leat_addresses_failed(&set, at, now);
		leat_addresses_closed(&set, at, true);
	}
	assert_null(leat_addresses_choose(&set, false, now));
}

static void
an_untried_address_is_better_than_one_that_lost_a_request(void **state)
{
	(void)state;
	assert_ptr_equal(leat_addresses_find(&set, four[0]), address(0));
	leat_addresses_begin(&set, address(0), now);
	leat_addresses_end(&set, address(0), LEAT_ADDRESS_LOST, second, 1000, now);
	assert_ptr_not_equal(leat_addresses_choose(&set, true, now), address(0));
}

static void
a_slow_address_gets_little(void **state)
{
	unsigned slow = 0, taken = 0;

	(void)state;
	connect_all_but(-1);
	for (int i = 0; i < 4; i++)
		answer(address(i), i == 1 ? 100 * ms : 10 * ms, 20);
	for (int i = 0; i < 300; i++) {
		struct leat_address *at = address(i % 4);

		if (!leat_addresses_may_take(&set, at, now))
			continue;
		leat_addresses_begin(&set, at, now);
		taken++;
		slow += at == address(1);
	}
	assert_in_range(taken, 225, 230);
	assert_in_range(slow, 0, 3);
	for (int i = 0; i < 40; i++)
		leat_addresses_connected(&set, leat_addresses_choose(&set, false, now), now);
	assert_in_range(address(1)->links, 1, 2);
}

static void
one_slow_answer_does_not_make_an_address_slow(void **state)
{
	(void)state;
	connect_all_but(-1);
	for (int i = 0; i < 4; i++)
		answer(address(i), 10 * ms, 20);
	answer(address(1), 5 * second, 1);
	leat_addresses_begin(&set, address(1), now);
	assert_true(leat_addresses_may_take(&set, address(1), now));
	answer(address(1), 5 * second, 20);
	assert_false(leat_addresses_may_take(&set, address(1), now));
}

static void
a_slow_address_is_tried_now_and_then(void **state)
{
	(void)state;
	connect_all_but(-1);
	for (int i = 0; i < 4; i++)
		answer(address(i), i == 1 ? 100 * ms : 10 * ms, 20);
	assert_false(leat_addresses_may_take(&set, address(1), now));
	now += 1100 * ms;
	assert_true(leat_addresses_may_take(&set, address(1), now));
	answer(address(1), 50 * ms, 1);
	now += 1100 * ms;
	assert_true(leat_addresses_may_take(&set, address(1), now));
	answer(address(1), 50 * ms, 1);
	now += 1100 * ms;
	assert_false(leat_addresses_may_take(&set, address(1), now)); /* two seconds this time */
	/* Without a connection, nothing would be known for ever. */
	assert_true(leat_addresses_is_last(&set, address(1)));
	leat_addresses_closed(&set, address(1), false);
	assert_ptr_not_equal(leat_addresses_choose(&set, false, now), address(1));
	now += 11 * second;
	assert_ptr_equal(leat_addresses_choose(&set, false, now), address(1));
	leat_addresses_connected(&set, address(1), now);
	for (int i = 0; i < 60; i++, now += 1100 * ms)
		answer(address(1), 10 * ms, 1);
	leat_addresses_begin(&set, address(1), now);
	assert_true(leat_addresses_may_take(&set, address(1), now));
}

static void
an_address_that_loses_requests_is_left_alone(void **state)
{
	(void)state;
	connect_all_but(-1);
	for (int i = 0; i < 3; i++) {
		assert_true(leat_addresses_may_take(&set, address(0), now));
		leat_addresses_begin(&set, address(0), now);
		leat_addresses_end(&set, address(0), LEAT_ADDRESS_LOST, second, 1000, now);
	}
	assert_false(leat_addresses_may_take(&set, address(0), now));
	now += 1100 * ms;
	assert_true(leat_addresses_may_take(&set, address(0), now));
	answer(address(0), ms, 20);
	assert_true(leat_addresses_may_take(&set, address(0), now));
	/* There must be another one. */
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 3; j++) {
			leat_addresses_begin(&set, address(i), now);
			leat_addresses_end(&set, address(i), LEAT_ADDRESS_LOST, second, 1000, now);
		}
	for (int i = 0; i < 4; i++)
		assert_true(leat_addresses_may_take(&set, address(i), now));
}

/* Second requests win before the slow one has answered, so that its time is never seen. */
static void
an_address_that_loses_to_second_requests_gets_little(void **state)
{
	unsigned slow = 0;

	(void)state;
	connect_all_but(-1);
	for (int i = 0; i < 4; i++)
		answer(address(i), 10 * ms, 20);
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 2; j++) {
			leat_addresses_begin(&set, address(1), now);
			leat_addresses_end(&set, address(1), LEAT_ADDRESS_LOST, 12 * ms, 1000, now);
		}
		answer(address(1), 10 * ms, 1); /* so that it is never held for being dead */
	}
	leat_addresses_begin(&set, address(0), now);
	for (int i = 0; i < 100; i++) {
		if (!leat_addresses_may_take(&set, address(1), now))
			continue;
		leat_addresses_begin(&set, address(1), now);
		slow++;
	}
	assert_in_range(slow, 0, 1);
	/* It recovers. */
	answer(address(1), 10 * ms, 100);
	assert_true(leat_addresses_may_take(&set, address(1), now));
}

static void
what_is_resolved_again_keeps_what_is_known(void **state)
{
	leat_address_text many[LEAT_ADDRESSES];

	(void)state;
	connect_all_but(-1);
	leat_addresses_set(&set, four + 1, 2);
	assert_int_equal(set.count, 2);
	assert_int_equal(address(0)->links, 1);
	for (int i = 0; i < 10; i++)
		assert_in_range(leat_addresses_choose(&set, false, now) - set.address, 1, 2);
	/* As many as there is room for. */
	memset(many, 0, sizeof(many));
	for (int i = 0; i < LEAT_ADDRESSES; i++)
		many[i][0] = (char)('a' + i);
	leat_addresses_set(&set, many, LEAT_ADDRESSES);
	assert_int_equal(set.count, LEAT_ADDRESSES - 4);
	assert_string_equal(address(0)->text, "10.0.0.1");
	leat_addresses_closed(&set, address(0), false);
	leat_addresses_set(&set, many, LEAT_ADDRESSES);
	assert_int_equal(set.count, LEAT_ADDRESSES - 3);
}

/* ---- lists ---- */

static void
lists_of_addresses_are_understood(void **state)
{
	static const char list[] = "a.test:80:127.0.0.1,127.0.0.2 B.test:443:[::1],10.0.0.1,fe80::2 b.test:80:1.2.3.4";
	leat_address_text text[LEAT_ADDRESSES];

	(void)state;
	assert_null(leat_lookup_check(list));
	assert_int_equal(leat_lookup_in(list, "a.test", 80, text), 2);
	assert_string_equal(text[1], "127.0.0.2");
	assert_int_equal(leat_lookup_in(list, "b.test", 443, text), 3);
	assert_string_equal(text[0], "::1");
	assert_string_equal(text[2], "fe80::2");
	assert_int_equal(leat_lookup_in(list, "b.test", 80, text), 1);
	assert_int_equal(leat_lookup_in(list, "a.test", 443, text), 0);
	assert_int_equal(leat_lookup_in("", "a.test", 443, text), 0);
}

static void
what_is_no_list_is_refused(void **state)
{
	static const char *const lists[] = {
		"a",           "a:80",          "a:80:",           "a:80:b.test",
		"a:80:1.2.3",  "a:0:1.2.3.4",   "a:70000:1.2.3.4", "a:80:[::1",
		"a:80:[::1]x", "a:80:1.2.3.4,", "a:x:1.2.3.4",     "a:80:1.2.3.4;b:80:1.2.3.4"};
	leat_address_text text[LEAT_ADDRESSES];

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (!leat_lookup_check(lists[i]))
			fail_msg("'%s' is accepted", lists[i]);
		leat_lookup_in(lists[i], "a", 80, text);
	}
}

#define WITH_FOUR(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FOUR(connections_are_spread),
		WITH_FOUR(an_address_that_is_not_known_to_work_gets_few_attempts),
		WITH_FOUR(a_dead_address_is_left_alone_for_longer_each_time),
		WITH_FOUR(when_none_works_there_is_no_choice),
		WITH_FOUR(an_untried_address_is_better_than_one_that_lost_a_request),
		WITH_FOUR(a_slow_address_gets_little),
		WITH_FOUR(one_slow_answer_does_not_make_an_address_slow),
		WITH_FOUR(a_slow_address_is_tried_now_and_then),
		WITH_FOUR(an_address_that_loses_requests_is_left_alone),
		WITH_FOUR(an_address_that_loses_to_second_requests_gets_little),
		WITH_FOUR(what_is_resolved_again_keeps_what_is_known),
		cmocka_unit_test(lists_of_addresses_are_understood),
		cmocka_unit_test(what_is_no_list_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
