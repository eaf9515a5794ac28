/* train_cells.c - trains a small convolutional network on batches that a feed brings
 *
 *	train_cells SPEC [--valid SPEC] [--epochs 5] [--seed 1] [--threads N] [--lr 0.002]
 *	            [--blas-threads 1] [--json]
 *	train_cells --check-gradient
 *
 * The spec's batches have a float field `image` [n, height, width, channels] and an int64 field
 * `label` of zeros and ones. The network takes its sizes from the feed:
 *
 *	image, standardized -> (conv 3x3 -> ReLU -> max pool 2x2) x 3 -> dense -> sigmoid
 *
 * It sees one image after the other, forward and back, so that all that a step touches stays in
 * the CPU's cache; the gradients of a batch add up. A convolution is a matrix product: im2col
 * copies the 3x3 neighbourhood of each output place into one row.
 *
 * One thread, and only leat.h: this is what a user's program looks like. */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cblas.h>

#include "leat.h"

enum { CONVS = 3, TAPS = 9 };

/* ---- parameters, and Adam who moves them ---- */

struct param {
	int count;
	float *value, *grad;
	float *mean, *square; /* Adam's running averages of the gradient and of its square */
};

static float *
floats(int count)
{
	float *p = calloc((size_t)count, sizeof(*p));

	if (!p)
		errx(1, "out of memory");
	return p;
}

/* splitmix64 */
static float
uniform(uint64_t *state, float low, float high)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return low + (high - low) * (float)(x >> 40) * 0x1p-24f;
}

/* Values uniform in [-bound, bound): 0 for biases, He's sqrt(6 / inputs) for weights. */
static struct param
make_param(int count, float bound, uint64_t *random)
{
	struct param p = {count, floats(count), floats(count), floats(count), floats(count)};

	for (int i = 0; i < count; i++)
		p.value[i] = uniform(random, -bound, bound);
	return p;
}

static void
free_param(struct param *p)
{
	free(p->value);
	free(p->grad);
	free(p->mean);
	free(p->square);
}

/* One step against the gradient, which is then zero again. */
static void
adam(struct param *p, float rate, long step)
{
	const float keep_mean = 0.9f, keep_square = 0.999f;
	float unbias_mean = 1 - powf(keep_mean, (float)step), unbias_square = 1 - powf(keep_square, (float)step);

	for (int i = 0; i < p->count; i++) {
		float g = p->grad[i];

		p->mean[i] += (1 - keep_mean) * (g - p->mean[i]);
		p->square[i] += (1 - keep_square) * (g * g - p->square[i]);
		p->value[i] -= rate * (p->mean[i] / unbias_mean) / (sqrtf(p->square[i] / unbias_square) + 1e-8f);
		p->grad[i] = 0;
	}
}

/* ---- one layer: conv 3x3 -> ReLU -> max pool 2x2, in height x width x channels order ---- */

struct conv {
	int in_h, in_w, in_c;    /* what comes in */
	int mid_h, mid_w, out_c; /* after the convolution */
	int out_h, out_w;        /* after the pool */
	int stride;
	struct param weight; /* [3 * 3 * in_c, out_c] */
	struct param bias;   /* [out_c] */
	float *columns;      /* [mid_h * mid_w, 3 * 3 * in_c]: the neighbourhoods, or their gradients */
	float *mid, *mid_grad;
	float *out, *out_grad;
};

static struct conv
make_conv(int in_h, int in_w, int in_c, int out_c, int stride, uint64_t *random)
{
	struct conv l = {.in_h = in_h, .in_w = in_w, .in_c = in_c, .out_c = out_c, .stride = stride};
	int inputs = TAPS * in_c;

	l.mid_h = (in_h + stride - 1) / stride; /* one line of zeros around the image keeps its size */
	l.mid_w = (in_w + stride - 1) / stride;
	l.out_h = l.mid_h / 2;
	l.out_w = l.mid_w / 2;
	if (l.out_h < 1 || l.out_w < 1)
		errx(1, "images of this size are too small for %d layers: resize them to 16x16 or more", CONVS);
	l.weight = make_param(inputs * out_c, sqrtf(6 / (float)inputs), random);
	l.bias = make_param(out_c, 0, random);
	l.columns = floats(l.mid_h * l.mid_w * inputs);
	l.mid = floats(l.mid_h * l.mid_w * out_c);
	l.mid_grad = floats(l.mid_h * l.mid_w * out_c);
	l.out = floats(l.out_h * l.out_w * out_c);
	l.out_grad = floats(l.out_h * l.out_w * out_c);
	return l;
}

