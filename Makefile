# `make help` lists the targets; `make` alone checks and builds everything.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

BIN := $(CURDIR)/.bin
export PATH := $(BIN):$(PATH)
# The linter caches by content and reports files under the path of an older checkout: each checkout has its own cache.
export GOLANGCI_LINT_CACHE := $(CURDIR)/.cache/golangci-lint

BUF_VERSION := v1.73.0
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_CONNECT_GO_VERSION := v1.21.1
PROTOC_GEN_GO_VTPROTO_VERSION := v0.6.1-0.20240319094008-0393e58bdf10
GOLANGCI_LINT_VERSION := v2.12.2
GOVULNCHECK_VERSION := v1.9.0
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
TOOLS := $(addprefix $(BIN)/,buf protoc-gen-go protoc-gen-connect-go protoc-gen-go-vtproto golangci-lint)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
FUZZTIME ?= 30s
BENCHCOUNT ?= 10
SIMCOUNT ?= 20
SIMSEEDS ?= 200
# Of make chaos: faults and workloads (all if empty), seed (drawn if 0), duration in all, numbers of nodes, folder for
# reports, an older server to begin with (a file, a released version or a git revision). LENGTH makes it one run with
# faults for that long, as the command says that repeats a run.
SCENARIO ?=
WORKLOADS ?=
SEED ?= 0
TIME ?= 4m30s
LENGTH ?= 0s
NODES ?= 3
OUT ?=
OLD ?=
PLANTED ?=
# GUARDED=false leaves the clusters of make chaos open, without accounts.
GUARDED ?= true
# VULNCHECK=require makes `make vulncheck` fail where the database of vulnerabilities cannot be reached.
VULNCHECK ?=
# The protocol must stay compatible with the main branch, if this clone has one.
GIT_DIR := $(shell git rev-parse --git-common-dir 2>/dev/null)
BASE ?= $(shell git rev-parse -q --verify origin/main 2>/dev/null || git rev-parse -q --verify main 2>/dev/null)

.PHONY: all help build test verify short lint vulncheck fmt generate check-generated golden fixture \
  conformance original fuzz bench bench-report bench-compare sim scale e2e demo chaos chaos-selftest chaos-list tools clean

all: generate lint test build ## generate, lint, test and build

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-16s %s\n", $$1, $$2}'

build: ## build .bin/quorate
	go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o $(BIN)/quorate ./cmd/quorate

# Tests of servers mostly wait for elections, leases and polls: more packages than cores keep the cores busy.
TESTED_AT_ONCE ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

test: ## test all packages, with the race detector and full invariant checks; 9 minutes on two cores if nothing is compiled yet
	@echo "make test: looking for modules; the first time they are downloaded"
	@go list -deps -test ./... >/dev/null
	@echo "make test: compiling with the race detector, then testing; each package prints a line when it is done"
	go test -race -tags invariants -p $(TESTED_AT_ONCE) -timeout 20m ./...

# Packages whose tests call internal/verify do less in make test. The random runs and simulations of single-threaded
# code go without the race detector: make test runs a part of each with it. The tests of commands take longest: first in
# the list, they run beside those of all other packages. Of each package only the tests run that do more here than in
# make test.
EXHAUSTIVE = $(shell grep -rl --include='*_test.go' '/internal/verify"' . | xargs -n1 dirname | sort -u)
SEQUENTIAL = ./chaos/simtest ./fsm ./internal/% ./quota/%
LONGEST = ./cmd/%
SERVERS = $(filter-out $(SEQUENTIAL),$(EXHAUSTIVE))

verify: ## run what make test shortens or skips: long random runs, 200 seeds, clusters of real servers, Boskos clients
	@echo "make verify: simulations and random runs"
	tests=$$(go run ./internal/verify/tests $(filter $(SEQUENTIAL),$(EXHAUSTIVE))); QUORATE_VERIFY=1 \
	  go test -tags invariants -timeout 30m -run "$$tests" $(filter $(SEQUENTIAL),$(EXHAUSTIVE))
	@echo "make verify: servers, with the race detector; the first package takes longest, and its line comes first"
	tests=$$(go run ./internal/verify/tests $(SERVERS)); QUORATE_VERIFY=1 \
	  go test -race -tags invariants -timeout 30m -run "$$tests" \
	    $(filter $(LONGEST),$(SERVERS)) $(filter-out $(LONGEST),$(SERVERS))
	$(MAKE) conformance

conformance: ## run the unmodified clients of Boskos against three real servers
	cd compat/boskos/conformance && go test -count=1 -timeout 10m .

original: ## replay the recorded exchanges against Boskos itself; builds half of Kubernetes the first time
	cd compat/boskos/conformance && go test -count=1 -timeout 10m ./original

short: ## make test without the race detector and with still fewer random runs
	go test -short ./...

lint: $(TOOLS) ## check the rules for code, protocol and imports
	golangci-lint run
	buf lint
	@if [ -n "$(BASE)" ]; then \
	  echo "buf breaking --against '$(GIT_DIR)#ref=$(BASE)'"; buf breaking --against '$(GIT_DIR)#ref=$(BASE)'; \
	else echo "buf breaking: skipped, this clone has no main branch to compare with"; fi
	go test -count=1 ./internal/arch

