/* batch_arrow.c - a batch as a record batch of the Arrow C data interface
 *
 * Buffers are the batch's own memory. A consumer may move any child out of its parent and release it later, from any
 * thread, so each array that has buffers of the batch holds its own reference to the field. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/batch.h"
#include "feed/feed.h"
#include "format/arrow.h"

enum { BUFFERS = 3, FORMAT = 24 };

/* ---- nodes ---- */

/* What an array owns. */
struct node {
	struct leat_batch *batch; /* NULL: no buffer is the batch's */
	int column;
	void *packed; /* bits made of bytes */
	const void *buffer[BUFFERS];
	struct ArrowArray **child;
	struct ArrowArray children[];
};

static void
release_array(struct ArrowArray *self)
{
	struct node *node = self->private_data;

	for (int64_t i = 0; i < self->n_children; i++)
		if (node->children[i].release)
			node->children[i].release(&node->children[i]);
	if (node->batch)
		leat_batch_release_field(node->batch, node->column);
	free(node->packed);
	free(node->child);
	free(node);
	self->release = NULL;
}

/* NULL: no memory, and *array needs no release. */
static struct node *
add_array(struct ArrowArray *array, int64_t length, int buffers, int children)
{
	struct node *node = calloc(1, sizeof(*node) + (size_t)children * sizeof(*node->children));

	*array = (struct ArrowArray){0};
	if (!node)
		return NULL;
	node->child = calloc((size_t)children + 1, sizeof(*node->child));
	if (!node->child) {
		free(node);
		return NULL;
	}
	for (int i = 0; i < children; i++)
		node->child[i] = &node->children[i];
	*array = (struct ArrowArray){
		.length = length,
		.n_buffers = buffers,
		.buffers = node->buffer,
		.n_children = children,
		.children = node->child,
		.release = release_array,
		.private_data = node,
	};
	return node;
}

/* What a schema owns. */
struct shape {
	char name[LEAT_MAX_NAME + 1], format[FORMAT];
	struct ArrowSchema **child;
	struct ArrowSchema children[];
};

static void
release_schema(struct ArrowSchema *self)
{
	struct shape *shape = self->private_data;

	for (int64_t i = 0; i < self->n_children; i++)
		if (shape->children[i].release)
			shape->children[i].release(&shape->children[i]);
	free(shape->child);
	free(shape);
	self->release = NULL;
}

static struct shape *
add_schema(struct ArrowSchema *schema, const char *name, const char *format, int children)
{
	struct shape *shape = calloc(1, sizeof(*shape) + (size_t)children * sizeof(*shape->children));

	*schema = (struct ArrowSchema){0};
	if (!shape)
		return NULL;
	shape->child = calloc((size_t)children + 1, sizeof(*shape->child));
	if (!shape->child) {
		free(shape);
		return NULL;
	}
	snprintf(shape->name, sizeof(shape->name), "%s", name);
	snprintf(shape->format, sizeof(shape->format), "%s", format);
	for (int i = 0; i < children; i++)
		shape->child[i] = &shape->children[i];
	*schema = (struct ArrowSchema){
		.format = shape->format,
		.name = shape->name,
		.n_children = children,
		.children = shape->child,
		.release = release_schema,
		.private_data = shape,
	};
	return shape;
}

/* ---- fields ---- */

/* A field on its way into both structs. */
struct field {
	struct leat_batch *batch;
	int column;
};

static const char *
format_of(enum leat_dtype dtype)
{
	static const char *const format[] = {
		[LEAT_U8] = "C",  [LEAT_I32] = "i", [LEAT_I64] = "l",  [LEAT_F16] = "e", [LEAT_BF16] = "S",
		[LEAT_F32] = "f", [LEAT_F64] = "g", [LEAT_BOOL] = "b", [LEAT_I8] = "c",  [LEAT_I16] = "s",
		[LEAT_U16] = "S", [LEAT_U32] = "I", [LEAT_U64] = "L",
	};

	return format[dtype];
}

static void
hold(const struct field *f, struct node *node)
{
	leat_batch_hold_field(f->batch, f->column);
	node->batch = f->batch;
	node->column = f->column;
}

