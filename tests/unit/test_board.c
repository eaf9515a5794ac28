/* test_board.c - a board over a store, asked by a socket */
#include <arpa/inet.h>
#include <jansson.h>
#include <sched.h>
#include <sys/socket.h>

#include "board/board.h"
#include "support/cas.h"

static const struct leat_board_options local = {.address = "127.0.0.1", .token = ""};

/* ---- a project with a run ---- */

#define RUN "20261117T201530-4711"

static void
write_log(struct store *store, const char *key, const char *log)
{
	FILE *file = fopen(store_path(store, "runs/" RUN ".jsonl"), "w");

	assert_non_null(file);
	fprintf(file, "{\"event\":\"begin\",\"at\":1,\"run\":\"" RUN "\",\"targets\":[],\"jobs\":1,\"pid\":1,"
	              "\"steps\":[{\"step\":\"train\",\"actions\":2,\"in\":[]}]}\n");
	fprintf(file,
	        "{\"event\":\"ran\",\"at\":2,\"step\":\"train\",\"slice\":\"\",\"id\":\"train-1\",\"key\":\"%s\"}\n",
	        key);
	fprintf(file,
	        "{\"event\":\"failed\",\"at\":3,\"step\":\"train\",\"slice\":\"s=2\",\"why\":\"exited with "
	        "2\",\"log\":\"%s\"}\n",
	        log);
	fprintf(file, "{\"event\":\"end\",\"at\":4,\"actions\":2,\"cached\":0,\"ran\":1,\"same\":0,\"failed\":1,"
	              "\"skipped\":0,"
	              "\"seconds\":3,\"saved_s\":0}\n");
	fclose(file);
}

/* Records an action "train-1" that made a file, and the log of a run. *file is its hash. */
static void
fill(struct store *store, char file[LEAT_SHA256_HEX])
{
	struct leat_content output;
	struct leat_digest log;
	struct action action;
	char key[LEAT_SHA256_HEX], log_hex[LEAT_SHA256_HEX];

	store_open(store, LEAT_CAS_WRITE);
	output = store_take(store, "<html><script>alert(1)</script>");
	must(leat_cas_put_bytes(store->cas, "printed\n", 8, &log, err));
	store_action(&action, "python train.py", NULL, &output);
	action.manifest.step = "train";
	action.manifest.slice = "";
	action.manifest.metrics = "{\"loss\":0.5}";
	action.manifest.log = log;
	store_record(store, &action);
	leat_hex(action.manifest.key.byte, LEAT_SHA256_BYTES, key);
	leat_hex(log.byte, LEAT_SHA256_BYTES, log_hex);
	leat_hex(output.digest.byte, LEAT_SHA256_BYTES, file);
	write_log(store, key, log_hex);
	store_close(store);
}

/* The folder of the project: that of the store is its .leat. */
static const char *
project_of(struct store *store)
{
	return store->temp.folder;
}

/* ---- requests ---- */

static int
connect_to(const struct leat_board *board)
{
	const char *colon = strrchr(leat_board_url(board), ':');
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Sends bytes, and reads all that comes back: to be freed. */
static char *
send_raw(const struct leat_board *board, const char *bytes, size_t len)
{
	size_t cap = 1 << 20, got = 0;
	char *answer = calloc(1, cap + 1);
	int fd = connect_to(board);
	ssize_t n;

	while (len && (n = send(fd, bytes, len, MSG_NOSIGNAL)) > 0) {
		bytes += n;
		len -= (size_t)n;
	}
	while (got < cap && (n = recv(fd, answer + got, cap - got, 0)) > 0)
		got += (size_t)n;
	close(fd);
	return answer;
}

static char *
ask(const struct leat_board *board, const char *method, const char *path, const char *headers)
{
	char *text, *answer;

	assert_true(asprintf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sConnection: close\r\n\r\n", method, path,
	                     headers) > 0);
	answer = send_raw(board, text, strlen(text));
	free(text);
	return answer;
}

static int
code_of(char *answer_take)
{
	int code = 0;

	sscanf(answer_take, "HTTP/1.1 %d", &code);
	free(answer_take);
	return code;
}

static json_t *
get(const struct leat_board *board, const char *path)
{
	char *answer = ask(board, "GET", path, ""), *body = strstr(answer, "\r\n\r\n");
	json_t *json;

	assert_non_null(body);
	json = json_loads(body + 4, JSON_REJECT_DUPLICATES, NULL);
	if (!json)
		fail_msg("%s: %s", path, answer);
	free(answer);
	return json;
}

static const char *
text_in(const json_t *json, const char *name)
{
	return json_string_value(json_object_get(json, name));
}

