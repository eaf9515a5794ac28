/* action.c - /api/action/STEP-NUMBER: what an action was, what it read, made and printed */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "board/inside.h"
#include "board/media.h"
#include "cas/index.h"

enum { TREE_BYTES = 4 << 20, TYPED = 100, MOST_TREES = 10000, DEEPEST = 16 };

/* ---- contents ---- */

static const char *const kinds[] = {[LEAT_CONTENT_NONE] = "none",
                                    [LEAT_CONTENT_FILE] = "file",
                                    [LEAT_CONTENT_EXECUTABLE] = "file",
                                    [LEAT_CONTENT_FOLDER] = "folder"};

static void
add_content(const struct leat_content *content, struct leat_str *json)
{
	char hex[LEAT_SHA256_HEX];

	leat_hex(content->digest.byte, sizeof(content->digest.byte), hex);
	leat_str_addf(json, "\"kind\":\"%s\",\"bytes\":%llu,\"hash\":\"%s\"", kinds[content->kind],
	              (unsigned long long)content->bytes, hex);
}

/* What the page can do with a file: "png", "text", ...; "gone": it is not in the store. */
static void
add_media(struct leat_cas *cas, const struct leat_digest *digest, struct leat_str *json)
{
	char path[PATH_MAX], head[LEAT_MEDIA_BYTES];
	ssize_t got;
	int fd;

	leat_cas_blob_path(cas, digest, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	got = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
	leat_str_addf(json, ",\"type\":\"%s\"", got >= 0 ? leat_media_of(head, (size_t)got)->name : "gone");
	if (fd >= 0)
		close(fd);
}

static void
add_maker(struct leat_board *board, struct leat_cas *cas, const struct leat_digest *digest, struct leat_str *json)
{
	struct leat_manifest *maker;
	struct leat_digest key;

	if (!leat_index_maker(cas, digest, &key) || leat_cas_manifest(cas, &key, &maker, NULL) != LEAT_OK)
		return;
	leat_str_add(json, ",\"maker\":{\"step\":");
	leat_str_add_json(json, maker->step);
	leat_str_addf(json, ",\"number\":%llu,\"slice\":", (unsigned long long)maker->number);
	leat_str_add_json(json, maker->slice);
	leat_str_add(json, "}");
	leat_manifest_free(maker, board->mem);
}

/* ---- folders ---- */

/* Files of a folder and of those in it, by path. A tree that names another one twice at each level is small in the
 * store and endless as a list, so the trees read for one answer are counted. */
struct walk {
	struct leat_board *board;
	struct leat_cas *cas;
	size_t *trees; /* read for this answer */
	struct leat_str path, *json;
	size_t listed, left_out;
	bool makers; /* say who made them, else what they are */
	int depth;
};

static enum leat_status walk_folder(struct walk *walk, const struct leat_digest *tree, struct leat_err *err);

static void
list_file(struct walk *walk, const struct leat_content *content)
{
	if (walk->listed == LEAT_BOARD_LISTED) {
		walk->left_out++;
		return;
	}
	leat_str_add(walk->json, walk->listed++ ? ",{\"name\":" : "{\"name\":");
	leat_str_add_json(walk->json, leat_str_text(&walk->path));
	leat_str_add(walk->json, ",");
	add_content(content, walk->json);
	if (walk->makers)
		add_maker(walk->board, walk->cas, &content->digest, walk->json);
	else if (walk->listed <= TYPED)
		add_media(walk->cas, &content->digest, walk->json);
	leat_str_add(walk->json, "}");
}

static enum leat_status
walk_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct walk *walk = arg;
	size_t len = walk->path.len;
	enum leat_status status = LEAT_OK;

	leat_str_addf(&walk->path, "%s%s", len ? "/" : "", name);
	if (content->kind == LEAT_CONTENT_FOLDER && !(walk->makers && walk->depth) && walk->depth < DEEPEST)
		status = walk_folder(walk, &content->digest, err);
	else if (!target)
		list_file(walk, content);
	walk->path.len = len;
	if (walk->path.text)
		walk->path.text[len] = '\0';
	return walk->path.failed ? leat_fail(err, LEAT_LIMIT, "a path is too long") : status;
}

static enum leat_status
walk_folder(struct walk *walk, const struct leat_digest *tree, struct leat_err *err)
{
	struct leat_tree_reader reader = {.entry = walk_entry, .arg = walk};
	enum leat_status status;
	char *text;
	size_t len;

	if (walk->listed == LEAT_BOARD_LISTED || *walk->trees == MOST_TREES) {
		walk->left_out++;
		return LEAT_OK;
	}
	if (walk->json->failed || leat_board_wait(walk->board, 0))
		return leat_fail(err, LEAT_LIMIT, "the answer is not wanted any more");
	++*walk->trees;
	status = leat_cas_read(walk->cas, tree, TREE_BYTES, &text, &len, err);
	if (status != LEAT_OK)
		return status;
	walk->depth++;
	status = leat_tree_read(text, len, &reader, err);
	walk->depth--;
	leat_free(walk->board->mem, text);
	return status;
}

