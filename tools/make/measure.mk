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

##@ Performance and chaos

.PHONY: bench bench-report bench-compare scale sim chaos chaos-selftest chaos-list

bench: ## run benchmarks BENCHCOUNT (10) times, into bench.txt for benchstat
	$(GO_TEST) -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) $(MODULES) | tee bench.txt

# The main branch, or the commit before if this is its head.
BENCH_BASE ?= $(shell [ "$(BASE)" != "$$(git rev-parse HEAD 2>/dev/null)" ] && echo $(BASE) || echo HEAD^)
bench-report: $(BIN)/benchstat #: the most important benchmarks, beside those of BENCH_BASE (the main branch) in one run
	tools/bench/report.sh $(BENCH_BASE)

# Of make bench-compare: more flags, such as COMPARE="-time 5s -markdown"; COMPARE=-help lists them.
COMPARE ?=
bench-compare: #: three servers beside a prototype, bare raft, and etcd and PostgreSQL if installed; JSON in compare.json
	$(IN_WORKSPACE) go run ./tools/bench/compare -out compare.json $(COMPARE)

scale: #: a cluster with 100,000 nodes of trees and 1,000,000 leases in virtual time; 5 minutes, 6 GB; see docs/performance.md
	go test -count 1 -v -timeout 60m ./cluster/clustertest -run '^TestScale$$' -args -nodes 100000 -leases 1000000 -steady 6m

sim: #: clusters in virtual time, SIMCOUNT (20) runs, and chaos in virtual time, SIMSEEDS (200) seeds
	go test -count $(SIMCOUNT) ./cluster/...
	cd chaos && go test -count 1 -timeout 30m ./simtest -args -seeds $(SIMSEEDS) -first $(SEED)

chaos: ## break real clusters and check what callers saw; see chaos/README.md
	cd chaos && go build -o $(BIN)/chaos-run ./run
	$(BIN)/chaos-run -scenario "$(SCENARIO)" -workloads "$(WORKLOADS)" -seed $(SEED) -time $(TIME) -length $(LENGTH) \
	  -nodes $(NODES) -out "$(OUT)" -old "$(OLD)" -planted "$(PLANTED)" -guarded=$(GUARDED)

chaos-selftest: #: check that chaos finds every planted bug, in virtual time and with real processes
	cd chaos && go test -count=1 -v -timeout 30m ./simtest -run PlantedBugs -args -planted
	cd chaos && go build -o $(BIN)/chaos-run ./run
	$(BIN)/chaos-run -selftest -scenario "$(SCENARIO)" -seed $(SEED) -out "$(OUT)"

chaos-list: #: list the faults that SCENARIO may name
	cd chaos && go run ./run -list
