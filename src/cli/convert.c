/* convert.c - `leat convert`: run a spec and save the result */
#include "cli/command.h"
#include "cli/convert_run.h"
#include "cli/outputs.h"

static const struct leat_opt options[] = {
	LEAT_STRING(
		struct leat_convert_request, output, LEAT_REQUIRED,
		"output prefix (TEXT-00000-of-00008.tfrecord or .tar), or with --format npy, folder (TEXT/FIELD.npy)"),
	LEAT_ENUM(struct leat_convert_request, format, "tfrecord", LEAT_CONVERT_FORMATS,
                  "output format: TFRecord, tar (WebDataset), or one .npy array per field"),
	LEAT_INT(struct leat_convert_request, shards, "0", 0, LEAT_MAX_SHARDS,
                 "number of output files; 0: determined by --shard-size"),
	LEAT_SIZE(struct leat_convert_request, shard_size, "128MiB", 1, 1e15, "approximate file size"),
	LEAT_INT(struct leat_convert_request, seed, "0", 0, 9e18, "random seed; same seed, same output"),
	LEAT_INT(struct leat_convert_request, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),
	LEAT_SIZE(struct leat_convert_request, memory, "0", 0, 1e18,
                  "memory limit; 0: a quarter of the RAM, shared by local ranks"),
	LEAT_ENUM(struct leat_convert_request, on_error, "fail", "fail|skip|replace",
                  "on a bad sample: fail, skip it, or replace it with another"),
	LEAT_INT(struct leat_convert_request, max_bad, "-1", -1, 9e18, "bad samples allowed; -1: no limit"),
	LEAT_STRING(struct leat_convert_request, bad, "", "write each bad sample to this file, as a line of JSON"),
	LEAT_SAMPLE_LIMITS(struct leat_convert_request),
	LEAT_BOOL(struct leat_convert_request, overwrite, "false", "replace files from an earlier run"),
	LEAT_STORAGE_OPTION(struct leat_convert_request),
	LEAT_BOOL(struct leat_convert_request, quiet, "false", "suppress progress and messages"),
	LEAT_OPT_END,
};

static enum leat_status
run_convert(const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_convert_request request = *(const struct leat_convert_request *)run->params;

	request.run = run;
	return leat_convert_run(&request, run->operand[0], err);
}

const struct leat_command leat_command_convert = {
	.name = "convert",
	.summary = "Run a spec and save the result",
	.operands = "SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Writes the samples of one epoch, in order: as tf.train.Example in TFRecord files, as\n"
		"members KEY.FIELD.EXTENSION of tar files (.npy, .cls, .jpg, .png, .webp, .bin), or as one\n"
		"array per field. Files appear only when all are complete. Prints the spec that reads\n"
		"them back. Use it to run the slow part of a pipeline once, or to make any source\n"
		"readable by other programs.",
	.example = "leat convert \"tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | decode | "
		   "resize(100, "
		   "100) | shuffle\" -o small/cells --shards 8\n"
		   "leat convert \"tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64)\" -o cells "
		   "--format tar",
	.opts = options,
	.params_size = sizeof(struct leat_convert_request),
	.run = run_convert,
};