static void
free_conv(struct conv *l)
{
	free_param(&l->weight);
	free_param(&l->bias);
	free(l->columns);
	free(l->mid);
	free(l->mid_grad);
	free(l->out);
	free(l->out_grad);
}

/* The taps of one line of the kernel that lie inside the image, around output column x:
 * taps [*from, *to) of 3. In memory they are neighbours, so one copy takes them all. */
static void
taps_inside(const struct conv *l, int x, int *from, int *to)
{
	int left = x * l->stride - 1;

	*from = left < 0 ? 1 : 0;
	*to = left + 3 > l->in_w ? l->in_w - left : 3;
}

static void
im2col(struct conv *l, const float *in)
{
	float *row = l->columns;

	for (int y = 0; y < l->mid_h; y++) {
		for (int x = 0; x < l->mid_w; x++) {
			int from, to;

			taps_inside(l, x, &from, &to);
			for (int ky = 0; ky < 3; ky++, row += 3 * l->in_c) {
				int in_y = y * l->stride + ky - 1, in_x = x * l->stride + from - 1;

				if (in_y < 0 || in_y >= l->in_h) {
					memset(row, 0, sizeof(*row) * (size_t)(3 * l->in_c));
					continue;
				}
				if (to - from < 3)
					memset(row, 0, sizeof(*row) * (size_t)(3 * l->in_c));
				memcpy(row + from * l->in_c, in + (in_y * l->in_w + in_x) * l->in_c,
				       sizeof(*row) * (size_t)((to - from) * l->in_c));
			}
		}
	}
}

/* The way back: each input gets the gradients of all the neighbourhoods it was copied to. */
static void
col2im(const struct conv *l, float *in_grad)
{
	const float *row = l->columns;

	memset(in_grad, 0, sizeof(*in_grad) * (size_t)(l->in_h * l->in_w * l->in_c));
	for (int y = 0; y < l->mid_h; y++) {
		for (int x = 0; x < l->mid_w; x++) {
			int from, to;

			taps_inside(l, x, &from, &to);
			for (int ky = 0; ky < 3; ky++, row += 3 * l->in_c) {
				int in_y = y * l->stride + ky - 1, in_x = x * l->stride + from - 1;
				float *to_in;

				if (in_y < 0 || in_y >= l->in_h)
					continue;
				to_in = in_grad + (in_y * l->in_w + in_x) * l->in_c;
				for (int i = 0; i < (to - from) * l->in_c; i++)
					to_in[i] += row[from * l->in_c + i];
			}
		}
	}
}

static float
larger(float a, float b)
{
	return a > b ? a : b;
}

/* ReLU and pool in one: the largest of four places, or zero. */
static void
relu_pool(struct conv *l)
{
	int line = l->mid_w * l->out_c;
	float *restrict out = l->out;

	for (int y = 0; y < l->out_h; y++) {
		for (int x = 0; x < l->out_w; x++, out += l->out_c) {
			const float *top = l->mid + 2 * (y * line + x * l->out_c), *top_right = top + l->out_c;
			const float *low = top + line, *low_right = low + l->out_c;

			for (int c = 0; c < l->out_c; c++)
				out[c] = larger(larger(larger(top[c], top_right[c]), larger(low[c], low_right[c])), 0);
		}
	}
}

/* Hands *grad to a place that holds the maximum, if no place has had it yet. */
static float
claim(float place, float maximum, float *grad)
{
	float mine = place == maximum ? *grad : 0;

	*grad = place == maximum ? 0 : *grad;
	return mine;
}

/* The way back, from out_grad to mid_grad and the bias: the first place that holds the maximum gets
 * it all. A last line or column that no pool sees keeps the zeros it was made with. */
static void
relu_pool_backward(struct conv *l)
{
	int line = l->mid_w * l->out_c;
	const float *out = l->out, *out_grad = l->out_grad;
	float *restrict bias = l->bias.grad;

	for (int y = 0; y < l->out_h; y++) {
		for (int x = 0; x < l->out_w; x++, out += l->out_c, out_grad += l->out_c) {
			int at = 2 * (y * line + x * l->out_c), right = l->out_c;
			const float *top = l->mid + at, *low = top + line;
			float *restrict to_top = l->mid_grad + at, *restrict to_low = to_top + line;

			for (int c = 0; c < l->out_c; c++) {
				float grad = out[c] > 0 ? out_grad[c] : 0;

				bias[c] += grad;
				to_top[c] = claim(top[c], out[c], &grad);
				to_top[c + right] = claim(top[c + right], out[c], &grad);
				to_low[c] = claim(low[c], out[c], &grad);
				to_low[c + right] = claim(low[c + right], out[c], &grad);
			}
		}
	}
}