static void *
pack_bits(const uint8_t *bytes, int64_t count)
{
	uint8_t *bits = calloc(1, (size_t)count / 8 + 8);

	for (int64_t i = 0; bits && i < count; i++)
		bits[i / 8] |= (uint8_t)((bytes[i] != 0) << i % 8);
	return bits;
}

static bool
add_numbers(const struct field *f, const char *name, enum leat_dtype dtype, const void *data, int64_t count,
            struct ArrowSchema *schema, struct ArrowArray *array)
{
	struct node *node;

	if (!add_schema(schema, name, format_of(dtype), 0) || !(node = add_array(array, count, 2, 0)))
		return false;
	if (dtype == LEAT_BOOL) {
		node->buffer[1] = node->packed = pack_bits(data, count);
		return node->packed != NULL;
	}
	node->buffer[1] = data;
	hold(f, node);
	return true;
}

/* Lists of a fixed size, one in the other. */
static bool
add_dense(const struct field *f, const char *name, const struct leat_tensor *tensor, int dim, int64_t count,
          struct ArrowSchema *schema, struct ArrowArray *array)
{
	char format[FORMAT];
	struct shape *shape;
	struct node *node;

	if (dim == tensor->ndim)
		return add_numbers(f, name, tensor->dtype, tensor->data, count, schema, array);
	snprintf(format, sizeof(format), "+w:%lld", (long long)tensor->shape[dim]);
	shape = add_schema(schema, name, format, 1);
	node = shape ? add_array(array, count, 1, 1) : NULL;
	return node && add_dense(f, "item", tensor, dim + 1, count * tensor->shape[dim], &shape->children[0],
	                         &node->children[0]);
}

static bool
add_list(const struct field *f, const char *name, const struct leat_tensor *tensor, int64_t count,
         struct ArrowSchema *schema, struct ArrowArray *array)
{
	struct shape *shape = add_schema(schema, name, "+L", 1);
	struct node *node = shape ? add_array(array, count, 2, 1) : NULL;

	if (!node)
		return false;
	node->buffer[1] = tensor->offsets;
	hold(f, node);
	return add_numbers(f, "item", tensor->dtype, tensor->data, tensor->shape[0], &shape->children[0],
	                   &node->children[0]);
}

static bool
add_bytes(const struct field *f, const char *name, const struct leat_tensor *tensor, int64_t count,
          struct ArrowSchema *schema, struct ArrowArray *array)
{
	struct node *node;

	if (!add_schema(schema, name, "Z", 0) || !(node = add_array(array, count, 3, 0)))
		return false;
	node->buffer[1] = tensor->offsets;
	node->buffer[2] = tensor->data;
	hold(f, node);
	return true;
}

/* Samples of two or more dimensions: their values, and the shape of each. */
static bool
add_shaped(const struct field *f, const char *name, const struct leat_tensor *tensor, int64_t count,
           struct ArrowSchema *schema, struct ArrowArray *array)
{
	struct leat_tensor shapes = {
		.data = (void *)(uintptr_t)tensor->sample_shapes,
		.dtype = LEAT_I64,
		.ndim = 2,
		.shape = {count, f->batch->form->column[f->column].field.ndim},
	};
	struct shape *shape = add_schema(schema, name, "+s", 2);
	struct node *node = shape ? add_array(array, count, 1, 2) : NULL;

	return node && add_list(f, "values", tensor, count, &shape->children[0], &node->children[0]) &&
	       add_dense(f, "shape", &shapes, 1, count, &shape->children[1], &node->children[1]);
}

static bool
add_field(const struct field *f, struct ArrowSchema *schema, struct ArrowArray *array)
{
	const char *name = f->batch->form->column[f->column].field.name;
	int64_t count = f->batch->count;
	struct leat_tensor tensor;

	if (leat_batch_field(f->batch, name, &tensor, NULL) != LEAT_OK)
		return false;
	if (!tensor.offsets)
		return add_dense(f, name, &tensor, 1, count, schema, array);
	if (tensor.sample_shapes)
		return add_shaped(f, name, &tensor, count, schema, array);
	return tensor.dtype == LEAT_U8 ? add_bytes(f, name, &tensor, count, schema, array)
	                               : add_list(f, name, &tensor, count, schema, array);
}

