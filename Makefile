# Thin: Meson builds, scripts do. `make help` lists what there is.
BUILD ?= build
PYTHON ?= python3
.DEFAULT_GOAL := all
.PHONY: all setup duckdb configure demo test test-all bench bench-images bench-remote bench-build bench-rows bench-prepare bench-xray soak torture sanitize fuzz format docs wheel install clean help

# Meson is told of new or gone files by the list of sources, not by their dates.
SOURCES := $(sort $(wildcard src/*/*.c tests/*/*.c fuzz/*.c examples/*.c bench/*.c bench/*/*.c))

all: configure duckdb ## build build/leat, build/libleat.so, build/libleat.a
	@ninja -C $(BUILD) --quiet

setup: ## install the Debian packages that are missing
	@scripts/setup

duckdb: setup
	@mkdir -p $(BUILD)
	@scripts/duckdb $(BUILD)

configure: setup
	@mkdir -p $(BUILD)
	@if [ ! -f $(BUILD)/build.ninja ]; then meson setup $(BUILD) $(MESON_FLAGS) >$(BUILD)/setup.log || { cat $(BUILD)/setup.log; exit 1; }; \
	elif [ "$$(cat $(BUILD)/sources.list 2>/dev/null)" != "$(SOURCES)" ]; then meson setup --reconfigure $(BUILD) >$(BUILD)/setup.log || { cat $(BUILD)/setup.log; exit 1; }; fi
	@echo "$(SOURCES)" >$(BUILD)/sources.list

demo: all ## clean a table with planted errors, build three times, train overlapped: a minute, one screen, pages
	@examples/demo $(BUILD)

test: all ## core tests (a few minutes)
	@tests/run core $(BUILD)

test-all: all ## everything: core tests under both compilers and sanitizers, fuzz replay, frameworks
	@scripts/setup all
	@tests/run all $(BUILD)

bench: all ## measure against bare loops; results under build/bench
	@bench/run $(BUILD)

bench-images: all ## measure image pipelines against PyTorch, tf.data and others (45 minutes, 4 GB)
	@bench/images/run $(BUILD)

bench-remote: all ## measure reading over a network: latency, other loaders, faults (30 minutes, 3 GB)
	@scripts/setup all
	@bench/remote/run $(BUILD)

bench-build: all ## measure leat build against Snakemake, redun, Exax, joblib and the bare system (1 hour, 3 GB)
	@bench/build/run $(BUILD)

bench-rows: all ## measure small rows against NumPy, DataLoader, nanoGPT's loader and tf.data (20 minutes, 4 GB)
	@bench/rows/run $(BUILD)

bench-prepare: all ## measure preparing tables against Polars, pandas, Spark and others (6 GB)
	@bench/prepare/run $(BUILD)

bench-xray: all ## measure how training waits: remote and local, loops and loaders, with timelines (30 minutes, 3 GB)
	@scripts/setup all
	@bench/xray/run $(BUILD)

torture: all ## RUNS (default 10000) random runs from SEED: specs against themselves, faults, kill -9, hostile bytes
	@tests/run torture $(BUILD) $(or $(RUNS),10000) $(SEED)

soak: all ## long runs: memory over many epochs, kill -9, torture, long fuzzing
	@tests/run soak $(BUILD)

sanitize: setup ## the tests under ASan+UBSan, then TSan
	@tests/run sanitize $(BUILD)

fuzz: setup ## run every fuzzer for SECONDS (default 30) of processor time each
	@tests/run fuzz $(BUILD) $(or $(SECONDS),30)

format: setup ## clang-format everything
	@clang-format -i $$(git ls-files '*.c' '*.h')

docs: all ## write docs/REFERENCE.md and the keys in docs/STEPS.md from the tables in the code
	@$(BUILD)/leat ops --markdown >docs/REFERENCE.md
	@UPDATE=1 tests/check_steps $(BUILD)/leat
	@UPDATE=1 tests/check_features $(BUILD)/leat

wheel: setup ## build the Python wheel, with all libraries it needs, in build/dist
	@scripts/wheel $(BUILD)

install: all ## install command, libraries, header and pkg-config file (DESTDIR is honoured)
	@meson install -C $(BUILD) --no-rebuild --quiet

clean: ## remove everything that was built
	@rm -rf $(BUILD)

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile
