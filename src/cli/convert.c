/* convert.c - `leat convert`: what comes out of a spec is stored */
#include "cli/command.h"
#include "cli/convert_run.h"
#include "cli/outputs.h"

static const struct leat_opt options[] = {
	LEAT_STRING(struct leat_convert_request, output, LEAT_REQUIRED,
                    "where the files go: TEXT-00000-of-00008.tfrecord (or .tar) and so on, or TEXT/FIELD.npy"),
	LEAT_ENUM(struct leat_convert_request, format, "tfrecord", LEAT_CONVERT_FORMATS,
                  "of the files: TFRecord, tar as WebDataset reads it, or an array for each field"),
	LEAT_INT(struct leat_convert_request, shards, "0", 0, LEAT_MAX_SHARDS, "number of files; 0: by --shard-size"),
	LEAT_SIZE(struct leat_convert_request, shard_size, "128MiB", 1, 1e15, "size of a file, about"),
	LEAT_INT(struct leat_convert_request, seed, "0", 0, 9e18, "of all random numbers: same seed, same bytes"),
	LEAT_INT(struct leat_convert_request, threads, "0", 0, 1024,
                 "worker threads; 0: the CPUs this process may use"),
	LEAT_SIZE(struct leat_convert_request, memory, "0", 0, 1e18,
                  "most that the feed may hold; 0: a quarter of the RAM, 1 GiB at most"),
	LEAT_ENUM(struct leat_convert_request, on_error, "fail", "fail|skip|replace", "what a bad sample does"),
	LEAT_INT(struct leat_convert_request, max_bad, "-1", -1, 9e18, "bad samples before it fails; -1: no limit"),
	LEAT_BOOL(struct leat_convert_request, overwrite, "false", "replace the files that an earlier run made"),
	LEAT_BOOL(struct leat_convert_request, quiet, "false", "no progress line and no messages"),
	LEAT_OPT_END,
};

static enum leat_status
run_convert(const struct leat_invocation *run, struct leat_err *err)
{
	return leat_convert_run(run->params, run->operand[0], run->mem, err);
}

const struct leat_command leat_command_convert = {
	.name = "convert",
	.summary = "Store what comes out of a spec",
	.operands = "SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Writes the samples of one epoch, in their order: as tf.train.Example in TFRecord files,\n"
		"as members KEY.FIELD.EXTENSION of tar files (.npy, .cls, .jpg, .png, .bin), or as one\n"
		"array for each field. The files appear when all are complete, and the spec that reads\n"
		"them back is printed. So the slow part of a pipeline is done once, and any source\n"
		"becomes files that other programs read.",
	.example = "leat convert \"tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | decode | "
		   "resize(100, "
		   "100) | shuffle\" -o small/cells --shards 8\n"
		   "leat convert \"tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64)\" -o cells "
		   "--format tar",
	.opts = options,
	.params_size = sizeof(struct leat_convert_request),
	.run = run_convert,
};