/* Appends ,"files":[...], with an entry for a single file, too. A folder that cannot be read has none. */
static void
add_files(struct leat_board *board, struct leat_cas *cas, const struct leat_content *content, bool makers,
          size_t *trees, struct leat_str *json)
{
	struct walk walk = {.board = board, .cas = cas, .trees = trees, .json = json, .makers = makers};

	leat_str_init(&walk.path, &board->answers, PATH_MAX * 4);
	leat_str_add(json, ",\"files\":[");
	if (content->kind == LEAT_CONTENT_FOLDER)
		walk_folder(&walk, &content->digest, NULL);
	else if (content->kind != LEAT_CONTENT_NONE)
		list_file(&walk, content);
	leat_str_addf(json, "],\"left_out\":%zu", walk.left_out);
	leat_str_free(&walk.path);
}

/* ---- the action ---- */

static void
add_input(struct leat_board *board, struct leat_cas *cas, const struct leat_key_field *field, size_t *trees,
          struct leat_str *json)
{
	struct leat_content content;

	leat_str_add(json, "{\"name\":");
	leat_str_add_json(json, field->name + strlen("input."));
	if (leat_content_parse(field->value, &content, NULL) == LEAT_OK) {
		leat_str_add(json, ",");
		add_content(&content, json);
		add_maker(board, cas, &content.digest, json);
		if (content.kind == LEAT_CONTENT_FOLDER)
			add_files(board, cas, &content, true, trees, json);
	}
	leat_str_add(json, "}");
}

static void
add_fields(const struct leat_manifest *manifest, struct leat_str *json)
{
	leat_str_add(json, ",\"fields\":[");
	for (size_t i = 0; i < manifest->fields; i++) {
		leat_str_add(json, i ? ",{\"name\":" : "{\"name\":");
		leat_str_add_json(json, manifest->field[i].name);
		leat_str_add(json, ",\"value\":");
		leat_str_add_json(json, manifest->field[i].value);
		leat_str_addf(json, "%s}", i >= manifest->fields - manifest->learned ? ",\"learned\":true" : "");
	}
	leat_str_add(json, "]");
}

static void
add_figures(const struct leat_manifest *manifest, struct leat_str *json)
{
	leat_str_addf(json,
	              ",\"number\":%llu,\"begun\":%.3f,\"seconds\":%.6g,\"cpu_s\":%.6g,\"peak_bytes\":%llu,\"cpus\":%u,"
	              "\"threads\":%u,\"attempts\":%u",
	              (unsigned long long)manifest->number, manifest->begun_s, manifest->seconds, manifest->cpu_s,
	              (unsigned long long)manifest->peak_bytes, manifest->cpus, manifest->threads, manifest->attempts);
}

static void
add_texts(const struct leat_manifest *manifest, struct leat_str *json)
{
	const char *const texts[][2] = {
		{"slice", manifest->slice}, {"run", manifest->run}, {"warning", manifest->warning}};
	char hex[LEAT_SHA256_HEX];

	leat_str_add(json, "{\"step\":");
	leat_str_add_json(json, manifest->step);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		leat_str_addf(json, ",\"%s\":", texts[i][0]);
		leat_str_add_json(json, texts[i][1]);
	}
	leat_hex(manifest->key.byte, sizeof(manifest->key.byte), hex);
	leat_str_addf(json, ",\"key\":\"%s\"", hex);
	leat_hex(manifest->log.byte, sizeof(manifest->log.byte), hex);
	leat_str_addf(json, ",\"log\":\"%s\"", strspn(hex, "0") == strlen(hex) ? "" : hex);
}

static int
append(const char *text, size_t len, void *out)
{
	leat_str_addn(out, text, len);
	return 0;
}

/* Parsed and written anew: nothing but an object gets into the answer. */
static void
add_metrics(const char *metrics, struct leat_str *json)
{
	json_t *object = json_loads(metrics, 0, NULL);

	leat_str_add(json, ",\"metrics\":");
	if (!json_is_object(object) || json_dump_callback(object, append, json, JSON_COMPACT) != 0)
		leat_str_add(json, "{}");
	json_decref(object);
}

static void
add_manifest(struct leat_board *board, struct leat_cas *cas, const struct leat_manifest *manifest,
             struct leat_str *json)
{
	size_t inputs = 0, trees = 0;

	add_texts(manifest, json);
	add_metrics(manifest->metrics, json);
	add_figures(manifest, json);
	add_fields(manifest, json);
	leat_str_add(json, ",\"inputs\":[");
	for (size_t i = 0; i < manifest->fields; i++) {
		if (strncmp(manifest->field[i].name, "input.", 6) != 0)
			continue;
		leat_str_add(json, inputs++ ? "," : "");
		add_input(board, cas, &manifest->field[i], &trees, json);
	}
	leat_str_add(json, "],\"output\":{");
	add_content(&manifest->output, json);
	add_files(board, cas, &manifest->output, false, &trees, json);
	leat_str_add(json, "}}");
}

enum leat_status
leat_board_action(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
                  struct leat_err *err)
{
	struct leat_manifest *manifest;
	struct leat_digest key;
	struct leat_cas *cas;
	enum leat_status status = leat_board_store(board, &cas, err);

	if (status != LEAT_OK)
		return status;
	if (!leat_index_number(cas, request->word[0], request->number, &key))
		return leat_fail(err, LEAT_DATA, "there is no action %s-%llu that made something", request->word[0],
		                 (unsigned long long)request->number);
	status = leat_cas_manifest(cas, &key, &manifest, err);
	if (status != LEAT_OK)
		return status;
	add_manifest(board, cas, manifest, json);
	leat_manifest_free(manifest, board->mem);
	return LEAT_OK;
}
