package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/faults"
	"github.com/quorate/quorate/chaos/planted"
	"github.com/quorate/quorate/chaos/workload"
)

// Bounds of the flags.
const (
	minTime    = time.Minute
	maxTime    = 7 * 24 * time.Hour
	minLength  = 5 * time.Second
	maxClients = 100
)

type options struct {
	scenario, workloads, sizes string
	seed                       uint64
	total, length              time.Duration
	out, binary, old, planted  string
	list, plain, selftest      bool
	guarded                    bool
	clients                    int
}

func (o *options) registerFlags(f *flag.FlagSet) {
	f.StringVar(&o.scenario, "scenario", "", "faults, separated by commas; all if empty")
	f.StringVar(&o.workloads, "workloads", "", "workloads, separated by commas; all if empty")
	f.StringVar(&o.sizes, "nodes", "3", "numbers of nodes, 3 or 5, separated by commas; runs alternate")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the first run; random if 0")
	f.DurationVar(&o.total, "time", 5*time.Minute, "how long all runs may take together")
	f.DurationVar(&o.length, "length", 0, "play one run with faults for this time")
	f.StringVar(&o.out, "out", "", "folder for reports; temporary if empty")
	f.StringVar(&o.binary, "binary", "", "server to run; built if empty")
	f.StringVar(&o.old, "old", "", "older server that the nodes run first: a file, a released version or a revision; "+
		"if empty the previous release in runs with upgrades")
	f.StringVar(&o.planted, "planted", "", "build the server with this planted bug")
	f.BoolVar(&o.guarded, "guarded", true, "guard the clusters: accounts work on them beside the workloads")
	f.BoolVar(&o.selftest, "selftest", false, "find every planted bug, or those that scenario names")
	f.BoolVar(&o.list, "list", false, "list the faults")
	f.BoolVar(&o.plain, "plain", false, "build the server without a turnable clock")
	f.IntVar(&o.clients, "clients", 0, "clients of each workload; the default if 0")
}

func (o *options) validate(rest []string) error {
	var bugs, kinds []string
	for _, bug := range planted.Bugs() {
		bugs = append(bugs, bug.Name)
	}
	for _, kind := range faults.All() {
		kinds = append(kinds, kind.Name)
	}
	if o.selftest {
		kinds = bugs
	}
	_, sizes := parseSizes(o.sizes)
	return errors.Join(
		checkAllowed("scenario", splitList(o.scenario), kinds),
		checkAllowed("workloads", splitList(o.workloads), workload.Names()),
		checkAllowed("planted", o.plantedBugs(), bugs), o.buildsPlanted(),
		sizes, checkRange("time", o.total, minTime, maxTime),
		checkOptionalRange("length", o.length, minLength, maxTime),
		checkCount("clients", o.clients, maxClients), rejectArguments(rest))
}

// plantedBugs has at most one bug: a server has no more.
func (o *options) plantedBugs() []string {
	if o.planted == "" {
		return nil
	}
	return []string{o.planted}
}

func (o *options) buildsPlanted() error {
	if o.binary != "" && (o.planted != "" || o.selftest) {
		return errors.New("binary cannot be combined with planted or selftest: bugs are planted in the build")
	}
	return nil
}

func checkAllowed(field string, names, allowed []string) error {
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%s has %q; allowed are %s, separated by commas", field, name,
				strings.Join(allowed, ", "))
		}
	}
	return nil
}

func checkRange(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("%s is %v; allowed are %v to %v", field, d, least, most)
	}
	return nil
}

func checkOptionalRange(field string, d, least, most time.Duration) error {
	if d == 0 {
		return nil
	}
	return checkRange(field, d, least, most)
}

func checkCount(field string, n, most int) error {
	if n < 0 || n > most {
		return fmt.Errorf("%s is %d; allowed are 1 to %d, and 0 for the default", field, n, most)
	}
	return nil
}

func rejectArguments(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q is not a flag; -help lists all flags", rest[0])
	}
	return nil
}

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func parseSizes(text string) (sizes []int, err error) {
	for _, one := range splitList(text) {
		size, err := strconv.Atoi(one)
		if err != nil || size != 3 && size != 5 {
			return nil, fmt.Errorf("nodes is %q; allowed are 3 and 5, separated by commas", text)
		}
		sizes = append(sizes, size)
	}
	if len(sizes) == 0 {
		return nil, errors.New("nodes is empty; allowed are 3 and 5, separated by commas")
	}
	return sizes, nil
}
