/* bucket.c - see bucket.h */
#include "bucket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OBJECTS = 16, UPLOADS = 64, PARTS = 16, LINKS = 1024, HEAD = 16384, MD5 = 16 };

struct object {
	char path[256], etag[64];
	char *bytes;
	size_t len;
};

struct upload {
	char path[256];
	int id; /* 0: none */
	struct object part[PARTS];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t left;
	pthread_t accepts;
	int listens, port, ids;
	int fd[LINKS], open;
	bool stops;
	struct object object[OBJECTS];
	struct upload upload[UPLOADS];
	enum bucket_act act;
	enum bucket_trouble trouble;
	int troubles, count[BUCKET_ACTS], parts, most_parts, nonsense;
	char last[HEAD];
} bucket = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

struct request {
	int fd;
	char head[HEAD], method[8], path[256], query[256];
	char *body;
	size_t len;
	enum bucket_act act;
	enum bucket_trouble trouble;
};

/* ---- objects; under the lock ---- */

static struct object *
find_object(const char *path)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (strcmp(bucket.object[i].path, path) == 0)
			return &bucket.object[i];
	return NULL;
}

static struct upload *
find_upload(int id)
{
	for (size_t i = 0; i < UPLOADS; i++)
		if (bucket.upload[i].id == id)
			return &bucket.upload[i];
	return NULL;
}

static void
forget_object(struct object *object)
{
	free(object->bytes);
	*object = (struct object){0};
}

static void
forget_upload(struct upload *upload)
{
	for (size_t i = 0; i < PARTS; i++)
		forget_object(&upload->part[i]);
	*upload = (struct upload){0};
}

static void
set_etag(struct object *object, const void *bytes, size_t len, int parts)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	int used = 1;

	EVP_Digest(bytes, len, sum, NULL, EVP_md5(), NULL);
	object->etag[0] = '"';
	for (size_t i = 0; i < MD5; i++)
		used += snprintf(object->etag + used, sizeof(object->etag) - (size_t)used, "%02x", sum[i]);
	if (parts)
		used += snprintf(object->etag + used, sizeof(object->etag) - (size_t)used, "-%d", parts);
	strcpy(object->etag + used, "\"");
}

/* Takes the bytes. */
static struct object *
set_object(struct object *object, const char *path, char *bytes, size_t len)
{
	if (!object)
		abort();
	free(object->bytes);
	snprintf(object->path, sizeof(object->path), "%s", path);
	object->bytes = bytes;
	object->len = len;
	set_etag(object, bytes, len, 0);
	return object;
}

static struct object *
put_object(const char *path, char *bytes, size_t len)
{
	struct object *object = find_object(path);

	return set_object(object ? object : find_object(""), path, bytes, len);
}

static struct object *
join_parts(struct upload *upload)
{
	unsigned char sums[PARTS * MD5];
	struct object *object;
	char *bytes = NULL;
	size_t len = 0;
	int parts = 0;

	for (; parts < PARTS && upload->part[parts].bytes; parts++) {
		const struct object *part = &upload->part[parts];

		bytes = realloc(bytes, len + part->len + 1);
		if (!bytes)
			abort();
		memcpy(bytes + len, part->bytes, part->len);
		len += part->len;
		EVP_Digest(part->bytes, part->len, sums + parts * MD5, NULL, EVP_md5(), NULL);
	}
	object = put_object(upload->path, bytes, len);
	set_etag(object, sums, (size_t)parts * MD5, parts);
	forget_upload(upload);
	return object;
}

/* ---- answers ---- */

