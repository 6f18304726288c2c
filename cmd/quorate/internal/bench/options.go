//go:build unix

package bench

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/load"
)

type options struct {
	workloadName string
	workload     workload

	callers   []int
	rate      float64
	warmup    time.Duration
	duration  time.Duration
	count     int64 // 0 if only the duration counts
	maxErrors int64

	batch, leaves, renewals, watchers int
	reads                             []string
	afterWrite                        bool

	join    bool
	cluster int
	picture string

	boskos, boskosType string
	boskosQueue        bool
}

// openCallers is the most iterations under way with --rate unless --callers says otherwise.
const openCallers = 256

// complete checks the options and fills in what depends on the workload.
func (o *options) complete(isSet func(flag string) bool) error {
	if isSet("reads") && !isSet("workload") {
		o.workloadName = workloadReads
	}
	if o.count > 0 && !isSet("duration") {
		o.duration = load.MaxDuration
	}
	if o.rate != 0 && !isSet("callers") {
		o.callers = []int{openCallers}
	}
	if err := o.selectWorkload(isSet); err != nil {
		return err
	}
	for _, check := range []func(func(string) bool) error{o.checkLoad, o.checkCombinations} {
		if err := check(isSet); err != nil {
			return err
		}
	}
	return checkReadKinds(o.reads)
}

func (o *options) selectWorkload(isSet func(flag string) bool) error {
	i := slices.IndexFunc(allWorkloads, func(w workload) bool { return w.name == o.workloadName })
	if i < 0 {
		return cli.Usagef("--workload %s: allowed are %s", o.workloadName, strings.Join(workloadNames(), ", "))
	}
	o.workload = allWorkloads[i]
	if w := o.workload; w.leaves > 0 && !isSet("leaves") {
		o.leaves = w.leaves
	}
	if o.workloadName == workloadBatch && !isSet("batch") {
		o.batch = defaultBatch
	}
	if o.workloadName == workloadReads && len(o.reads) == 0 {
		o.reads = readKinds
	}
	return nil
}

func (o *options) checkLoad(func(string) bool) error {
	for _, n := range o.callers {
		if n < 1 || n > 1024 {
			return cli.Usagef("--callers must be between 1 and 1024, not %d", n)
		}
	}
	switch {
	case len(o.callers) == 0 || len(o.callers) > 32:
		return cli.Usagef("--callers must list 1 to 32 numbers, not %d", len(o.callers))
	case o.rate < 0 || o.rate > load.MaxRate || math.IsNaN(o.rate):
		return cli.Usagef("--rate must be between 0 and %.0f per second, not %g", load.MaxRate, o.rate)
	case o.duration <= 0 || o.duration > load.MaxDuration:
		return cli.Usagef("--duration must be more than 0 and at most %v, not %v", load.MaxDuration, o.duration)
	case o.warmup < 0 || o.warmup > load.MaxDuration:
		return cli.Usagef("--warmup must be between 0 and %v, not %v", load.MaxDuration, o.warmup)
	case o.batch < 1 || o.batch > 1000:
		return cli.Usagef("--batch must be between 1 and 1000, not %d", o.batch)
	case o.leaves < 1 || o.leaves > 1000:
		return cli.Usagef("--leaves must be between 1 and 1000, not %d", o.leaves)
	case o.renewals < 1 || o.renewals > 1000:
		return cli.Usagef("--renewals must be between 1 and 1000, not %d", o.renewals)
	case o.watchers < 1 || o.watchers > 1000:
		return cli.Usagef("--watchers must be between 1 and 1000, not %d", o.watchers)
	case o.count < 0:
		return cli.Usagef("--iterations must not be negative: %d", o.count)
	case o.maxErrors < 0:
		return cli.Usagef("--max-errors must not be negative: %d", o.maxErrors)
	case o.cluster != 0 && o.cluster != 1 && o.cluster != 3 && o.cluster != 5:
		return cli.Usagef("--cluster must be 1, 3 or 5, not %d", o.cluster)
	case o.picture != "" && !slices.Contains([]string{".svg", ".html"}, filepath.Ext(o.picture)):
		return cli.Usagef("--picture %s: the name must end in .svg or .html", o.picture)
	}
	return nil
}

func (o *options) checkCombinations(isSet func(string) bool) error {
	isReading := o.workloadName == workloadReads
	switch {
	case (o.boskos == "") != (o.boskosType == ""):
		return cli.Usagef("--boskos and --boskos-type must be used together")
	case o.boskos != "" && (isSet("workload") || isSet("reads") || isSet("batch") || o.cluster > 0 || o.join):
		return cli.Usagef("--boskos cannot be combined with --workload, --reads, --batch, --cluster or --join")
	case o.cluster > 0 && isSet("server"):
		return cli.Usagef("--cluster starts its own servers and cannot be combined with --server")
	case isSet("reads") && !isReading:
		return cli.Usagef("--reads needs workload %s, not %s", workloadReads, o.workloadName)
	case o.afterWrite && !isReading:
		return cli.Usagef("--after-write needs --reads")
	case o.afterWrite && o.rate > 0:
		return cli.Usagef("--after-write cannot be combined with --rate: latencies would include the write")
	case isSet("batch") && !o.workload.batches:
		return cli.Usagef("--batch cannot be combined with workload %s", o.workloadName)
	case isSet("leaves") && o.workload.leaves == 0:
		return cli.Usagef("--leaves cannot be combined with workload %s", o.workloadName)
	case isSet("renewals") && o.workloadName != workloadLeases:
		return cli.Usagef("--renewals needs workload %s, not %s", workloadLeases, o.workloadName)
	case isSet("watchers") && o.workloadName != workloadWatch:
		return cli.Usagef("--watchers needs workload %s, not %s", workloadWatch, o.workloadName)
	}
	return nil
}