static void
conv_forward(struct conv *l, const float *in)
{
	int places = l->mid_h * l->mid_w, inputs = TAPS * l->in_c;

	im2col(l, in);
	for (int i = 0; i < places; i++)
		memcpy(l->mid + i * l->out_c, l->bias.value, sizeof(float) * (size_t)l->out_c);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, places, l->out_c, inputs, 1, l->columns, inputs,
	            l->weight.value, l->out_c, 1, l->mid, l->out_c);
	relu_pool(l);
}

/* From out_grad to the gradients of weight and bias, which are added to, and of the input, unless
 * in_grad is NULL. `columns` still holds what the forward pass put there. */
static void
conv_backward(struct conv *l, float *in_grad)
{
	int places = l->mid_h * l->mid_w, inputs = TAPS * l->in_c;

	relu_pool_backward(l);
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, inputs, l->out_c, places, 1, l->columns, inputs,
	            l->mid_grad, l->out_c, 1, l->weight.grad, l->out_c);
	if (!in_grad)
		return;
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, places, inputs, l->out_c, 1, l->mid_grad, l->out_c,
	            l->weight.value, l->out_c, 0, l->columns, inputs);
	col2im(l, in_grad);
}

/* ---- the network ---- */

struct net {
	float *image; /* standardized */
	struct conv conv[CONVS];
	int features;              /* that come out of the last of them */
	struct param weight, bias; /* of the dense layer: [features] and one */
	long steps;
};

/* `width` channels come out of the first layer, and twice as many of each further one. */
static struct net
make_net(int h, int w, int c, int width, int stride, uint64_t seed)
{
	struct net net = {.image = floats(h * w * c)};

	for (int i = 0; i < CONVS; i++) {
		struct conv *l = &net.conv[i];

		*l = make_conv(h, w, c, width << i, i == 0 ? stride : 1, &seed);
		h = l->out_h;
		w = l->out_w;
		c = l->out_c;
	}
	net.features = h * w * c;
	net.weight = make_param(net.features, sqrtf(6 / (float)net.features), &seed);
	net.bias = make_param(1, 0, &seed);
	return net;
}

static void
free_net(struct net *net)
{
	for (int i = 0; i < CONVS; i++)
		free_conv(&net->conv[i]);
	free_param(&net->weight);
	free_param(&net->bias);
	free(net->image);
}

enum { PARAMS = 2 * CONVS + 2 };

static struct param *
param_at(struct net *net, int i)
{
	if (i < 2 * CONVS)
		return i % 2 == 0 ? &net->conv[i / 2].weight : &net->conv[i / 2].bias;
	return i == 2 * CONVS ? &net->weight : &net->bias;
}

/* Every channel to mean 0 and deviation 1, because how strong the stain and the light are says
 * nothing. A little is added to the deviation, for images of one colour. */
static void
standardize(const float *in, float *out, int pixels, int channels)
{
	for (int c = 0; c < channels; c++) {
		double sum = 0, squares = 0, mean, deviation;

		for (int i = c; i < pixels * channels; i += channels) {
			sum += (double)in[i];
			squares += (double)in[i] * (double)in[i];
		}
		mean = sum / pixels;
		deviation = sqrt(fmax(squares / pixels - mean * mean, 0)) + 0.05;
		for (int i = c; i < pixels * channels; i += channels)
			out[i] = (in[i] - (float)mean) / (float)deviation;
	}
}

/* The answer before the sigmoid: positive means 1. */
static float
forward(struct net *net, const float *image)
{
	const struct conv *first = &net->conv[0], *last = &net->conv[CONVS - 1];

	standardize(image, net->image, first->in_h * first->in_w, first->in_c);
	for (int i = 0; i < CONVS; i++)
		conv_forward(&net->conv[i], i == 0 ? net->image : net->conv[i - 1].out);
	return net->bias.value[0] + cblas_sdot(net->features, net->weight.value, 1, last->out, 1);
}