static bool
say(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

static void
reset(int fd)
{
	struct linger linger = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static bool
answer(const struct request *r, const char *status, const char *fields, const char *body)
{
	char text[2048];
	int len = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, fields,
	                   strlen(body), strcmp(r->method, "HEAD") == 0 ? "" : body);

	return say(r->fd, text, (size_t)len);
}

static bool
fail_with(const struct request *r, const char *status, const char *code)
{
	char body[256];

	snprintf(body, sizeof(body), "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>no</Message></Error>",
	         code);
	return answer(r, status, "", body);
}

static bool
answer_etag(const struct request *r, const struct object *object, const char *body)
{
	char fields[128];

	snprintf(fields, sizeof(fields), "ETag: %s\r\n", object->etag);
	return answer(r, "200 OK", r->trouble == BUCKET_NO_ETAG ? "" : fields, body);
}

static bool
answer_object(const struct request *r, const struct object *object)
{
	char fields[256];
	int len = snprintf(fields, sizeof(fields), "HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: %zu\r\n\r\n",
	                   object->etag, object->len);

	return say(r->fd, fields, (size_t)len) &&
	       (strcmp(r->method, "HEAD") == 0 || say(r->fd, object->bytes, object->len));
}

/* ---- requests ---- */

static const char *
field(const struct request *r, const char *name)
{
	const char *at = strcasestr(r->head, name);

	return at ? at + strlen(name) : NULL;
}

static enum bucket_act
act_of(const struct request *r)
{
	bool upload = strstr(r->query, "uploadId=") != NULL;

	if (strcmp(r->method, "POST") == 0)
		return upload ? BUCKET_COMPLETE : BUCKET_CREATE;
	if (strcmp(r->method, "DELETE") == 0)
		return upload ? BUCKET_ABORT : BUCKET_DELETE;
	if (strcmp(r->method, "PUT") != 0)
		return BUCKET_HEAD;
	return upload ? BUCKET_PART : field(r, "x-amz-copy-source: ") ? BUCKET_COPY : BUCKET_PUT;
}

static void
decode(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		unsigned c;

		if (*from == '%' && sscanf(from + 1, "%2x", &c) == 1) {
			*to = (char)c;
			from += 3;
		} else
			*to = *from++;
	}
	*to = '\0';
}

/* Its head, byte by byte: nothing of the body is read. */
static bool
read_head(struct request *r)
{
	size_t len = 0;
	const char *length;
	char target[513];

	while (len + 1 < HEAD && (len < 4 || memcmp(r->head + len - 4, "\r\n\r\n", 4) != 0))
		if (recv(r->fd, r->head + len++, 1, 0) <= 0)
			return false;
	r->head[len] = '\0';
	if (sscanf(r->head, "%7[A-Z] /%511s", r->method, target + 1) != 2) {
		pthread_mutex_lock(&bucket.lock);
		bucket.nonsense++;
		pthread_mutex_unlock(&bucket.lock);
		return false;
	}
	target[0] = '/';
	length = field(r, "\r\ncontent-length: ");
	r->len = length ? strtoul(length, NULL, 10) : 0;
	r->path[0] = r->query[0] = '\0';
	sscanf(target, "%255[^?]?%255s", r->path, r->query);
	decode(r->path);
	r->act = act_of(r);
	pthread_mutex_lock(&bucket.lock);
	r->trouble = bucket.troubles && bucket.act == r->act ? bucket.trouble : BUCKET_NONE;
	bucket.troubles -= r->trouble != BUCKET_NONE;
	strcpy(bucket.last, r->head);
	bucket.count[r->act]++; /* before the client has an answer */
	bucket.parts += r->act == BUCKET_PART;
	if (bucket.parts > bucket.most_parts)
		bucket.most_parts = bucket.parts;
	pthread_mutex_unlock(&bucket.lock);
	return true;
}