/* ---- the batch ---- */

static bool
add_batch(struct leat_batch *batch, struct ArrowSchema *schema, struct ArrowArray *array)
{
	int fields = batch->form->columns, columns = fields + leat_has_fill(batch->feed);
	struct shape *shape = add_schema(schema, "", "+s", columns);
	struct node *node = shape ? add_array(array, batch->count, 1, columns) : NULL;

	for (int i = 0; node && i < fields; i++)
		if (!add_field(&(struct field){batch, i}, &shape->children[i], &node->children[i]))
			return false;
	if (node && columns > fields)
		return add_numbers(NULL, "valid", LEAT_BOOL, leat_batch_valid(batch), batch->count,
		                   &shape->children[fields], &node->children[fields]);
	return node != NULL;
}

enum leat_status
leat_batch_arrow(struct leat_batch *batch, struct ArrowSchema *schema, struct ArrowArray *array, struct leat_err *err)
{
	leat_err_clear(err);
	*schema = (struct ArrowSchema){0};
	*array = (struct ArrowArray){0};
	if (add_batch(batch, schema, array))
		return LEAT_OK;
	if (array->release)
		array->release(array);
	if (schema->release)
		schema->release(schema);
	return leat_fail(err, LEAT_NOMEM, "no memory for an Arrow batch");
}

/* ---- a stream ---- */

struct one {
	struct ArrowSchema schema;
	struct ArrowArray array; /* released: it was handed out */
};

static bool
copy_schema(const struct ArrowSchema *from, struct ArrowSchema *to)
{
	struct shape *shape = add_schema(to, from->name, from->format, (int)from->n_children);

	for (int64_t i = 0; shape && i < from->n_children; i++)
		if (!copy_schema(from->children[i], &shape->children[i]))
			return false;
	return shape != NULL;
}

static int
get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
	const struct one *one = self->private_data;

	if (copy_schema(&one->schema, out))
		return 0;
	if (out->release)
		out->release(out);
	return ENOMEM;
}

static int
get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
	struct one *one = self->private_data;

	*out = one->array;
	one->array = (struct ArrowArray){0};
	return 0;
}

static const char *
get_last_error(struct ArrowArrayStream *self)
{
	(void)self;
	return NULL;
}

static void
release_stream(struct ArrowArrayStream *self)
{
	struct one *one = self->private_data;

	if (one->array.release)
		one->array.release(&one->array);
	one->schema.release(&one->schema);
	free(one);
	self->release = NULL;
}

enum leat_status
leat_batch_arrow_stream(struct leat_batch *batch, struct ArrowArrayStream *stream, struct leat_err *err)
{
	struct one *one = calloc(1, sizeof(*one));
	enum leat_status status;

	*stream = (struct ArrowArrayStream){0};
	if (!one)
		return leat_fail(err, LEAT_NOMEM, "no memory for an Arrow batch");
	status = leat_batch_arrow(batch, &one->schema, &one->array, err);
	if (status != LEAT_OK) {
		free(one);
		return status;
	}
	*stream = (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_stream, one};
	return LEAT_OK;
}

/* ---- capsules ---- */

/* Weak: found where there is a Python interpreter. */
extern int PyCapsule_IsValid(void *capsule, const char *name) __attribute__((weak));
extern void *PyCapsule_GetPointer(void *capsule, const char *name) __attribute__((weak));

/* A consumer moves the struct out of the capsule and leaves it without a release. */
void
leat_arrow_capsule_free(void *capsule)
{
	if (PyCapsule_IsValid(capsule, "arrow_schema")) {
		struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

		if (schema->release)
			schema->release(schema);
		free(schema);
	} else if (PyCapsule_IsValid(capsule, "arrow_array")) {
		struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");

		if (array->release)
			array->release(array);
		free(array);
	} else if (PyCapsule_IsValid(capsule, "arrow_array_stream")) {
		struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");

		if (stream->release)
			stream->release(stream);
		free(stream);
	}
}
