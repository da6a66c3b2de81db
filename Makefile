# Weir. `make` lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
GO          ?= go
TOOL        := $(GO) tool -modfile=tools/go.mod
# The race detector, but not in SQLite, which is C translated into Go: its memory is none that
# the detector watches, and asking it at each access takes most of the time of the metastore.
RACE        := -race $(foreach p,sqlite/lib libc memory,-gcflags=modernc.org/$(p)=-race=false)
WEB         := web/dist/index.html
WEB_SOURCES := $(shell find web/src web/public -type f 2>/dev/null) web/index.html web/package.json web/package-lock.json web/vite.config.ts web/tsconfig.json

# What takes longest begins first: else a processor idles while the last of it runs.
LONGEST     := ./server/job ./exec/op ./transport ./exec

# Else every program built with the race detector sleeps for a second before it exits.
export GORACE ?= atexit_sleep_ms=10

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: run
run: build ## build and run everything on this machine, with the demo table
	bin/weir up --demo

.PHONY: build
build: $(WEB) ## build the dashboard and bin/weir
	$(GO) build -trimpath -ldflags "-s -w" -o bin/weir ./cmd/weir

$(WEB): web/node_modules/.installed $(WEB_SOURCES) openapi/openapi.json
	cd web && npm run --silent build

web/node_modules/.installed: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: killpoints
killpoints: $(WEB) ## build bin/weir-killpoints, which tests make die at named points
	$(GO) build -trimpath -ldflags "-s -w" -tags killpoints -o bin/weir-killpoints ./cmd/weir

.PHONY: deps
deps: ## install what the tests need from Debian's packages, and build the S3 server of the tests, when missing
	@tools/deps.sh
	@$(GO) test -run '^TestProgram$$' ./checkpoint/blob/s3test

.PHONY: test
test: deps build killpoints ## every test: Go with the race detector, web, end to end in a headless browser
	$(GO) test $(RACE) -parallel 6 -timeout 10m $(LONGEST) ./...
	$(GO) test -count=1 -timeout 5m ./checkpoint/sim -run TestSeeds -v -seeds 2000
	cd web && npm test --silent
	$(GO) test -count=1 -parallel 6 -timeout 5m -tags e2e ./e2e

.PHONY: test-long
test-long: deps build killpoints ## longer runs of the simulations, models and fuzzers
	WEIR_LONG=1 $(GO) test $(RACE) -timeout 60m -skip 'TestLongHistory|TestModelOfState' ./...
	WEIR_LONG=1 $(GO) test -count=1 -v -timeout 20m -run TestLongHistory ./metastore
	WEIR_LONG=1 $(GO) test -count=1 -v -timeout 20m -run TestModelOfState ./exec/state
	$(MAKE) planted
	WEIR_LONG=1 $(GO) test -count=1 -timeout 30m -tags e2e ./e2e

N    ?= 20000
SEED ?= 1

.PHONY: difftest
difftest: deps ## random queries on Weir and on PostgreSQL: make difftest N=20000 SEED=1
	WEIR_DIFFTEST=$(N) WEIR_DIFFTEST_SEED=$(SEED) $(GO) test ./exec/difftest -run TestDifferential -count=1 -timeout 300m -v

MINUTES ?= 60

.PHONY: sim
sim: ## simulated jobs under faults, one for each seed: make sim N=200000 SEED=1; an hour at most
	$(GO) test ./checkpoint/sim -run TestSeeds -count=1 -timeout 120m -v -seeds $(N) -first $(SEED) -minutes $(MINUTES)

.PHONY: planted
planted: ## known faults planted one by one: the simulation finds each, and says after how many seeds
	$(GO) test -tags planted ./checkpoint/sim -run TestPlanted -count=1 -timeout 60m -v

.PHONY: model
model: ## check the model of the checkpoint protocol with spin, and that it finds planted faults
	@checkpoint/model/run.sh

.PHONY: lint
lint: web/node_modules/.installed ## golangci-lint, vet, deadcode, the web linters
	@mkdir -p web/dist
	$(TOOL) golangci-lint run ./...
	$(GO) vet ./...
	$(GO) vet -tags e2e ./e2e
	@out="$$($(TOOL) deadcode -test ./...)"; if [ -n "$$out" ]; then echo "$$out"; echo "deadcode: the functions above are unreachable"; exit 1; fi
	cd web && npm run --silent lint

.PHONY: generate
generate: ## write the generated files anew
	$(GO) run ./openapi/gen
	$(GO) run ./docs/gen
	cd web && npm run --silent api

.PHONY: verify
verify: web/node_modules/.installed ## generated files and goldens are current
	@before="$$(git stash create)"; $(MAKE) generate; git diff --exit-code $${before:-HEAD} -- openapi docs web/src/api
	$(GO) mod verify >/dev/null
	$(GO) mod tidy -diff

.PHONY: bench
bench: build ## speed beside loops written by hand, half an hour: bin/bench.md, bin/bench.json (bench/NOTES.md)
	$(GO) run ./bench speed -weir bin/weir -markdown bin/bench.md -json bin/bench.json

.PHONY: bench-flink
bench-flink: build ## the same and Flink in one run, three quarters of an hour, where Java 17 and Maven are: bin/bench-flink.md, .json
	$(GO) run ./bench speed -flink -weir bin/weir -markdown bin/bench-flink.md -json bin/bench-flink.json

.PHONY: bench-queries
bench-queries: build ## every kind of query: rows per second, allocations per row
	$(GO) run ./bench queries -weir bin/weir

.PHONY: bench-channels
bench-channels: build ## channels, exchange, latency, recovery and slow sinks, about 10 minutes (bench/NOTES.md)
	$(GO) run ./bench channels -weir bin/weir

.PHONY: bench-state
bench-state: build ## state: cuts, deltas, uploads, memory, spilling, about an hour (bench/NOTES.md)
	$(GO) run ./bench state -weir bin/weir

COUNT ?= 6
BENCH ?= .

.PHONY: bench-stages
bench-stages: ## nanoseconds per row of each stage, a quarter of a minute (bench/NOTES.md)
	@tools/bench-compare.sh '' 1 '$(BENCH)'

.PHONY: bench-compare
bench-compare: ## the stages at a commit beside the working tree: make bench-compare BASE=main [COUNT=6] [BENCH=REGEXP]
	@test -n "$(BASE)" || { echo "usage: make bench-compare BASE=COMMIT [COUNT=6] [BENCH=REGEXP]"; exit 2; }
	@tools/bench-compare.sh "$(BASE)" "$(COUNT)" '$(BENCH)'

.PHONY: accept
accept: build ## the real rows: make accept DATA=PATH of user_behavior.csv
	@test -n "$(DATA)" || { echo "usage: make accept DATA=PATH"; exit 2; }
	examples/accept.sh "$(DATA)"

.PHONY: clean
clean: ## remove what was built
	rm -rf bin web/dist/assets web/dist/index.html web/dist/swagger web/node_modules
