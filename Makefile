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

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
RELEASE_FLAGS = -trimpath -buildvcs=false \
  -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)'
# VULNCHECK=require makes `make vulncheck` fail where the database of vulnerabilities cannot be reached.
VULNCHECK ?=
# The protocol must stay compatible with the newest released version. Before the first one it may change.
GIT_DIR := $(shell git rev-parse --git-common-dir 2>/dev/null)
RELEASED ?= $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)
# What measurements are compared with.
BASE ?= $(shell git rev-parse -q --verify origin/main 2>/dev/null || git rev-parse -q --verify main 2>/dev/null)

# The product, its client, chaos and the measurements are modules of their own. In this workspace one go command works on
# all of them and keeps the cores busy; what tests start must not see it. Elsewhere each module finds the others by its
# replace.
IN_WORKSPACE := GOWORK=$(CURDIR)/tools/make/go.work
MODULES := ./... ./client/... ./chaos/... ./tools/bench/...
GO_TEST := $(IN_WORKSPACE) go test -exec 'env -u GOWORK'

include tools/make/tools.mk

##@ Build and test

.PHONY: all help help-all build demo test race short verify conformance pages-test openapi-test e2e fuzz golden lint
.PHONY: vulncheck fmt generate check-generated tools clean

all: generate lint test build ## generate, lint, test and build

# The everyday targets of each group with what they do, and the names of the others.
help: ## list the targets; make help-all describes all
	@awk -F ':.*(##|#:) ' '/^##@ / {group()} /^[a-z0-9-]+:.* ## / {printf "  %-13s %s\n", $$1, $$2} \
	  /^[a-z0-9-]+:.* #: / {others = others " " $$1} END {group()} \
	  function group() {if (others) print "  also" others; others = ""; if (/^##@ /) print substr($$0, 5)}' \
	  $(MAKEFILE_LIST) | fold -sw 100

help-all: #: describe every target
	@awk -F ':.*(##|#:) ' '/^##@ / {print substr($$0, 5)} /^[a-z0-9-]+:.* (##|#:) / {printf "  %-18s %s\n", $$1, $$2}' \
	  $(MAKEFILE_LIST)

build: ## build .bin/quorate
	go build $(RELEASE_FLAGS) -o $(BIN)/quorate ./cmd/quorate

demo: build ## three real servers play the CERN script and lose their leader; KEEP=1 keeps them, with the dashboard
	QUORATE=$(BIN)/quorate examples/demo.sh

# Tests of servers also wait for elections, leases and polls: one package more than there are cores keeps the cores busy.
# With many more, servers and clients run late, and what tests expect within seconds does not come. The packages that take
# longest begin first, so that none of them is alone at the end; half of them mostly wait.
TESTED_AT_ONCE ?= $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
TESTED_FIRST = ./cmd/quorate ./tools/bench/compare ./chaos/hostile ./cluster/host ./rpc ./cluster/clustertest \
  ./quota/ledger
# Each package is a program to link: without tables for debuggers that takes two thirds of the time. make lint does what
# go vet does. The modules with tests of their own have the same flags: what one target compiled, the next one uses.
TEST_FLAGS = -tags invariants -vet=off -ldflags='-s -w' -timeout 55m

test: ## test all packages; 5 to 15 minutes on two cores
	@echo "make test: looking for modules; the first time they are downloaded"
	@$(IN_WORKSPACE) go list -deps -test $(MODULES) >/dev/null
	@echo "make test: compiling, then testing; each package prints a line when it is done"
	$(GO_TEST) $(TEST_FLAGS) -p $(TESTED_AT_ONCE) $(TESTED_FIRST) $(MODULES)

# The race detector makes a test take five to thirty times as long, and sees nothing in code without goroutines: here are
# the packages that start or guard some, as internal/arch checks, the longest first. Those below tools/bench, chaos and
# cmd are tested as processes; RACED=./... is all of them and of all modules, which takes an hour.
RACED ?= ./rpc ./cluster/clustertest ./adapters/gate ./client ./cluster/... ./compat/boskos ./compat/keystone/... \
  ./compat/quotamanager/... ./fsm ./internal/activity ./internal/audit/... ./internal/authn/... ./internal/load \
  ./internal/pki ./internal/server/... ./internal/webhook ./rpc/... ./web

# These give a member another address while it leads or follows: hashicorp/raft v1.7.3 stores it under a lock
# (startStopReplication), and reads the id beside it without one (updateLastAppended). The id stays the same, so that
# nothing comes of it but the detector's word.
RACES_IN_RAFT := ANodeThatReturnsUnderAnotherAddress.*|AMajorityThatReturnsUnderOtherAddresses.*
# The others repeat one thing many times, on one goroutine or on stored folders.
UNRACED ?= ^Test(DamagedSnapshots|EveryChangedByte.*|EverySubset.*|RandomFaultsOnFolders|MigrationCanBeKilled.*|Scale|$(RACES_IN_RAFT))$$

race: ## test what has goroutines with the race detector; 5 to 15 minutes
	@echo "make race: compiling with the race detector, then testing; each package prints a line when it is done"
	$(GO_TEST) -race $(TEST_FLAGS) -skip '$(UNRACED)' -p $(TESTED_AT_ONCE) $(patsubst ./...,$(MODULES),$(RACED))

