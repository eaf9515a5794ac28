/* test_gc.c - gc removes what nobody needs, and fsck finds what is damaged */
#include "support/cas.h"

#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cas/fsck.h"
#include "cas/gc.h"
#include "cas/inside.h"

static const double day = 86400;
static char path[PATH_MAX];

/* A result of `step`, made `age` days ago. */
static struct leat_content
make_old(struct store *store, const char *step, const char *bytes, double age, struct leat_digest *key)
{
	struct leat_content content = store_take(store, bytes);
	struct action action;

	store_action(&action, bytes, NULL, &content);
	action.manifest.step = step;
	action.manifest.begun_s = (double)time(NULL) - age * day;
	must(leat_cas_put_bytes(store->cas, bytes, 1, &action.manifest.log, err)); /* its first letter */
	store_record(store, &action);
	if (key)
		*key = action.manifest.key;
	return content;
}

static struct leat_gc_result
gc(struct store *store, double older, uint64_t size, bool dry)
{
	const struct leat_gc_options options = {older * day, size, dry};
	struct leat_gc_result result;

	store_close(store);
	must(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_WRITE, err));
	must(leat_cas_gc(store->cas, &options, &result, err));
	assert_false(result.busy);
	return result;
}

static struct leat_fsck_result
fsck(struct store *store, bool repair)
{
	const struct leat_fsck_options options = {.repair = repair, .threads = 2};
	struct leat_fsck_result result;

	store_close(store);
	must(leat_cas_open(&store->cas, &store->mem, store->folder, repair ? LEAT_CAS_WRITE : LEAT_CAS_READ, err));
	must(leat_cas_fsck(store->cas, &options, &result, err));
	store_close(store);
	return result;
}

static void
old_results_go_unless_they_are_the_latest(void **state)
{
	struct store *store = *state;
	struct leat_content a, b, c;
	struct leat_gc_result result;
	struct leat_digest key;
	struct leat_made made;

	store_open(store, LEAT_CAS_WRITE);
	a = make_old(store, "s", "apple", 50, &key);
	b = make_old(store, "s", "bear", 40, NULL);
	c = make_old(store, "t", "cow", 60, NULL);
	result = gc(store, 30, UINT64_MAX, true);
	assert_int_equal(result.results_removed, 1);
	assert_int_equal(result.bytes_removed, 6);
	assert_true(leat_cas_has(store->cas, &a));
	result = gc(store, 30, UINT64_MAX, false);
	assert_int_equal(result.results, 3);
	assert_int_equal(result.results_removed, 1);
	assert_int_equal(result.blobs_removed, 2); /* and its log */
	assert_false(leat_cas_has(store->cas, &a));
	assert_true(leat_cas_has(store->cas, &b));
	assert_true(leat_cas_has(store->cas, &c));
	store_stem("apple", &key);
	assert_false(store_find(store, &key, &made));
	assert_true(leat_index_last(store->cas, "s", "", &made));
	assert_true(leat_content_equal(&made.output, &b));
	result = gc(store, 30, UINT64_MAX, false);
	assert_int_equal(result.results_removed, 0);
	assert_int_equal(fsck(store, false).damaged, 0);
}

static void
blobs_that_others_need_stay(void **state)
{
	struct store *store = *state;
	struct leat_content shared, folder;
	struct leat_digest key;
	struct leat_str tree;
	struct action action;

	store_open(store, LEAT_CAS_WRITE);
	shared = make_old(store, "s", "shared", 50, &key);
	make_old(store, "s", "new", 0, NULL);
	leat_str_init(&tree, &store->mem, SIZE_MAX);
	must(leat_tree_add(&tree, "a", &shared, err));
	must(leat_cas_put_tree(store->cas, &tree, &folder, err));
	leat_str_free(&tree);
	store_action(&action, "folder", NULL, &folder);
	action.manifest.step = "f";
	store_record(store, &action);
	must(leat_cas_view(store->cas, &folder, path, err));
	assert_int_equal(gc(store, 30, UINT64_MAX, false).results_removed, 1);
	assert_true(leat_cas_has(store->cas, &folder));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(gc(store, 30, 1, false).results_removed, 2);
	assert_false(leat_cas_has(store->cas, &shared));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(store_count(store, "cas") + store_count(store, "act"), 0);
}