/* After forward: adds the gradients of one image, whose answer has the gradient `grad`. */
static void
backward(struct net *net, float grad)
{
	struct conv *last = &net->conv[CONVS - 1];

	net->bias.grad[0] += grad;
	cblas_saxpy(net->features, grad, last->out, 1, net->weight.grad, 1);
	for (int i = 0; i < net->features; i++)
		last->out_grad[i] = grad * net->weight.value[i];
	for (int i = CONVS - 1; i >= 0; i--)
		conv_backward(&net->conv[i], i == 0 ? NULL : net->conv[i - 1].out_grad);
}

static void
update(struct net *net, float rate)
{
	net->steps++;
	for (int i = 0; i < PARAMS; i++)
		adam(param_at(net, i), rate, net->steps);
}

/* Cross entropy of sigmoid(answer) and the label, in the form that cannot overflow. */
static double
loss_of(double answer, int64_t label)
{
	return fmax(answer, 0) - answer * (double)label + log1p(exp(-fabs(answer)));
}

static float
loss_grad(float answer, int64_t label)
{
	return 1 / (1 + expf(-answer)) - (float)label;
}

/* ---- an epoch ---- */

struct score {
	double loss; /* mean */
	double accuracy;
	double seconds, waited; /* waited: seconds inside leat_next */
	long samples;
};

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double
waited_until_now(const struct leat_feed *feed)
{
	struct leat_stats stats;

	leat_stats(feed, &stats);
	return (double)stats.wait_ns * 1e-9;
}

/* Adds a batch to the score; trains on it when rate > 0. */
static void
run_batch(struct net *net, const struct leat_batch *batch, float rate, struct score *score)
{
	struct leat_tensor image, label;
	struct leat_err error;
	int64_t count = leat_batch_count(batch), valid_count = 0;
	const uint8_t *valid = leat_batch_valid(batch);

	if (leat_batch_field(batch, "image", &image, &error) != LEAT_OK ||
	    leat_batch_field(batch, "label", &label, &error) != LEAT_OK)
		errx(1, "%s", error.text);
	for (int64_t i = 0; i < count; i++)
		valid_count += valid[i];
	for (int64_t i = 0; i < count; i++) {
		const float *pixels = (const float *)image.data + i * image.shape[1] * image.shape[2] * image.shape[3];
		int64_t wanted = ((const int64_t *)label.data)[i];
		float answer;

		if (!valid[i])
			continue;
		if (wanted != 0 && wanted != 1)
			errx(1, "a label is %lld, but this network tells only 0 from 1", (long long)wanted);
		answer = forward(net, pixels);
		score->loss += loss_of(answer, wanted);
		score->accuracy += (answer > 0) == wanted;
		if (rate > 0)
			backward(net, loss_grad(answer, wanted) / (float)valid_count);
	}
	score->samples += valid_count;
	if (rate > 0 && valid_count > 0)
		update(net, rate);
}

static struct score
run_epoch(struct net *net, struct leat_feed *feed, float rate)
{
	struct score score = {0};
	struct leat_batch *batch = NULL;
	struct leat_err error;
	enum leat_status status;
	double start = now(), waited = waited_until_now(feed);

	while ((status = leat_next(feed, &batch, &error)) == LEAT_OK) {
		run_batch(net, batch, rate, &score);
		leat_release(batch);
	}
	if (status != LEAT_END && status != LEAT_DONE)
		errx(1, "%s", error.text);
	if (score.samples == 0)
		errx(1, "the feed gave no samples");
	score.seconds = now() - start;
	score.waited = waited_until_now(feed) - waited;
	score.loss /= (double)score.samples;
	score.accuracy /= (double)score.samples;
	return score;
}

/* ---- the program ---- */

struct arguments {
	const char *train, *valid;
	uint64_t epochs, seed;
	unsigned threads;
	int blas_threads;
	float rate;
	bool json, check;
};

static struct leat_feed *
open_feed(const char *spec, const struct arguments *arg)
{
	struct leat_feed *feed = NULL;
	struct leat_options options;
	struct leat_err error;

	leat_options_init(&options);
	options.seed = arg->seed;
	options.epochs = arg->epochs;
	options.threads = arg->threads;
	if (leat_open(spec, &options, &feed, &error) != LEAT_OK)
		errx(1, "%s", error.text);
	return feed;
}

