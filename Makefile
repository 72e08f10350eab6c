# SPDX-License-Identifier: Apache-2.0
# Names the usual combinations of what people type; CMakePresets.json says what
# each build is.

# Tests at a time. Many wait for a limit of some seconds to pass, and take no CPU
# time meanwhile.
JOBS ?= $(shell expr 3 '*' $$(nproc))
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
# Clones in different folders share what ccache knows. The last two let it know
# precompiled headers (cmake/Toolbox.cmake, cmake/precompile).
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros
export CCACHE_PCH_EXTSUM := 1

.PHONY: help setup setup-tests setup-checks setup-bench setup-package setup-deploy setup-deploy-checks build demo test asan tsan fuzz flood flood-function nightly interop \
  shared-checks image package deploy-tests deploy-checks bench-programs bench-quick bench bench-full bench-generator bench-insight bench-predict bench-tune bench-fleet bench-sdk bench-micro lint format install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the Debian packages that the binary needs and that are missing (root or sudo)
	@scripts/setup

setup-tests: ## the same, with what the tests need besides
	@scripts/setup tests

setup-checks: ## the same, with what lint, fuzz and CI need besides
	@scripts/setup tests checks bench

setup-bench:
	@scripts/setup tests bench

setup-package:
	@scripts/setup package

setup-deploy:
	@scripts/setup package deploy

build: setup ## build/release/fncache, without the tests
	@scripts/build release fncache

demo: build ## a slow function, the daemon in front of it, what that saves, why calls miss
	@build/release/fncache demo --out build/demo

test: setup-tests ## every test, on the release build (CTEST_FLAGS: -R NAME and others of ctest)
	@scripts/build release
	@scripts/test release -j $(JOBS) $(CTEST_FLAGS)

asan: setup-checks ## unit and integration tests under address and undefined-behaviour sanitizers
	@scripts/build asan
	@scripts/test asan -j $(JOBS) $(CTEST_FLAGS)

tsan: setup-tests ## the same under the thread sanitizer, without what stands in tests/tsan/without_threads.txt
	@scripts/build tsan
	@setarch -R scripts/test tsan -j $(JOBS) $(CTEST_FLAGS)

fuzz: setup-checks ## every fuzzer for FUZZ_SECONDS (20) over its corpus
	@scripts/build asan fuzzers
	@scripts/fuzz $(FUZZ_SECONDS)

flood: bench-programs ## hostile callers and functions beside one that behaves (FLOOD_FLAGS: tests/flood/run --help)
	@scripts/build release fncache
	@tests/flood/run $(FLOOD_FLAGS)

flood-function: ## hostile callers of a function of the SDK (FLOOD_FLAGS: tests/flood/function --help)
	@cmake --preset release -DFNCACHE_TESTS=ON >/dev/null
	@scripts/build release function_hello
	@tests/flood/function $(FLOOD_FLAGS)

nightly: ## the long forms of what CI runs short: tests, floods, fuzzers, deploy-tests, bench: four hours
	@FNCACHE_LONG_TESTS=1 $(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory flood
	@$(MAKE) --no-print-directory flood-function
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=60
	@$(MAKE) --no-print-directory deploy-tests
	@$(MAKE) --no-print-directory bench
	@$(MAKE) --no-print-directory bench-tune

setup-deploy-checks:
	@scripts/setup deploy-checks

deploy-checks: build setup-deploy-checks ## chart, dashboard, alerts: helm, Kubernetes' schemas, a real Prometheus (DEPLOY_FLAGS: see tests/deploy/run)
	@tests/deploy/run $(DEPLOY_FLAGS)

interop: build ## real clients and functions in Go, gRPC's own interoperability cases
	@tests/interop/run

shared-checks: setup-checks ## the tests of the shared tier on Valkey from PyPI
	@scripts/build release
	@scripts/shared-checks

# CMake runs again: what it builds depends on which libraries it finds.
bench-programs: setup-bench
	@cmake --preset release >/dev/null
	@scripts/build release bench_programs

bench-quick: bench-programs ## side by side with a bare gRPC server and nginx, in a minute (BENCH_FLAGS: bench/run --help)
	@bench/run --profile quick $(BENCH_FLAGS)

bench: bench-programs ## all rows, beside a bare gRPC server, nginx and haproxy: table, JSON; then bench-predict: an hour
	@bench/run --profile standard $(BENCH_FLAGS)
	@bench/predict $(PREDICT_FLAGS)

bench-full: bench-programs ## the same with 10 GiB on disk
	@bench/run --profile full $(BENCH_FLAGS)

bench-generator: bench-programs ## the load generator beside ghz (needs Go), its lateness and its memory
	@bench/generator

bench-insight: bench-programs ## what tracing and explaining cost a hit and a miss, in two minutes
	@bench/insight

bench-predict: build ## what-if's predictions beside what a load then measures, in half an hour (PREDICT_FLAGS: bench/predict --help)
	@bench/predict $(PREDICT_FLAGS)

bench-tune: build ## what tune: on brings beside masks: hits, runs and questions, in half an hour; --full judges it (TUNE_FLAGS: bench/tune --help)
	@bench/tune $(TUNE_FLAGS)

bench-fleet: bench-programs ## what the shared tier is worth and costs, beside redis-benchmark, in seven minutes (FLEET_FLAGS: bench/fleet --help)
	@bench/fleet $(FLEET_FLAGS)

bench-sdk: setup-bench ## functions of the SDK beside Crossplane's Go SDK (needs Go), in five minutes (SDK_FLAGS: bench/sdk --help)
	@scripts/configure release
	@scripts/build release example_hello example_storage
	@bench/sdk $(SDK_FLAGS)

bench-micro: setup-bench ## microbenchmarks of digest, response and stores
	@cmake --preset release >/dev/null
	@scripts/build release bench_micro
	@scripts/bench

lint: setup-checks ## format check and clang-tidy (LINT_SINCE=REV: only what changed since)
	@scripts/lint $(LINT_SINCE)

format: setup-checks ## rewrite the sources as clang-format wants them
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

install: build ## install the binary, its manual, completions and SDK below DESTDIR/PREFIX
	@scripts/build release fncache_manual fncache_sdk
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

image: ## a container image (IMAGE=NAME:TAG), with docker, podman or buildah
	@scripts/image $(IMAGE)

package: setup-package ## Debian packages: build/fncache_VERSION-1_ARCH.deb, and fncache-dev with the SDK
	@scripts/build release fncache_manual fncache_sdk
	@cd build/release && { cpack -G DEB -B .. && cpack -G DEB -B .. --config CPackDevConfig.cmake; } >package.log || { cat package.log; exit 1; }
	@ls build/fncache_*.deb build/fncache-dev_*.deb

deploy-tests: setup-deploy package ## the image and the Debian packages, each in a Debian of its own
	@tests/deploy/image
	@tests/deploy/package
	@tests/deploy/sdk

clean: ## remove build/
	@rm -rf build