static struct leat_board *
open_board(struct store *store, const struct leat_board_options *options)
{
	struct leat_board *board;

	must(leat_board_open(&board, &store->mem, project_of(store), options, err));
	return board;
}

/* ---- tests ---- */

static void
a_folder_without_a_store_has_no_runs(void **state)
{
	struct leat_board *board = open_board(*state, &local);
	json_t *runs = get(board, "/api/runs"), *graph = get(board, "/api/graph");

	assert_int_equal(json_array_size(json_object_get(runs, "runs")), 0);
	assert_non_null(strstr(text_in(graph, "error"), "leat.yaml"));
	assert_int_equal(code_of(ask(board, "GET", "/api/action/train-1", "")), 404);
	json_decref(runs);
	json_decref(graph);
	leat_board_close(board);
}

static void
runs_and_actions_are_what_the_store_has(void **state)
{
	struct store *store = *state;
	struct leat_board *board = open_board(store, &local); /* before there is a store */
	char file[LEAT_SHA256_HEX];
	json_t *json, *run;

	fill(store, file);
	json = get(board, "/api/runs");
	run = json_array_get(json_object_get(json, "runs"), 0);
	assert_string_equal(text_in(run, "run"), RUN);
	assert_false(json_is_true(json_object_get(run, "alive")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(run, "end"), "failed")), 1);
	json_decref(json);
	json = get(board, "/api/run/" RUN);
	assert_string_equal(text_in(json_array_get(json_object_get(json, "failed"), 0), "why"), "exited with 2");
	json_decref(json);
	json = get(board, "/api/action/train-1");
	assert_string_equal(text_in(json, "step"), "train");
	assert_string_equal(
		text_in(json_array_get(json_object_get(json_object_get(json, "output"), "files"), 0), "hash"), file);
	assert_string_equal(
		text_in(json_array_get(json_object_get(json_object_get(json, "output"), "files"), 0), "type"), "html");
	assert_true(json_real_value(json_object_get(json_object_get(json, "metrics"), "loss")) == 0.5);
	json_decref(json);
	json = get(board, "/api/compare/" RUN "/" RUN);
	run = json_object_get(json_object_get(json_object_get(json, "a"), "steps"), "train");
	assert_string_equal(text_in(json_object_get(run, "fields"), "command"), "python train.py");
	assert_true(json_number_value(json_object_get(run, "counted")) == 1);
	assert_true(json_number_value(
			    json_object_get(json_object_get(json_object_get(run, "metrics"), "loss"), "sum")) == 0.5);
	json_decref(json);
	leat_board_close(board);
}

static void
a_store_that_was_deleted_is_shown_no_more(void **state)
{
	struct store *store = *state;
	struct leat_board *board;
	char file[LEAT_SHA256_HEX], old[PATH_MAX];
	json_t *json;

	fill(store, file);
	board = open_board(store, &local);
	assert_int_equal(code_of(ask(board, "GET", "/api/action/train-1", "")), 200);
	snprintf(old, sizeof(old), "%s.old", store->folder);
	assert_int_equal(rename(store->folder, old), 0);
	assert_int_equal(code_of(ask(board, "GET", "/api/action/train-1", "")), 404);
	json = get(board, "/api/runs");
	assert_int_equal(json_array_size(json_object_get(json, "runs")), 0);
	json_decref(json);
	fill(store, file);
	json = get(board, "/api/runs");
	assert_int_equal(json_array_size(json_object_get(json, "runs")), 1);
	json_decref(json);
	assert_int_equal(code_of(ask(board, "GET", "/api/action/train-1", "")), 200);
	leat_board_close(board);
}

static void
files_are_sent_by_content_in_a_sandbox(void **state)
{
	struct store *store = *state;
	char file[LEAT_SHA256_HEX], path[200];
	struct leat_board *board;
	char *answer;

	fill(store, file);
	board = open_board(store, &local);
	snprintf(path, sizeof(path), "/blob/%s", file);
	answer = ask(board, "GET", path, "");
	assert_non_null(strstr(answer, "Content-Type: text/html"));
	assert_non_null(strstr(answer, "Content-Security-Policy: sandbox allow-scripts; default-src 'none'"));
	assert_non_null(strstr(answer, "\r\n\r\n<html>"));
	free(answer);
	snprintf(path, sizeof(path), "/blob/%s?download=1&last=9", file);
	answer = ask(board, "GET", path, "");
	assert_non_null(strstr(answer, "Content-Disposition: attachment"));
	assert_non_null(strstr(answer, "\r\n\r\n</script>"));
	free(answer);
	snprintf(path, sizeof(path), "/blob/%s?text=1", file);
	answer = ask(board, "GET", path, "");
	assert_non_null(strstr(answer, "Content-Type: text/plain"));
	free(answer);
	path[10] = path[10] == '0' ? '1' : '0';
	assert_int_equal(code_of(ask(board, "GET", path, "")), 404);
	leat_board_close(board);
}