short: #: make test with still fewer random runs
	$(GO_TEST) -short $(MODULES)

# Packages whose tests call internal/verify do less in make test. The random runs and simulations of single-threaded
# code go without the race detector. The tests of commands take longest: first in
# the list, they run beside those of all other packages. Of each package only the tests run that do more here than in
# make test. Adapters with a module of their own, and the clients of other languages, which need the tools of these, have
# targets of their own.
EXHAUSTIVE = $(filter-out ./adapters/kubernetes/% ./sdk/% ./deploy/%,$(shell \
  grep -rl --include='*_test.go' '/internal/verify"' . | xargs -n1 dirname | sort -u))
SEQUENTIAL = ./chaos/simtest ./fsm ./internal/% ./quota/%
LONGEST = ./cmd/%
SERVERS = $(filter-out $(SEQUENTIAL),$(EXHAUSTIVE))

verify: ## run what make test shortens or skips; before a release
	@echo "make verify: simulations and random runs"
	tests=$$(go run ./internal/verify/tests $(filter $(SEQUENTIAL),$(EXHAUSTIVE))); QUORATE_VERIFY=1 \
	  $(GO_TEST) $(TEST_FLAGS) -run "$$tests" $(filter $(SEQUENTIAL),$(EXHAUSTIVE))
	@echo "make verify: servers, with the race detector; the first package takes longest, and its line comes first"
	tests=$$(go run ./internal/verify/tests $(SERVERS)); QUORATE_VERIFY=1 \
	  $(GO_TEST) -race $(TEST_FLAGS) -run "$$tests" \
	    $(filter $(LONGEST),$(SERVERS)) $(filter-out $(LONGEST),$(SERVERS))
	$(MAKE) conformance

conformance: #: run the unmodified clients of Boskos against three real servers
	cd compat/boskos/conformance && go test $(TEST_FLAGS) -count=1 -timeout 10m .

pages-test: #: play the commands of all pages over real servers; make test plays some
	QUORATE_PAGES=all go test $(TEST_FLAGS) ./cmd/quorate -run '^Test(Pages|Operations)$$'

openapi-test: #: validate the answers of real servers against their OpenAPI document, and generate clients from it
	cd rpc/openapi/validate && go vet -tags invariants . && go test $(TEST_FLAGS) -count=1 -timeout 10m .

e2e: #: run all tests of the real binary, verbosely
	QUORATE_VERIFY=1 go test -count=1 -v ./cmd/...

FUZZTIME ?= 30s

fuzz: #: run every fuzz target for FUZZTIME (30s)
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | while IFS=: read -r file func; do \
	  echo "== $${func#func } in $$(dirname "$$file")"; \
	  $(GO_TEST) "$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) \
	    -fuzzminimizetime 20x; done

golden: #: rewrite golden files; read the diff before you commit it
	QUORATE_VERIFY=1 $(GO_TEST) \
	  $$(grep -rlE --include='*_test.go' 'flag\.Bool\("rewrite"' . | xargs -n1 dirname | sort -u) -args -rewrite

lint: $(BIN)/buf $(BIN)/golangci-lint ## check the rules for code, protocol and imports
	$(IN_WORKSPACE) golangci-lint run $(MODULES)
	buf lint
	@if [ -n "$(RELEASED)" ]; then \
	  echo "buf breaking --against '$(GIT_DIR)#ref=$(RELEASED)'"; buf breaking --against '$(GIT_DIR)#ref=$(RELEASED)'; \
	else echo "buf breaking: skipped, no version was released yet, so the API may still change"; fi
	go test -count=1 ./internal/arch
	@echo "make lint: compiling the planted bugs, which no other compiler sees"
	QUORATE_VERIFY=1 go test -C chaos -count=1 ./planted

vulncheck: $(BIN)/govulncheck #: find known vulnerabilities in called code; reports if the database cannot be reached
	@if said=$$($(IN_WORKSPACE) govulncheck $(MODULES) 2>&1); then echo "$$said"; \
	elif grep -q 'fetching vulnerabilities' <<<"$$said" && [ "$(VULNCHECK)" != require ]; then \
	  echo "vulncheck: SKIPPED, nothing was checked: the database cannot be reached: $$said"; \
	else echo "$$said"; exit 1; fi

fmt: $(TOOLS) ## format everything
	golangci-lint fmt
	buf format -w proto

generate: $(TOOLS) ## generate code, clients and the OpenAPI document from proto/
	buf generate --template proto/buf.gen.yaml
	buf generate --template proto/buf.gen.server.yaml
	buf generate --template proto/buf.gen.fast.yaml
	buf generate --template proto/buf.gen.python.yaml
	buf generate --template proto/buf.gen.openapi.yaml

check-generated: generate ui sdk-typescript #: fail if what is generated or go.mod does not match its sources
	@test -z "$$(git status --porcelain -- gen client/gen sdk web/dist rpc/openapi/openapi.yaml | tee /dev/stderr)"
	for module in . client chaos tools/bench; do (cd $$module && go mod tidy -diff); done

tools: $(TOOLS) $(BIN)/govulncheck #: install the pinned tools into .bin

clean: #: remove what was built, but not the tools
	rm -rf $(BIN)/quorate bench.txt compare.json

include tools/make/clients.mk tools/make/deploy.mk tools/make/measure.mk