vulncheck: $(BIN)/govulncheck ## find known vulnerabilities in called code; reports if the database cannot be reached
	@if said=$$(govulncheck ./... 2>&1); then echo "$$said"; \
	elif grep -q 'fetching vulnerabilities' <<<"$$said" && [ "$(VULNCHECK)" != require ]; then \
	  echo "vulncheck: SKIPPED, nothing was checked: the database cannot be reached: $$said"; \
	else echo "$$said"; exit 1; fi

fmt: $(TOOLS) ## format everything
	golangci-lint fmt
	buf format -w proto

generate: $(TOOLS) ## generate gen/ from proto/
	buf generate
	buf generate --template buf.gen.fast.yaml

check-generated: generate ## fail if gen/ or go.mod does not match its sources
	@test -z "$$(git status --porcelain -- gen | tee /dev/stderr)"
	go mod tidy -diff

golden: ## rewrite golden files; read the diff before you commit it
	QUORATE_VERIFY=1 go test \
	  $$(grep -rlE --include='*_test.go' 'flag\.Bool\("rewrite"' . | xargs -n1 dirname | sort -u) -args -rewrite

fixture: ## keep a data folder of VERSION=v0.4.0 for later versions; its commit must be in released/commits.txt
	go test -count=1 ./cmd/quorate -run '^TestFoldersOfReleasedVersions$$' -args -write-fixture=$(VERSION)

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | while IFS=: read -r file func; do \
	  echo "== $${func#func } in $$(dirname "$$file")"; \
	  go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) \
	    -fuzzminimizetime 20x; done

bench: ## benchmarks, BENCHCOUNT (10) runs each, into bench.txt for benchstat
	go test -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) ./... | tee bench.txt

# The main branch, or the commit before if this is its head.
BENCH_BASE ?= $(shell [ "$(BASE)" != "$$(git rev-parse HEAD 2>/dev/null)" ] && echo $(BASE) || echo HEAD^)
bench-report: $(BIN)/benchstat ## the most important benchmarks, beside those of BENCH_BASE (the main branch) in one run
	bench/report.sh $(BENCH_BASE)

# Of make bench-compare: more flags, such as COMPARE="-time 5s -markdown"; go run ./bench/compare -help lists them.
COMPARE ?=
bench-compare: ## three servers beside a prototype, bare raft, and etcd and PostgreSQL if installed; JSON in compare.json
	go run ./bench/compare -out compare.json $(COMPARE)

sim: ## clusters in virtual time, SIMCOUNT (20) runs, and chaos in virtual time, SIMSEEDS (200) seeds
	go test -count $(SIMCOUNT) ./cluster/...
	go test -count 1 -timeout 30m ./chaos/simtest -args -seeds $(SIMSEEDS) -first $(SEED)

scale: ## a cluster with 100,000 nodes of trees and 1,000,000 leases in virtual time; 5 minutes, 6 GB; see docs/scaling.md
	go test -count 1 -v -timeout 60m ./cluster/clustertest -run '^TestScale$$' -args -nodes 100000 -leases 1000000 -steady 6m

e2e: ## run all tests of the real binary, verbosely
	QUORATE_VERIFY=1 go test -count=1 -v ./cmd/...

demo: build ## three real servers play the CERN script and lose their leader
	QUORATE=$(BIN)/quorate examples/demo.sh

chaos: ## break real clusters and check what callers saw (SCENARIO, SEED, TIME, NODES, OUT: see chaos/README.md)
	go build -o $(BIN)/chaos-run ./chaos/run
	$(BIN)/chaos-run -scenario "$(SCENARIO)" -workloads "$(WORKLOADS)" -seed $(SEED) -time $(TIME) -length $(LENGTH) \
	  -nodes $(NODES) -out "$(OUT)" -old "$(OLD)" -planted "$(PLANTED)" -guarded=$(GUARDED)

chaos-selftest: ## check that chaos finds every planted bug, in virtual time and with real processes
	go test -count=1 -v -timeout 30m ./chaos/simtest -run PlantedBugs -args -planted
	go build -o $(BIN)/chaos-run ./chaos/run
	$(BIN)/chaos-run -selftest -scenario "$(SCENARIO)" -seed $(SEED) -out "$(OUT)"

chaos-list: ## list the faults that SCENARIO may name
	go run ./chaos/run -list

tools: $(TOOLS) $(BIN)/govulncheck ## install the pinned tools into .bin

# install installs the pinned version of a tool: $(call install,package,version). A tool that has it already is kept, so
# that editing this file does not cost four minutes of building linters.
define install
@if go version -m $@ 2>/dev/null | grep -qE "^	mod	[^	]+	$(2)	"; then touch $@; \
else echo "go install $(1)@$(2)"; GOBIN=$(BIN) go install $(1)@$(2); fi
endef

$(BIN)/buf: Makefile
	$(call install,github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))
$(BIN)/protoc-gen-go: Makefile
	$(call install,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION))
$(BIN)/protoc-gen-connect-go: Makefile
	$(call install,connectrpc.com/connect/cmd/protoc-gen-connect-go,$(PROTOC_GEN_CONNECT_GO_VERSION))
$(BIN)/protoc-gen-go-vtproto: Makefile
	$(call install,github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto,$(PROTOC_GEN_GO_VTPROTO_VERSION))
$(BIN)/golangci-lint: Makefile
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))

$(BIN)/benchstat: Makefile
	$(call install,golang.org/x/perf/cmd/benchstat,$(BENCHSTAT_VERSION))
$(BIN)/govulncheck: Makefile
	$(call install,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

clean: ## remove what was built, but not the tools
	rm -rf $(BIN)/quorate bench.txt compare.json