static bool
read_body(struct request *r)
{
	size_t got = 0, most = r->trouble == BUCKET_RESET ? r->len / 2 : r->len;

	r->body = malloc(r->len + 1);
	while (r->body && got < most) {
		ssize_t n = recv(r->fd, r->body + got, most - got, 0);

		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	if (r->trouble == BUCKET_RESET)
		reset(r->fd);
	return r->body && r->trouble != BUCKET_RESET;
}

/* Under the lock. */
static bool
answer_upload(struct request *r)
{
	const char *id_text = strstr(r->query, "uploadId="), *number_text = strstr(r->query, "partNumber=");
	struct upload *upload = id_text ? find_upload(atoi(id_text + 9)) : find_upload(0);
	int number = number_text ? atoi(number_text + 11) : 1;
	char body[256];

	if (!upload || (id_text && atoi(id_text + 9) == 0) || r->trouble == BUCKET_NO_UPLOAD)
		return fail_with(r, "404 Not Found", "NoSuchUpload");
	if (number < 1 || number > PARTS)
		abort();
	switch (r->act) {
	case BUCKET_CREATE:
		upload->id = ++bucket.ids;
		strcpy(upload->path, r->path);
		snprintf(body, sizeof(body),
		         "<InitiateMultipartUploadResult><UploadId>%d</UploadId>"
		         "</InitiateMultipartUploadResult>",
		         upload->id);
		return answer(r, "200 OK", "", r->trouble == BUCKET_NONSENSE ? "<html>" : body);
	case BUCKET_PART:
		set_object(&upload->part[number - 1], r->path, r->body, r->len);
		r->body = NULL;
		return answer_etag(r, &upload->part[number - 1], "");
	case BUCKET_COMPLETE:
		if (r->trouble == BUCKET_ERROR)
			return fail_with(r, "200 OK", "InternalError");
		if (field(r, "if-none-match: *") && find_object(upload->path))
			return fail_with(r, "412 Precondition Failed", "PreconditionFailed");
		return answer_etag(r, join_parts(upload), "<CompleteMultipartUploadResult/>");
	default:
		forget_upload(upload);
		return answer(r, "204 No Content", "", "");
	}
}

/* Under the lock. */
static bool
copy_object(const struct request *r)
{
	const struct object *from;
	char path[300] = "/", *bytes;

	sscanf(field(r, "x-amz-copy-source: "), "%298[^\r]", path + 1);
	decode(path);
	from = find_object(path);
	if (!from)
		return fail_with(r, "404 Not Found", "NoSuchKey");
	if (r->trouble == BUCKET_ERROR)
		return fail_with(r, "200 OK", "InternalError");
	bytes = malloc(from->len + 1);
	if (!bytes)
		abort();
	memcpy(bytes, from->bytes, from->len);
	return answer_etag(r, put_object(r->path, bytes, from->len), "<CopyObjectResult/>");
}

/* Under the lock. */
static bool
act(struct request *r)
{
	struct object *object = find_object(r->path);

	switch (r->act) {
	case BUCKET_PUT:
		if (object && field(r, "if-none-match: *"))
			return fail_with(r, "412 Precondition Failed", "PreconditionFailed");
		object = put_object(r->path, r->body, r->len);
		r->body = NULL;
		return answer_etag(r, object, "");
	case BUCKET_COPY:
		return copy_object(r);
	case BUCKET_HEAD:
		return object ? answer_object(r, object) : fail_with(r, "404 Not Found", "NoSuchKey");
	case BUCKET_DELETE:
		if (object)
			forget_object(object);
		return answer(r, "204 No Content", "", "");
	default:
		return answer_upload(r);
	}
}

static bool
answer_request(struct request *r)
{
	int real = r->fd, lost[2];
	bool stays;

	switch (r->trouble) {
	case BUCKET_BUSY:
		return fail_with(r, "503 Slow Down", "SlowDown");
	case BUCKET_EXPIRED:
		return fail_with(r, "403 Forbidden", "ExpiredToken");
	case BUCKET_ELSEWHERE:
		return answer(r, "301 Moved Permanently", "x-amz-bucket-region: eu-test-1\r\n", "");
	case BUCKET_LOST: /* the answer goes nowhere */
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, lost) != 0)
			abort();
		r->fd = lost[0];
		break;
	default:
		break;
	}
	pthread_mutex_lock(&bucket.lock);
	stays = act(r);
	pthread_mutex_unlock(&bucket.lock);
	if (r->trouble == BUCKET_LOST) {
		close(lost[0]);
		close(lost[1]);
	}
	r->fd = real;
	return stays && r->trouble != BUCKET_LOST;
}

static bool
serve_one(struct request *r)
{
	bool stays;

	r->body = NULL;
	if (!read_head(r))
		return false;
	if (r->trouble == BUCKET_DENIED) {
		fail_with(r, "403 Forbidden", "AccessDenied");
		stays = false;
	} else if (r->trouble == BUCKET_EARLY) {
		stays = fail_with(r, "503 Slow Down", "SlowDown") && read_body(r);
	} else {
		stays = read_body(r) && answer_request(r);
	}
	free(r->body);
	pthread_mutex_lock(&bucket.lock);
	bucket.parts -= r->act == BUCKET_PART;
	pthread_mutex_unlock(&bucket.lock);
	return stays;
}

