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

GORELEASER_VERSION := v2.15.1
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
RELEASE_FLAGS = -trimpath -buildvcs=false \
  -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)'
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

.PHONY: all help build test race verify short lint vulncheck fmt generate check-generated golden fixture
.PHONY: conformance original adapters-test verify-adapters verify-kubernetes openstack verify-openstack
.PHONY: licences package release verify-package dashboards prometheus verify-metrics
.PHONY: sdks sdk-typescript verify-sdks ui ui-test check-ui browser browser-test pictures
.PHONY: openapi-test docs-site fuzz bench bench-report bench-compare sim scale e2e demo chaos chaos-selftest chaos-list tools clean
.PHONY: image deploy-tools verify-image kubernetes-servers verify-chart

all: generate lint test build ## generate, lint, test and build

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-16s %s\n", $$1, $$2}'

build: ## build .bin/quorate
	go build $(RELEASE_FLAGS) -o $(BIN)/quorate ./cmd/quorate

# The image has the binaries of these architectures, the certificates of public authorities in AUTHORITIES, and the time
# of the commit: the same commit, Go and authorities give the same bytes.
ARCHITECTURES ?= amd64 arm64
AUTHORITIES ?= /etc/ssl/certs/ca-certificates.crt
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
IMAGE ?= $(CURDIR)/.cache/image

image: ## build the container image into IMAGE (.cache/image, an OCI layout); needs no container tool
	@for architecture in $(ARCHITECTURES); do \
	  echo "go build, linux/$$architecture"; \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$architecture go build $(RELEASE_FLAGS) \
	    -o $(IMAGE).binaries/quorate-$$architecture ./cmd/quorate; \
	done
	cd tools/image && SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) go run . -out $(IMAGE) -reference $(VERSION) \
	  -version $(VERSION) -commit '$(COMMIT)' -authorities $(AUTHORITIES) \
	  $(foreach architecture,$(ARCHITECTURES),-binary $(architecture)=$(IMAGE).binaries/quorate-$(architecture))

deploy-tools: ## install what verify-image and verify-kubernetes run: podman, runc, busybox, qemu (Debian)
	deploy/install.sh

verify-image: image deploy-tools ## run the images with podman and qemu, build them and deploy/Dockerfile again: the same bytes
	cd tools/image && QUORATE_IMAGE=$(IMAGE) QUORATE_VERSION=$(VERSION) go test -count=1 -v -timeout 20m .