static void
methods_hosts_and_sites_are_refused(void **state)
{
	static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "get"};
	struct leat_board *board = open_board(*state, &local);
	static const char other[] = "GET /api/runs HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n";

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		assert_int_equal(code_of(ask(board, methods[i], "/api/runs", "")), 405);
	assert_int_equal(code_of(ask(board, "HEAD", "/api/runs", "")), 200);
	assert_int_equal(code_of(send_raw(board, other, strlen(other))), 403);
	assert_int_equal(code_of(ask(board, "GET", "/api/runs", "Sec-Fetch-Site: cross-site\r\n")), 403);
	assert_int_equal(code_of(ask(board, "GET", "/..%2f..%2fetc/passwd", "")), 404);
	leat_board_close(board);
}

/* Connections that it has not closed yet may fill its limit. */
static void
expect_answer(const struct leat_board *board)
{
	int code = 0;

	for (int i = 0; i < 1000 && code != 200; i++) {
		code = code_of(ask(board, "GET", "/api/runs", ""));
		if (code != 200)
			usleep(10000);
	}
	assert_int_equal(code, 200);
}

static void
junk_does_no_harm(void **state)
{
	struct leat_board *board = open_board(*state, &local);
	uint32_t seed = 1;
	char junk[3000];

	for (int i = 0; i < 200; i++) {
		size_t len = 1 + (size_t)(i * 15);

		for (size_t j = 0; j < len; j++)
			junk[j] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
		if (i % 2)
			memcpy(junk, "GET /", len < 5 ? len : 5);
		int fd = connect_to(board);

		if (send(fd, junk, len, MSG_NOSIGNAL) < 0)
			assert_true(i > 0); /* it may have been closed already */
		close(fd);
	}
	expect_answer(board);
	leat_board_close(board);
}

/* All at once: who waits for a free place must be woken when one ends, not when another comes. */
static void
connections_that_end_together_leave_room(void **state)
{
	struct leat_board *board = open_board(*state, &local);
	int fd[100];

	for (int wave = 0; wave < 20; wave++) {
		for (int i = 0; i < 100; i++)
			fd[i] = connect_to(board);
		for (int i = 0; i < 100; i++)
			close(fd[i]);
		expect_answer(board);
	}
	leat_board_close(board);
}

/* Reads events until `text` has come `times` times. */
static void
read_until(int fd, const char *text, int times)
{
	static char got[1 << 20];
	size_t len = 0;

	for (int seen = 0; seen < times;) {
		ssize_t n = recv(fd, got + len, sizeof(got) - 1 - len, 0);

		assert_true(n > 0);
		len += (size_t)n;
		got[len] = '\0';
		seen = 0;
		for (const char *at = got; (at = strstr(at, text)) != NULL; at++)
			seen++;
	}
}

static void
a_page_that_is_there_before_the_first_line_gets_the_run_again(void **state)
{
	static const char request[] = "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct store *store = *state;
	char file[LEAT_SHA256_HEX];
	struct leat_board *board;
	FILE *log;
	int fd;

	fill(store, file);
	log = fopen(store_path(store, "runs/" RUN ".jsonl"), "w");
	board = open_board(store, &local);
	fd = connect_to(board);
	assert_true(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
	read_until(fd, "event: run", 1);
	fprintf(log, "{\"event\":\"begin\",\"at\":1,\"steps\":[{\"step\":\"train\",\"actions\":2,\"in\":[]}]}\n");
	fclose(log);
	read_until(fd, "event: run", 1);
	close(fd);
	leat_board_close(board);
}

/* A tree in which each of `width` names is `content`, which becomes the tree. */
static void
nest(struct store *store, struct leat_content *content, int width)
{
	struct leat_str tree;
	char name[2] = "a";

	leat_str_init(&tree, &store->mem, 1 << 20);
	for (; width-- > 0; name[0]++)
		must(leat_tree_add(&tree, name, content, err));
	must(leat_cas_put_tree(store->cas, &tree, content, err));
	leat_str_free(&tree);
}

/* 11^4 empty folders in 5 small trees: more than are read for an answer. */
static void
a_folder_that_unfolds_without_end_is_cut(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	struct leat_board *board;
	struct action action;
	json_t *json, *output;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "leaf");
	nest(store, &content, 0);
	for (int depth = 0; depth < 4; depth++)
		nest(store, &content, 11);
	store_action(&action, "python train.py", NULL, &content);
	action.manifest.step = "train";
	action.manifest.slice = "";
	store_record(store, &action);
	store_close(store);
	board = open_board(store, &local);
	json = get(board, "/api/action/train-1");
	output = json_object_get(json, "output");
	assert_int_equal(json_array_size(json_object_get(output, "files")), 0);
	assert_true(json_integer_value(json_object_get(output, "left_out")) > 0);
	json_decref(json);
	leat_board_close(board);
}