static void
refs_keep_results_and_contents(void **state)
{
	struct store *store = *state;
	struct leat_content a, b, orphan;
	struct leat_digest key;
	char text[LEAT_CONTENT_TEXT];
	FILE *file;

	store_open(store, LEAT_CAS_WRITE);
	a = make_old(store, "s", "apple", 50, &key);
	b = make_old(store, "s", "bear", 40, NULL);
	orphan = store_take(store, "orphan");
	must(leat_ref_set(store->cas, "best", &key, err));
	file = fopen(store_path(store, "refs/content"), "w");
	fprintf(file, "%s\n", leat_content_text(&orphan, text));
	fclose(file);
	gc(store, 0, 1, false);
	assert_true(leat_cas_has(store->cas, &a));
	assert_false(leat_cas_has(store->cas, &b));
	assert_true(leat_cas_has(store->cas, &orphan));
	must(leat_ref_remove(store->cas, "best", err));
	assert_int_equal(leat_ref_remove(store->cas, "best", NULL), LEAT_INVALID);
	assert_int_equal(leat_ref_set(store->cas, "../x", &key, NULL), LEAT_INVALID);
	gc(store, 0, 1, false);
	assert_false(leat_cas_has(store->cas, &a));

	file = fopen(store_path(store, "refs/content"), "w");
	fprintf(file, "what is this?\n");
	fclose(file);
	const struct leat_gc_options options = {0, 1, false};
	struct leat_gc_result result;
	assert_int_equal(leat_cas_gc(store->cas, &options, &result, NULL), LEAT_DATA); /* rather nothing */
	assert_true(leat_cas_has(store->cas, &orphan));
}

static void
rows_of_a_failure_stay_until_the_next_attempt_or_until_they_are_old(void **state)
{
	struct store *store = *state;
	struct leat_content first, second, rows;
	uint64_t number = 0;

	store_open(store, LEAT_CAS_WRITE);
	for (int i = 0; i < 2; i++) {
		FILE *file = fopen(store_path(store, "tmp/rows"), "w");

		fprintf(file, "{\"line\":%d}\n", i);
		fclose(file);
		must(leat_cas_take(store->cas, store_path(store, "tmp/rows"), &rows, err));
		must(leat_rejects_keep(store->cas, "s", "part=1", 7 + (uint64_t)i, &rows, err));
		assert_true(leat_rejects_find(store->cas, "s", "part=1", &number, i ? &second : &first));
		assert_int_equal(number, 7 + i);
	}
	assert_false(leat_rejects_find(store->cas, "s", "", &number, &first));
	assert_false(leat_rejects_find(store->cas, "spart=1", "", &number, &first));
	gc(store, 1, 1, false); /* nobody needs the first any more */
	assert_true(leat_cas_has(store->cas, &second));
	assert_int_equal(store_count(store, "cas"), 1);
	assert_int_equal(fsck(store, false).damaged, 0);
	assert_int_equal(gc(store, 0, UINT64_MAX, true).blobs_removed, 1);
	assert_true(leat_rejects_find(store->cas, "s", "part=1", &number, &first));
	gc(store, 0, UINT64_MAX, false);
	assert_false(leat_rejects_find(store->cas, "s", "part=1", &number, &first));
	assert_int_equal(store_count(store, "cas"), 0);
	leat_rejects_drop(store->cas, "s", "part=1"); /* there are none */
}

