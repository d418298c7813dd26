# Larder: the two commands are `make run` and `make test`.
SHELL := /bin/bash
ARGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
SOURCES := Package.swift Shared Server ClientSDK Tests

TARGET ?=

.PHONY: help run test shuffle build lint format docs tour bench fuzz storm sanitize simulate clean prepare static install uninstall dist deb

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

prepare:
	@Scripts/require-swift.sh
	@Scripts/require-sqlite.sh

run: prepare ## build and serve the fixtures on http://127.0.0.1:8080 (ARGS="--port 9000" passes options)
	@swift build -c release --product larder-server
	@.build/release/larder-server $(ARGS)

test: prepare ## build and run every test
	@Scripts/build.sh --build-tests
	@Scripts/run-tests.sh

shuffle: prepare ## run every test in many orders of the jobs, built for release (ORDERS=100 FIRST=1)
	@swift build -c release --build-tests -Xswiftc -enable-testing --scratch-path .build/orders
	@LARDER_TEST_BUILD=.build/orders/release Scripts/run-tests.sh $(or $(FIRST),1) $$(($(or $(FIRST),1) + $(or $(ORDERS),100) - 1))

build: prepare ## build everything for release
	@swift build -c release

static: prepare ## build both commands for release, to run without a Swift installation
	@swift build -c release --static-swift-stdlib --scratch-path .build/static --product larder-server
	@swift build -c release --static-swift-stdlib --scratch-path .build/static --product larder

install: static ## install both commands, fixtures, manual pages and completions (PREFIX=/usr/local)
	@Server/packaging/install.sh .build/static/release "$(DESTDIR)$(PREFIX)"

uninstall: ## remove what install has installed (PREFIX=/usr/local)
	@Server/packaging/install.sh --remove "$(DESTDIR)$(PREFIX)"

dist: static ## pack an installation into .build/larder-VERSION-ARCH.tar.gz
	@Server/packaging/dist.sh .build/static/release

deb: static ## make a Debian package in .build
	@Server/packaging/deb.sh .build/static/release .build

lint: ## check formatting and repository rules
	@swift format lint --strict --recursive --parallel $(SOURCES)
	@python3 Scripts/tidy.py

format: ## format the sources in place
	@swift format --in-place --recursive --parallel $(SOURCES)

docs: prepare ## make the documentation site in .build/docs (serve it with python3 -m http.server -d .build/docs)
	@Scripts/build.sh
	@Scripts/docs.sh .build/docs

tour: prepare ## measure on this machine what the cache does (ARGS=taps chooses)
	@swift build -c release --product larder
	@.build/release/larder tour $(ARGS)

bench: prepare ## measure the server beside a bare epoll loop and nginx (needs wrk)
	@swift build -c release --product larder-server
	@python3 Benchmarks/http/bench.py

fuzz: prepare ## fuzz a parser with libFuzzer (TARGET=json MINUTES=1; without TARGET: list the targets)
	@python3 Scripts/fuzz.py $(TARGET) --minutes $(or $(MINUTES),1)

storm: prepare ## kill servers and clients and fill their disks (MINUTES=5 SEED=n)
	@swift build -c release --product larder-server
	@swift build -c release --product larder
	@swift build -c release --product storm-client
	@python3 Tests/Storm/storm.py --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED))

sanitize: prepare ## run the suites with a sanitizer (SANITIZER=address, thread or all; FILTER=regex)
	@Scripts/sanitize.sh $(or $(SANITIZER),all) $(FILTER)

simulate: prepare ## run the simulation (SEEDS=1000 SEED=n PLANS=file MINUTES=m)
	@swift build -c release --product simulate
	@.build/release/simulate $(if $(PLANS),--plans $(PLANS),$(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000) --jobs $$(nproc))) $(if $(MINUTES),--minutes $(MINUTES)) --reduce

clean: ## remove the build directory
	@rm -rf .build