static void
a_token_is_needed_where_there_is_one(void **state)
{
	struct leat_board_options options = {.address = "127.0.0.1", .token = "0123456789abcdef"};
	struct leat_board *board = open_board(*state, &options);
	char *answer, cookie[100];
	unsigned port;

	assert_non_null(strstr(leat_board_url(board), "/?token=0123456789abcdef"));
	assert_int_equal(code_of(ask(board, "GET", "/api/runs", "")), 401);
	assert_int_equal(code_of(ask(board, "GET", "/?token=0123456789abcdeF", "")), 401);
	answer = ask(board, "GET", "/?token=0123456789abcdef", "");
	assert_non_null(strstr(answer, "HttpOnly; SameSite=Strict"));
	free(answer);
	assert_int_equal(sscanf(leat_board_url(board), "http://127.0.0.1:%u", &port), 1);
	snprintf(cookie, sizeof(cookie), "Cookie: leat_board_%u=0123456789abcdef\r\n", port);
	assert_int_equal(code_of(ask(board, "GET", "/api/runs", cookie)), 200);
	leat_board_close(board);
}

static void
a_private_board_has_a_token_on_this_machine(void **state)
{
	struct leat_board_options options = {.address = "127.0.0.1", .token = "", .private = true};
	struct leat_board *board = open_board(*state, &options);
	const char *token = strstr(leat_board_url(board), "?token=");

	assert_non_null(token);
	assert_int_equal(strlen(token), strlen("?token=") + 32);
	assert_int_equal(code_of(ask(board, "GET", "/api/runs", "")), 401);
	leat_board_close(board);
}

/* In a network of its own, where nobody else is. */
static void
another_address_gets_a_token_each_time_another(void **state)
{
	struct leat_board_options options = {.address = "0.0.0.0", .token = ""};
	struct leat_board *board;
	char first[600];
	const char *token;

	if (unshare(CLONE_NEWNET) != 0)
		skip();
	board = open_board(*state, &options);
	token = strstr(leat_board_url(board), "?token=");
	assert_non_null(token);
	assert_int_equal(strlen(token), strlen("?token=") + 32);
	strcpy(first, token);
	leat_board_close(board);
	board = open_board(*state, &options);
	assert_string_not_equal(strstr(leat_board_url(board), "?token="), first);
	leat_board_close(board);
}

static void
opening_fails_with_a_reason(void **state)
{
	struct store *store = *state;
	struct leat_board_options options = local;
	struct leat_board *board = open_board(store, &local), *other;
	struct leat_err err = {0};

	options.port = (unsigned)atoi(strrchr(leat_board_url(board), ':') + 1);
	assert_int_equal(leat_board_open(&other, &store->mem, project_of(store), &options, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "--port 0"));
	leat_err_clear(&err);
	options.token = "short";
	assert_int_equal(leat_board_open(&other, &store->mem, project_of(store), &options, &err), LEAT_INVALID);
	leat_err_clear(&err);
	assert_int_equal(leat_board_open(&other, &store->mem, "/nonexistent", &local, &err), LEAT_INVALID);
	assert_null(other);
	leat_board_close(board);
}

static void
every_failed_allocation_is_an_error(void **state)
{
	struct store *store = *state;
	struct leat_board *board = NULL;

	for (long n = 0; !board; n++) {
		struct leat_err err = {0};

		store->mem.fail_after = n;
		if (leat_board_open(&board, &store->mem, project_of(store), &local, &err) != LEAT_OK) {
			assert_int_equal(err.status, LEAT_NOMEM);
			assert_null(board);
		}
		store->mem.fail_after = -1;
	}
	leat_board_close(board);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)
		TEST(a_folder_without_a_store_has_no_runs),
		TEST(runs_and_actions_are_what_the_store_has),
		TEST(a_store_that_was_deleted_is_shown_no_more),
		TEST(files_are_sent_by_content_in_a_sandbox),
		TEST(methods_hosts_and_sites_are_refused),
		TEST(junk_does_no_harm),
		TEST(connections_that_end_together_leave_room),
		TEST(a_page_that_is_there_before_the_first_line_gets_the_run_again),
		TEST(a_folder_that_unfolds_without_end_is_cut),
		TEST(a_token_is_needed_where_there_is_one),
		TEST(a_private_board_has_a_token_on_this_machine),
		TEST(opening_fails_with_a_reason),
		TEST(every_failed_allocation_is_an_error),
		TEST(another_address_gets_a_token_each_time_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