static void
young_orphans_and_logs_of_failures_stay(void **state)
{
	struct store *store = *state;
	struct leat_content orphan, log;
	char hex[LEAT_SHA256_HEX];
	FILE *file;

	store_open(store, LEAT_CAS_WRITE);
	orphan = store_take(store, "orphan");
	log = store_take(store, "Traceback");
	leat_hex(log.digest.byte, 32, hex);
	file = fopen(store_path(store, "runs/20200101T000000-1.jsonl"), "w");
	fprintf(file, "{\"event\":\"failed\",\"log\":\"%s\"}\n{\"log\":\"12\"", hex);
	fclose(file);
	file = fopen(store_path(store, "runs/20200101T000000-2.jsonl"), "w"); /* a disk that was full cut it */
	fprintf(file, "{\"event\":\"failed\",\"log\":");
	fclose(file);
	assert_int_equal(gc(store, 1, UINT64_MAX, false).blobs_removed, 0);
	assert_int_equal(gc(store, 0, UINT64_MAX, false).blobs_removed, 1);
	assert_false(leat_cas_has(store->cas, &orphan));
	assert_true(leat_cas_has(store->cas, &log));
}

static void
the_least_recently_used_go_first(void **state)
{
	struct store *store = *state;
	struct leat_content content[4];
	struct leat_digest stem;
	struct leat_made made;

	store_open(store, LEAT_CAS_WRITE);
	content[0] = make_old(store, "s", "a123456789", 40, NULL);
	content[1] = make_old(store, "s", "b123456789", 30, NULL);
	content[2] = make_old(store, "s", "c123456789", 20, NULL);
	content[3] = make_old(store, "s", "d123456789", 50, NULL); /* the latest */
	store_stem("a123456789", &stem);
	assert_true(store_find(store, &stem, &made)); /* used now */
	gc(store, 1000, 35, false);
	assert_true(leat_cas_has(store->cas, &content[0]));
	assert_false(leat_cas_has(store->cas, &content[1]));
	assert_true(leat_cas_has(store->cas, &content[2]));
	assert_true(leat_cas_has(store->cas, &content[3]));
	gc(store, 1000, 11, false);
	assert_true(leat_cas_has(store->cas, &content[3]));
	gc(store, 1000, 5, false);
	assert_int_equal(store_count(store, "cas"), 0);
}