static const struct leat_field *
find_field(const struct leat_feed *feed, const char *name)
{
	for (int i = 0; i < leat_field_count(feed); i++)
		if (strcmp(leat_field_at(feed, i)->name, name) == 0)
			return leat_field_at(feed, i);
	errx(1, "the feed has no field called %s", name);
}

static int
known(int64_t dim, int max)
{
	if (dim < 1 || dim > max)
		errx(1, "all images must have one size, 1024x1024x4 at most: add resize(100, 100) to the spec");
	return (int)dim;
}

static void
image_size(const struct leat_feed *feed, int *h, int *w, int *c)
{
	const struct leat_field *image = find_field(feed, "image"), *label = find_field(feed, "label");

	if (image->dtype != LEAT_F32 || image->ndim != 3)
		errx(1, "the field image must be float32 [height, width, channels]: add scale(1/255) to the spec");
	if (label->dtype != LEAT_I64 || (label->ndim != 0 && !(label->ndim == 1 && label->shape[0] == 1)))
		errx(1, "the field label must be one int64");
	*h = known(image->shape[0], 1024);
	*w = known(image->shape[1], 1024);
	*c = known(image->shape[2], 4);
}

static void
print_epoch(const struct arguments *arg, uint64_t epoch, const struct score *train, const struct score *valid)
{
	double rate = (double)train->samples / train->seconds, share = train->waited / train->seconds;

	if (arg->json) {
		printf("%s{\"epoch\": %llu, \"loss\": %.9g, \"train_accuracy\": %.6g, ", epoch ? ",\n  " : "\n  ",
		       (unsigned long long)epoch + 1, train->loss, train->accuracy);
		if (valid)
			printf("\"valid_loss\": %.9g, \"valid_accuracy\": %.6g, ", valid->loss, valid->accuracy);
		printf("\"samples\": %ld, \"seconds\": %.6f, \"samples_per_s\": %.1f, \"wait_share\": %.6f}",
		       train->samples, train->seconds, rate, share);
		return;
	}
	if (epoch == 0)
		printf("epoch    loss  train accuracy  valid accuracy  seconds  samples/s  waited\n");
	printf("%5llu  %6.4f  %13.1f%%  ", (unsigned long long)epoch + 1, train->loss, 100 * train->accuracy);
	if (valid)
		printf("%13.1f%%", 100 * valid->accuracy);
	else
		printf("%14s", "-");
	printf("  %7.2f  %9.0f  %5.1f%%\n", train->seconds, rate, 100 * share);
	fflush(stdout);
}

static void
train(const struct arguments *arg)
{
	struct leat_feed *feed = open_feed(arg->train, arg), *valid_feed = NULL;
	struct score score, valid = {0};
	struct net net;
	int h, w, c;

	image_size(feed, &h, &w, &c);
	net = make_net(h, w, c, 16, h > 64 && w > 64 ? 2 : 1, arg->seed);
	if (arg->valid) {
		int vh, vw, vc;

		valid_feed = open_feed(arg->valid, arg);
		image_size(valid_feed, &vh, &vw, &vc);
		if (vh != h || vw != w || vc != c)
			errx(1, "the images are %dx%dx%d for training, but %dx%dx%d for validation", h, w, c, vh, vw,
			     vc);
	}
	if (arg->json)
		printf("{\"epochs\": [");
	for (uint64_t epoch = 0; epoch < arg->epochs; epoch++) {
		score = run_epoch(&net, feed, arg->rate);
		if (valid_feed)
			valid = run_epoch(&net, valid_feed, 0);
		print_epoch(arg, epoch, &score, valid_feed ? &valid : NULL);
	}
	if (arg->json)
		printf("\n]}\n");
	free_net(&net);
	leat_close(valid_feed);
	leat_close(feed);
}

/* ---- the gradient check: is what backward computes the slope of what forward computes? ---- */

enum { CHECK_H = 25, CHECK_W = 18, CHECK_C = 3, CHECK_IMAGES = 4 };

static double
check_loss(struct net *net, const float *images)
{
	double loss = 0;

	for (int i = 0; i < CHECK_IMAGES; i++)
		loss += loss_of(forward(net, images + i * CHECK_H * CHECK_W * CHECK_C), i % 2);
	return loss;
}

/* |numeric - computed| / |numeric + computed|, over all numbers of a parameter. Numbers one by one
 * would mislead: where ReLU or a maximum switches over, the slope has two values. */
