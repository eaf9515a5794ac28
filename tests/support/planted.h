/* planted.h - x-rays of feeds with a planted bottleneck, in programs named test_store_*
 *
 * The data are tokens in the store mem:, whose latency tests set. Functions before `batch` sleep, or compute for a
 * given CPU time, and pass the tokens on. One x-ray at a time; one thread. */
#ifndef TEST_PLANTED_H
#define TEST_PLANTED_H

#include "leat.h"
#include "xray/xray.h"

enum { PLANTED_SAMPLES = 4000 };

#define PLANTED "tokens('mem://tokens', length=64)"

extern struct leat_xray planted; /* the latest result */

/* For cmocka: before and after each test. */
int planted_setup(void **state);
int planted_teardown(void **state);

extern const struct leat_field planted_field; /* what functions give */
/* Functions; `arg` points to an unsigned, in microseconds. */
enum leat_status planted_copy(void *arg, const struct leat_map_call *call, struct leat_err *err);
enum leat_status planted_wait(void *arg, const struct leat_map_call *call, struct leat_err *err);
enum leat_status planted_compute(void *arg, const struct leat_map_call *call, struct leat_err *err);

/* Options with the function as map(f), and two threads. */
struct leat_options planted_options(struct leat_function *function,
                                    enum leat_status (*run)(void *, const struct leat_map_call *, struct leat_err *),
                                    unsigned *us);
void planted_examine(const char *spec, const struct leat_options *options, double step_ms, double seconds);

/* NULL: it does not help. */
const struct leat_remedy *planted_helping(enum leat_remedy_kind kind);
void planted_expect_limit(const char *limit);
/* The same of the figures that the feed itself counted, as `leat feed` prints them. */
void planted_expect_limit_of_run(const char *limit);
void planted_expect_help(enum leat_remedy_kind kind);
void planted_expect_no_advice(void);

#endif