static void *
serve(void *arg)
{
	int *slot = arg;
	struct request *r = malloc(sizeof(*r));

	if (!r)
		abort();
	r->fd = *slot;
	while (serve_one(r))
		;
	pthread_mutex_lock(&bucket.lock);
	close(r->fd);
	*slot = 0;
	bucket.open--;
	pthread_cond_signal(&bucket.left);
	pthread_mutex_unlock(&bucket.lock);
	free(r);
	return NULL;
}

/* ---- the server ---- */

static void *
accept_all(void *arg)
{
	int fd, one = 1;

	(void)arg;
	while ((fd = accept(bucket.listens, NULL, NULL)) >= 0) {
		int *slot = bucket.fd;
		pthread_t thread;

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pthread_mutex_lock(&bucket.lock);
		while (slot < bucket.fd + LINKS && *slot)
			slot++;
		if (slot == bucket.fd + LINKS)
			abort();
		*slot = fd;
		bucket.open++;
		if (pthread_create(&thread, NULL, serve, slot) != 0)
			abort();
		pthread_detach(thread);
		pthread_mutex_unlock(&bucket.lock);
	}
	return NULL;
}

void
bucket_start(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int small = 64 * 1024; /* a part does not fit into the buffers between us */
	char url[64];

	bucket.listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bucket.listens < 0 || setsockopt(bucket.listens, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) != 0 ||
	    bind(bucket.listens, (struct sockaddr *)&address, len) != 0 || listen(bucket.listens, 64) != 0 ||
	    getsockname(bucket.listens, (struct sockaddr *)&address, &len) != 0)
		abort();
	memset(bucket.count, 0, sizeof(bucket.count));
	bucket.troubles = bucket.parts = bucket.most_parts = bucket.nonsense = 0;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
	setenv("AWS_ENDPOINT_URL", url, 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "SECRETTEST", 1);
	if (pthread_create(&bucket.accepts, NULL, accept_all, NULL) != 0)
		abort();
}

void
bucket_stop(void)
{
	shutdown(bucket.listens, SHUT_RDWR);
	pthread_join(bucket.accepts, NULL);
	close(bucket.listens);
	pthread_mutex_lock(&bucket.lock);
	for (size_t i = 0; i < LINKS; i++)
		if (bucket.fd[i])
			shutdown(bucket.fd[i], SHUT_RDWR);
	while (bucket.open)
		pthread_cond_wait(&bucket.left, &bucket.lock);
	for (size_t i = 0; i < OBJECTS; i++)
		forget_object(&bucket.object[i]);
	for (size_t i = 0; i < UPLOADS; i++)
		forget_upload(&bucket.upload[i]);
	pthread_mutex_unlock(&bucket.lock);
}

void
bucket_set_trouble(enum bucket_act what, enum bucket_trouble trouble, int count)
{
	pthread_mutex_lock(&bucket.lock);
	bucket.act = what;
	bucket.trouble = trouble;
	bucket.troubles = count;
	pthread_mutex_unlock(&bucket.lock);
}

static int
read_locked(const int *number)
{
	int value;

	pthread_mutex_lock(&bucket.lock);
	value = *number;
	pthread_mutex_unlock(&bucket.lock);
	return value;
}

int
bucket_count(enum bucket_act what)
{
	return read_locked(&bucket.count[what]);
}

int
bucket_most_parts(void)
{
	return read_locked(&bucket.most_parts);
}

int
bucket_nonsense(void)
{
	return read_locked(&bucket.nonsense);
}

int
bucket_uploads(void)
{
	int count = 0;

	pthread_mutex_lock(&bucket.lock);
	for (size_t i = 0; i < UPLOADS; i++)
		count += bucket.upload[i].id != 0;
	pthread_mutex_unlock(&bucket.lock);
	return count;
}

const void *
bucket_get(const char *path, size_t *len)
{
	const struct object *object;
	const void *bytes = NULL;

	pthread_mutex_lock(&bucket.lock);
	object = find_object(path);
	if (object) {
		*len = object->len;
		bytes = object->bytes;
	}
	pthread_mutex_unlock(&bucket.lock);
	return bytes;
}

const char *
bucket_last(void)
{
	static char last[HEAD];

	pthread_mutex_lock(&bucket.lock);
	strcpy(last, bucket.last);
	pthread_mutex_unlock(&bucket.lock);
	return last;
}