static double
check_param(struct net *net, struct param *p, const float *images)
{
	const float tiny = 2e-4f;
	double difference = 0, sum = 0;

	for (int i = 0; i < p->count; i++) {
		float value = p->value[i], above = value + tiny, below = value - tiny;
		double up, down, slope;

		p->value[i] = above;
		up = check_loss(net, images);
		p->value[i] = below;
		down = check_loss(net, images);
		p->value[i] = value;
		slope = (up - down) / ((double)above - (double)below);
		difference += (slope - p->grad[i]) * (slope - p->grad[i]);
		sum += (slope + p->grad[i]) * (slope + p->grad[i]);
	}
	return sqrt(difference / (sum + 1e-12));
}

static int
check_gradient(int stride)
{
	static const char *const names[PARAMS] = {"conv 1 weight", "conv 1 bias", "conv 2 weight", "conv 2 bias",
	                                          "conv 3 weight", "conv 3 bias", "dense weight",  "dense bias"};
	uint64_t random = 7;
	struct net net = make_net(CHECK_H, CHECK_W, CHECK_C, 3, stride, 5);
	float *images = floats(CHECK_IMAGES * CHECK_H * CHECK_W * CHECK_C);
	int wrong = 0;

	/* Every other 200 numbers are equal, so that a pool meets several largest places. */
	for (int i = 0; i < CHECK_IMAGES * CHECK_H * CHECK_W * CHECK_C; i++)
		images[i] = i / 200 % 2 ? 0.3f : uniform(&random, 0, 1);
	for (int i = 0; i < CHECK_IMAGES; i++) {
		float answer = forward(&net, images + i * CHECK_H * CHECK_W * CHECK_C);

		backward(&net, loss_grad(answer, i % 2));
	}
	for (int i = 0; i < PARAMS; i++) {
		double apart = check_param(&net, param_at(&net, i), images);
		bool good = apart < 0.02;

		printf("stride %d, %-13s  %8.6f apart: %s\n", stride, names[i], apart, good ? "good" : "WRONG");
		wrong += !good;
	}
	free(images);
	free_net(&net);
	return wrong;
}

/* ---- arguments ---- */

static uint64_t
whole(const char *option, const char *text, uint64_t max)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value > max)
		errx(2, "--%s needs a whole number up to %llu, not '%s'", option, (unsigned long long)max, text);
	return value;
}

static float
positive(const char *option, const char *text)
{
	char *end;
	float value = strtof(text, &end);

	if (end == text || *end || !(value > 0) || !isfinite(value))
		errx(2, "--%s needs a positive number, not '%s'", option, text);
	return value;
}

static void
parse(int argc, char **argv, struct arguments *arg)
{
	static const struct option options[] = {
		{"valid", required_argument, NULL, 'v'},
		{"epochs", required_argument, NULL, 'e'},
		{"seed", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 't'},
		{"lr", required_argument, NULL, 'l'},
		{"blas-threads", required_argument, NULL, 'b'},
		{"json", no_argument, NULL, 'j'},
		{"check-gradient", no_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'v':
			arg->valid = optarg;
			break;
		case 'e':
			arg->epochs = whole("epochs", optarg, 1000000);
			break;
		case 's':
			arg->seed = whole("seed", optarg, UINT64_MAX);
			break;
		case 't':
			arg->threads = (unsigned)whole("threads", optarg, 1024);
			break;
		case 'l':
			arg->rate = positive("lr", optarg);
			break;
		case 'b':
			arg->blas_threads = (int)whole("blas-threads", optarg, 1024);
			break;
		case 'j':
			arg->json = true;
			break;
		case 'c':
			arg->check = true;
			break;
		default:
			exit(2);
		}
	}
	if (optind + (arg->check ? 0 : 1) != argc)
		errx(2, "usage: train_cells SPEC [--valid SPEC] [--epochs 5] [--seed 1] [--threads N] [--lr 0.002]"
		        " [--blas-threads 1] [--json], or train_cells --check-gradient");
	arg->train = argv[optind];
}

int
main(int argc, char **argv)
{
	struct arguments arg = {.epochs = 5, .seed = 1, .rate = 0.002f, .blas_threads = 1};

	parse(argc, argv, &arg);
	openblas_set_num_threads(arg.blas_threads > 0 ? arg.blas_threads : 1);
	if (arg.check)
		return check_gradient(1) + check_gradient(2) > 0;
	train(&arg);
	return 0;
}