static void
nothing_goes_while_a_build_runs(void **state)
{
	const struct leat_gc_options options = {0, 1, false};
	const struct leat_fsck_options repair = {.repair = true, .threads = 1};
	struct store *store = *state;
	struct leat_gc_result result;
	struct leat_fsck_result checked;
	int to_parent[2], to_child[2], status;
	char byte;
	pid_t child;

	store_open(store, LEAT_CAS_WRITE);
	make_old(store, "s", "apple", 50, NULL);
	assert_int_equal(leat_cas_gc(store->cas, &options, &result, NULL), LEAT_INVALID); /* its own run */
	store_close(store);
	assert_int_equal(pipe(to_parent) | pipe(to_child), 0);
	child = fork();
	if (child == 0) {
		alarm(60);
		store_open(store, LEAT_CAS_WRITE);
		_exit(write(to_parent[1], "x", 1) == 1 && read(to_child[0], &byte, 1) == 1 ? 0 : 1);
	}
	assert_int_equal(read(to_parent[0], &byte, 1), 1);
	must(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_WRITE, err));
	must(leat_cas_gc(store->cas, &options, &result, err));
	assert_true(result.busy);
	must(leat_cas_fsck(store->cas, &repair, &checked, err));
	assert_true(checked.busy);
	assert_int_equal(store_count(store, "act"), 1);
	assert_int_equal(write(to_child[1], "x", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	must(leat_cas_gc(store->cas, &options, &result, err));
	assert_false(result.busy);
	assert_int_equal(store_count(store, "act"), 0);
	for (int i = 0; i < 2; i++)
		close(to_child[i]), close(to_parent[i]);
}

static void
overwrite(const char *name, const char *bytes)
{
	FILE *file;

	chmod(name, 0600);
	file = fopen(name, "r+");
	assert_non_null(file);
	fputs(bytes, file);
	fclose(file);
}

static void
fsck_finds_and_repairs_every_damage(void **state)
{
	struct store *store = *state;
	struct leat_content content, folder;
	struct leat_fsck_result result;
	struct leat_digest key;
	struct leat_made made;
	struct leat_str tree;
	struct action action;
	char name[LEAT_CAS_NAME];

	store_open(store, LEAT_CAS_WRITE);
	content = make_old(store, "s", "apple", 1, &key);
	make_old(store, "s", "bear", 1, NULL);
	leat_str_init(&tree, &store->mem, SIZE_MAX);
	must(leat_tree_add(&tree, "a", &content, err));
	must(leat_cas_put_tree(store->cas, &tree, &folder, err));
	leat_str_free(&tree);
	store_action(&action, "folder", NULL, &folder);
	store_record(store, &action);
	must(leat_cas_view(store->cas, &folder, path, err));
	result = fsck(store, false);
	assert_int_equal(result.damaged, 0);
	assert_int_equal(result.missing, 0);
	assert_int_equal(result.manifests, 3);
	assert_int_equal(result.views, 1);

	/* In place, as a command that is root can do it: the view has the same bytes, and was not changed besides. */
	leat_cas_name("cas", &content.digest, name);
	overwrite(store_path(store, "%s", name), "APPLE");
	result = fsck(store, false);
	assert_int_equal(result.damaged, 1);
	assert_int_equal(fsck(store, false).damaged, 1); /* it changed nothing */
	result = fsck(store, true);
	assert_int_equal(result.damaged, 2); /* without the blob, the view is seen to be wrong, too */
	result = fsck(store, false);
	assert_int_equal(result.damaged, 0);
	assert_int_equal(result.missing, 2);
	assert_int_equal(access(path, F_OK), -1);

	leat_cas_name("act", &key, name);
	overwrite(store_path(store, "%s", name), "!");
	assert_true(fsck(store, false).damaged > 0);
	fsck(store, true);
	assert_int_equal(fsck(store, false).damaged, 0);
	store_open(store, LEAT_CAS_WRITE);
	store_stem("apple", &key);
	assert_false(store_find(store, &key, &made));
	store_stem("bear", &key);
	assert_true(store_find(store, &key, &made));
	store_close(store);

	leat_cas_name("act", &made.key, name); /* the index knows it, but it is gone */
	assert_int_equal(unlink(store_path(store, "%s", name)), 0);
	assert_int_equal(fsck(store, false).damaged, 1);
	fsck(store, true);
	assert_int_equal(fsck(store, false).damaged, 0);
	leat_remove_tree(store_path(store, "index"));
	assert_int_equal(fsck(store, false).damaged, 1);
	fsck(store, true);
	assert_int_equal(fsck(store, false).damaged, 0);
}

/* One more file can be opened, which is the folder; the blobs in it cannot. They are not damaged. */
static void
what_cannot_be_opened_at_the_moment_stays(void **state)
{
	const struct leat_fsck_options repair = {.repair = true, .threads = 1};
	struct store *store = *state;
	struct leat_fsck_result result;
	struct rlimit limit, low;
	enum leat_status status;
	struct leat_err why;
	int next;

	store_open(store, LEAT_CAS_WRITE);
	make_old(store, "s", "apple", 1, NULL);
	store_close(store);
	must(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_WRITE, err));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	next = dup(0);
	close(next);
	low = (struct rlimit){(rlim_t)next + 1, limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &low);
	leat_err_clear(&why);
	status = leat_cas_fsck(store->cas, &repair, &result, &why);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(status, LEAT_IO);
	assert_non_null(strstr(why.text, "raise 'ulimit -n'"));
	assert_int_equal(result.damaged, 0);
	store_close(store);
	assert_int_equal(fsck(store, false).damaged, 0);
	assert_int_equal(fsck(store, false).blobs, 2);
}