kubernetes-servers: ## build the kube-apiserver and etcd that verify-chart asks; 20 minutes the first time
	@cd adapters/kubernetes/apiservers && \
	folder=$${XDG_CACHE_HOME:-$$HOME/.cache}/quorate-adapters/kubernetes-$$(sha256sum go.sum | cut -c1-16) && \
	mkdir -p "$$folder" && \
	for program in go.etcd.io/etcd/server/v3=etcd k8s.io/kubernetes/cmd/kube-apiserver=kube-apiserver; do \
	  [ -x "$$folder/$${program#*=}" ] || { echo "go build $${program%=*}"; \
	    go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$$folder/$${program#*=}" "$${program%=*}"; }; \
	done

verify-chart: kubernetes-servers ## lint, render and dry-run deploy/chart; load deploy/compose.yaml and start its servers
	cd deploy/verify && QUORATE_CHART=require go test -count=1 -timeout 20m .

# Tests of servers also wait for elections, leases and polls: one package more than there are cores keeps the cores busy.
# With many more, servers and clients run late, and what tests expect within seconds does not come. The packages that take
# longest begin first, so that none of them is alone at the end.
TESTED_AT_ONCE ?= $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
TESTED_FIRST = ./cmd/quorate ./rpc ./cluster/clustertest ./quota/ledger
# Each package is a program to link: without tables for debuggers that takes two thirds of the time. make lint does what
# go vet does.
TEST_FLAGS = -tags invariants -vet=off -ldflags='-s -w' -timeout 55m

test: ## test all packages with full invariant checks; 5 to 15 minutes on two cores
	@echo "make test: looking for modules; the first time they are downloaded"
	@go list -deps -test ./... >/dev/null
	@echo "make test: compiling, then testing; each package prints a line when it is done"
	go test $(TEST_FLAGS) -p $(TESTED_AT_ONCE) $(TESTED_FIRST) ./...

# The race detector makes a test take five to thirty times as long, and sees nothing in code without goroutines: here are
# the packages that start or guard some, as internal/arch checks. Those below bench, chaos and cmd are tested as
# processes; RACED=./... is all of them, which takes an hour.
RACED ?= ./activity ./adapters/gate ./audit/... ./authn/... ./client ./cluster/... ./compat/boskos ./compat/keystone/... \
  ./compat/quotamanager/... ./fsm ./internal/servertest ./pki ./rpc/... ./server/... ./web ./webhook

race: ## test what has goroutines with the race detector; 5 to 15 minutes on two cores
	@echo "make race: compiling with the race detector, then testing; each package prints a line when it is done"
	go test -race $(TEST_FLAGS) -p $(TESTED_AT_ONCE) $(RACED)

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

verify: ## run what make test shortens or skips: long random runs, 200 seeds, clusters of real servers, Boskos clients
	@echo "make verify: simulations and random runs"
	tests=$$(go run ./internal/verify/tests $(filter $(SEQUENTIAL),$(EXHAUSTIVE))); QUORATE_VERIFY=1 \
	  go test $(TEST_FLAGS) -run "$$tests" $(filter $(SEQUENTIAL),$(EXHAUSTIVE))
	@echo "make verify: servers, with the race detector; the first package takes longest, and its line comes first"
	tests=$$(go run ./internal/verify/tests $(SERVERS)); QUORATE_VERIFY=1 \
	  go test -race $(TEST_FLAGS) -run "$$tests" \
	    $(filter $(LONGEST),$(SERVERS)) $(filter-out $(LONGEST),$(SERVERS))
	$(MAKE) conformance

conformance: ## run the unmodified clients of Boskos against three real servers
	cd compat/boskos/conformance && go test -count=1 -timeout 10m .

adapters-test: ## quick tests of the adapters, which are modules of their own
	cd adapters/kubernetes && go vet ./... && go test -timeout 10m ./...

verify-adapters: verify-kubernetes verify-openstack ## run the adapters and front ends with the real systems that they serve

verify-kubernetes: deploy-tools ## real API servers and schedulers on one tree; builds them the first time (20 minutes)
	cd adapters/kubernetes && QUORATE_VERIFY=1 QUORATE_PODMAN=require go test -count=1 -timeout 30m ./...

original: ## replay the recorded exchanges against Boskos itself; builds half of Kubernetes the first time
	cd compat/boskos/conformance && go test -count=1 -timeout 10m ./original

openstack: ## install what verify-openstack runs and this machine lacks: oslo.limit, openstackclient, Glance (Debian)
	compat/keystone/install.sh

verify-openstack: openstack ## three servers hold oslo.limit, openstackclient and Glance to their limits; 2 minutes
	QUORATE_VERIFY=1 go test -count=1 -timeout 20m ./cmd/quorate -run OpenStack

short: ## make test with still fewer random runs
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

generate: $(TOOLS) ## generate gen/, the messages of the clients in sdk/ and the OpenAPI document from proto/
	buf generate
	buf generate --template buf.gen.fast.yaml
	buf generate --template buf.gen.python.yaml
	buf generate --template buf.gen.openapi.yaml

check-generated: generate ui sdk-typescript ## fail if what is generated or go.mod does not match its sources
	@test -z "$$(git status --porcelain -- gen sdk web/dist rpc/openapi/openapi.yaml | tee /dev/stderr)"
	go mod tidy -diff

openapi-test: ## validate the answers of real servers to every procedure against their OpenAPI document
	cd rpc/openapi/validate && go vet . && go test -count=1 -timeout 10m .

# What the dashboard is made of and with, as package-lock.json pins it.
web/ui/node_modules/.package-lock.json: web/ui/package.json web/ui/package-lock.json
	@command -v npm >/dev/null || { echo "make ui needs Node 20 or later with npm: https://nodejs.org"; exit 1; }
	cd web/ui && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json

ui: web/ui/node_modules/.package-lock.json $(BIN)/buf ## build the dashboard from web/ui into web/dist; needs Node
	buf generate --template buf.gen.ui.yaml
	cd web/ui && npm run --silent check && npm run --silent build

# What the client for TypeScript is made with, as its package-lock.json pins it.
sdk/typescript/node_modules/.package-lock.json: sdk/typescript/package.json sdk/typescript/package-lock.json
	@command -v npm >/dev/null || { echo "make sdk-typescript needs Node 20 or later with npm: https://nodejs.org"; exit 1; }
	cd sdk/typescript && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json

sdk-typescript: sdk/typescript/node_modules/.package-lock.json $(BIN)/buf ## generate and build the client for TypeScript; needs Node
	buf generate --template buf.gen.typescript.yaml
	cd sdk/typescript && npm run --silent build

# What the site of the documentation is made with, as its package-lock.json pins it.
docs-site/node_modules/.package-lock.json: docs-site/package.json docs-site/package-lock.json
	@command -v npm >/dev/null || { echo "make docs-site needs Node 20 or later with npm: https://nodejs.org"; exit 1; }
	cd docs-site && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && touch node_modules/.package-lock.json

docs-site: build docs-site/node_modules/.package-lock.json ## build docs/ and references as a site in docs-site/dist; needs Node
	cd docs-site && VERSION="$(VERSION)" npm run --silent build

sdks: ## install what verify-sdks needs and this machine lacks: Node, a JDK, mypy, jq
	sdk/scenarios/install.sh

verify-sdks: sdk-typescript ## let the clients of all languages play one script against real servers; see make sdks
	QUORATE_VERIFY=1 QUORATE_SDKS=require go test -count=1 -timeout 20m ./sdk/...

licences: web/ui/node_modules/.package-lock.json ## write the licences of everything that the binary contains; needs Node
	go run ./internal/licences -o third_party/licences.txt

# The version that the next release has; packages of commits before it are development versions of it.
export NEXT_VERSION := 0.5.0
package release: export COMMIT := $(COMMIT)
package release: export DATE := $(DATE)
package release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null)
package: $(BIN)/goreleaser ## build archives, packages and checksums of a release into .cache/package/dist; publishes nothing
	goreleaser release --snapshot --clean

release: $(BIN)/goreleaser ## make a draft of a release from the tag of this commit; see CONTRIBUTING.md
	goreleaser release --clean

verify-package: package ## install, start, upgrade and remove the packages in clean roots; needs Debian and root
	deploy/package/install.sh
	QUORATE_PACKAGES=require go test -count=1 -timeout 20m -v ./deploy/package

dashboards: ## write the dashboards for Grafana in deploy/grafana from tools/dashboards
	cd tools && go run ./dashboards ../deploy/grafana

prometheus: ## install what verify-metrics needs and this machine lacks: Prometheus and promtool (Debian)
	deploy/deploytest/install.sh

verify-metrics: prometheus ## run alerts, recording rules and dashboards with a real Prometheus and three servers; 2 minutes
	QUORATE_VERIFY=1 QUORATE_PROMETHEUS=require go test -count=1 -v -timeout 20m ./deploy/...

ui-test: ui ## test the scripts of the dashboard; needs Node
	cd web/ui && npm run --silent test

check-ui: ui ## fail if web/dist is not what web/ui builds; needs Node
	@test -z "$$(git status --porcelain -- web/dist | tee /dev/stderr)"

browser: ## install what browser-test needs and this machine lacks: Node, Chromium without a window, a font
	web/browsertest/install.sh

browser-test: ui ## look at every view of the dashboard of real servers with a real browser; see make browser
	cd web/browsertest && go test -count=1 -timeout 20m .

pictures: ui ## take the pictures of docs/dashboard.md of a real cluster; see make browser
	cd web/browsertest && QUORATE_TOUR=$(CURDIR)/docs/pictures go test -count=1 -timeout 20m -run '^TestTour$$' .

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

scale: ## a cluster with 100,000 nodes of trees and 1,000,000 leases in virtual time; 5 minutes, 6 GB; see docs/performance.md
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

$(BIN)/goreleaser: Makefile
	$(call install,github.com/goreleaser/goreleaser/v2,$(GORELEASER_VERSION))
$(BIN)/benchstat: Makefile
	$(call install,golang.org/x/perf/cmd/benchstat,$(BENCHSTAT_VERSION))
$(BIN)/govulncheck: Makefile
	$(call install,golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

clean: ## remove what was built, but not the tools
	rm -rf $(BIN)/quorate bench.txt compare.json