/* A folder or a link where a blob should be is damage, not an error. */
static void
what_is_not_a_file_is_damaged(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	char name[LEAT_CAS_NAME];

	store_open(store, LEAT_CAS_WRITE);
	content = make_old(store, "s", "apple", 1, NULL);
	leat_cas_name("cas", &content.digest, name);
	unlink(store_path(store, "%s", name));
	assert_int_equal(mkdir(store_path(store, "%s", name), 0700), 0);
	assert_int_equal(fsck(store, false).damaged, 1);
	rmdir(store_path(store, "%s", name));
	assert_int_equal(symlink("/etc/passwd", store_path(store, "%s", name)), 0);
	assert_int_equal(fsck(store, true).damaged, 1);
	assert_int_equal(fsck(store, false).damaged, 0);
	assert_int_equal(fsck(store, false).missing, 1);
}

static void
a_manifest_that_a_build_just_wrote_is_not_lost(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	struct action action;
	struct leat_str json;
	char name[LEAT_CAS_NAME];
	FILE *file;
	int fd;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "apple");
	store_action(&action, "run", NULL, &content);
	action.manifest.run = "20200101T000000-1";
	store_record(store, &action);
	store_action(&action, "run twice", NULL, &content);
	action.manifest.run = "20200101T000000-1";
	store_close(store);
	leat_str_init(&json, &store->mem, SIZE_MAX);
	leat_manifest_write(&json, &action.manifest);
	leat_cas_name("act", &action.manifest.key, name);
	name[6] = '\0'; /* "act/ab" */
	mkdir(store_path(store, "%s", name), 0777);
	name[6] = '/';
	file = fopen(store_path(store, "%s", name), "w");
	fputs(json.text, file);
	fclose(file);
	leat_str_free(&json);
	assert_int_equal(fsck(store, false).damaged, 1);
	fd = open(store_path(store, "runs/20200101T000000-1.open"), O_RDWR | O_CREAT, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(fsck(store, false).damaged, 0);
	close(fd);
}

static void
a_gc_that_was_killed_leaves_a_clean_store(void **state)
{
	struct store *store = *state;
	struct leat_digest key, stem;
	struct leat_made made;
	char name[LEAT_CAS_NAME];

	store_open(store, LEAT_CAS_WRITE);
	make_old(store, "s", "apple", 50, &key);
	make_old(store, "s", "bear", 40, NULL);
	store_close(store);
	/* The manifest is gone, the index was not changed yet. */
	close(open(store_path(store, "index/stale"), O_CREAT | O_WRONLY, 0666));
	leat_cas_name("act", &key, name);
	unlink(store_path(store, "%s", name));
	store_open(store, LEAT_CAS_READ);
	store_stem("apple", &stem);
	assert_false(store_find(store, &stem, &made));
	store_close(store);
	store_open(store, LEAT_CAS_WRITE);
	assert_false(store_find(store, &stem, &made));
	store_close(store);
	assert_int_equal(fsck(store, false).damaged, 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(old_results_go_unless_they_are_the_latest),
		test(blobs_that_others_need_stay),
		test(refs_keep_results_and_contents),
		test(rows_of_a_failure_stay_until_the_next_attempt_or_until_they_are_old),
		test(young_orphans_and_logs_of_failures_stay),
		test(the_least_recently_used_go_first),
		test(nothing_goes_while_a_build_runs),
		test(fsck_finds_and_repairs_every_damage),
		test(what_cannot_be_opened_at_the_moment_stays),
		test(what_is_not_a_file_is_damaged),
		test(a_manifest_that_a_build_just_wrote_is_not_lost),
		test(a_gc_that_was_killed_leaves_a_clean_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
