// Package runner plays one run: a cluster, a workload and faults for a while, then healing and judging.
package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/faults"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/chaos/nodes"
	"github.com/quorate/quorate/chaos/report"
	"github.com/quorate/quorate/chaos/workload"
)

const (
	// settleTime is how long the workload continues after the cluster is healthy again.
	settleTime = 3 * time.Second
	// searchTimeout bounds each search for a linearization.
	searchTimeout = 30 * time.Second
)

// Config describes a run.
type Config struct {
	// Binary is the server that the nodes run; Turnable is true if its clock can be set. If Old is not empty, the
	// nodes run it first and the fault "upgrade" replaces it with Binary.
	Binary, Old string
	Turnable    bool
	// OldGiven is how the user named Old. It is empty if the seed and the faults decide whether there is an older
	// server.
	OldGiven string
	// Planted is the bug planted in the binary, if any. The command that repeats the run names it.
	Planted string
	// Dir is the folder for all files of the run.
	Dir string
	// Size is the number of nodes.
	Size int
	Seed uint64
	// Scenario names the faults and Workloads the workloads; nil is all of them.
	Scenario, Workloads []string
	// Guarded is true if the cluster is guarded and accounts work on it beside the workloads. An older server cannot be
	// guarded: with Old it stays open, and the result says so.
	Guarded bool
	// Length is how long new faults begin. Healing and judging come on top.
	Length time.Duration
	// Clients is the number of clients of each workload and Pause the mean time between two calls of a client; 0 is
	// the default.
	Clients int
	Pause   time.Duration
	// Patience bounds how long a healed cluster may take to become healthy.
	Patience time.Duration
	// Loopback and PlainDisks leave out faults of the network and of disks even if the machine supports them.
	Loopback, PlainDisks bool
	// Watch, if not nil, is called with each event, a line each.
	Watch func(line string)
}

// Result is the result of a run.
type Result struct {
	Config Config
	Began  time.Time
	// Without says which faults were left out; Faults counts those that happened.
	Without []string
	Faults  faults.Counts
	Events  []faults.Event
	History history.History
	// Verdicts are the verdicts of all promises.
	Verdicts check.Verdicts
	// Failures describe what is wrong, Undecided what could not be decided, one sentence each. Both are empty if all
	// is well.
	Failures, Undecided []string
}

type activeRun struct {
	Config
	cluster  *nodes.Cluster
	target   *faults.Target
	recorder *history.Recorder
	// secret is the bootstrap secret of a cluster that is guarded, and accounts work on it then.
	secret   string
	accounts *guarded.Workload
	// receiver gets the events of the cluster; nil if the servers know no webhooks.
	receiver *receiver
	result   *Result
}

// Run plays a run. An error means that it could not be played; failures of the cluster are in the result. The cluster
// is removed afterwards; what is needed to investigate a failure stays in Dir.
func Run(ctx context.Context, config Config) (result Result, err error) {
	r := &activeRun{Config: config, result: &result}
	result.Config, result.Began = config, time.Now()
	if r.Patience == 0 {
		r.Patience = faults.Patience
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return result, fmt.Errorf("create the folder of the run: %w", err)
	}
	if err := r.startCluster(); err != nil {
		return result, err
	}
	defer func() {
		if err != nil || !result.Passed() {
			err = errors.Join(err, r.keepDisks())
		}
		err = errors.Join(err, r.cluster.Close())
	}()
	if err := r.playFaults(ctx); err != nil {
		return result, fmt.Errorf("%w\n%s", err, lastBytes(r.cluster.Logs()))
	}
	return result, nil
}

func lastBytes(text string) string {
	const most = 8 << 10
	return text[max(0, len(text)-most):]
}

func (r *activeRun) startCluster() error {
	first := r.Binary
	if r.Old != "" {
		first = r.Old
	}
	config := nodes.Config{
		Binary: first, Dir: filepath.Join(r.Dir, "nodes"), Size: r.Size, Seed: r.Seed, Loopback: r.Loopback,
		PlainDisks: r.PlainDisks,
		Mixed:      r.Old != "",
		LogStores:  r.logStores(),
		// Few entries stay in the log behind a snapshot, so that nodes that were away need a snapshot.
		Args: []string{
			"--log-level", "warn", "--snapshot-every", "1000", "--snapshot-check", "2s", "--snapshot-trail",
			"500",
		},
	}
	secret, err := r.makeSecret()
	if err != nil {
		return err
	}
	hooks, err := r.makeWebhookSecret()
	if err != nil {
		return err
	}
	config.Env = append(secret, hooks...)
	cluster, err := nodes.Start(config)
	if err != nil {
		return err
	}
	r.cluster = cluster
	if r.target, err = faults.NewTarget(cluster, r.Binary); err != nil {
		return errors.Join(err, cluster.Close())
	}
	r.target.Old, r.target.Turnable, r.target.Guarded = r.Old, r.Turnable, r.secret != ""
	if r.Watch != nil {
		r.target.Watch = func(e faults.Event) { r.Watch(r.result.eventLine(e)) }
	}
	return nil
}

// logStores draws the log store of each node from the seed, at least one of each kind. An older server knows no log
// stores, and a folder that it made keeps its own.
func (r *activeRun) logStores() []string {
	if r.Old != "" {
		return nil
	}
	random := rand.New(rand.NewPCG(r.Seed, logStoreStream))
	kinds := []string{"wal", "bolt"}
	for len(kinds) < r.Size {
		kinds = append(kinds, kinds[random.IntN(2)])
	}
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return kinds[:r.Size]
}

// logStoreStream separates these draws from others with the same seed.
const logStoreStream = 72

// History returns the path of the run's history. The final states lie beside it.
func (c Config) History() string { return filepath.Join(c.Dir, "history.jsonl") }

func (r *activeRun) playFaults(ctx context.Context) error {
	kinds, without, err := faults.Find(r.target, r.Scenario)
	if err != nil {
		return err
	}
	r.result.Without = append(append(r.result.Without, r.cluster.Without...), without...)
	schedule, err := faults.NewSchedule(r.Seed, kinds)
	if err != nil {
		return err
	}
	if err := r.target.AwaitHealthy(ctx, r.Patience); err != nil {
		return fmt.Errorf("the cluster did not start: %w", err)
	}
	if err := r.guardCluster(ctx); err != nil {
		return err
	}
	if err := r.startReceiver(ctx); err != nil {
		return err
	}
	defer r.receiver.close()
	file, err := os.Create(r.History())
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	defer file.Close() //nolint:errcheck // Flush has told
	r.recorder = history.NewRecorder(file)
	healed, err := r.runWorkload(ctx, schedule)
	if err := errors.Join(err, r.recorder.Flush()); err != nil {
		return err
	}
	return r.judgeHistory(ctx, healed)
}

// runWorkload returns why the cluster did not become healthy again after the faults, if so.
func (r *activeRun) runWorkload(ctx context.Context, schedule *faults.Schedule) (healed, err error) {
	config := workload.Config{
		Servers: r.cluster.URLs(), Boskos: r.cluster.Boskos(), Seed: r.Seed, Names: r.Workloads, Clients: r.Clients,
		Pause:    r.Pause,
		Recorder: r.recorder, HTTP: r.adminHTTP(),
	}
	setUp, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	if err := workload.SetUp(setUp, config); err != nil {
		return nil, fmt.Errorf("set up the workloads: %w", err)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	go func() {
		accounts := r.startAccounts(working)
		err := workload.Run(working, config)
		<-accounts
		worked <- err
	}()
	breaking, enough := context.WithTimeout(ctx, r.Length)
	defer enough()
	r.result.Faults, err = faults.Drive(breaking, r.target, schedule)
	healed = faults.Heal(ctx, r.target, r.Patience)
	faults.Sleep(ctx, settleTime)
	stop()
	return healed, errors.Join(err, <-worked)
}

func (r *activeRun) judgeHistory(ctx context.Context, healed error) error {
	bounded, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	finals, err := check.Collect(bounded, r.cluster.URLs(), r.adminHTTP())
	if err != nil {
		return err
	}
	finals.OlderServers = r.Old != ""
	if err := check.WriteFinals(check.FinalsBeside(r.History()), finals); err != nil {
		return err
	}
	r.result.History, r.result.Events = r.recorder.History(), r.target.Events()
	r.result.Verdicts = check.JudgeWith(r.result.History, finals,
		check.Options{Timeout: searchTimeout, Pictures: r.Dir})
	if r.receiver != nil {
		deliveries := r.receiver.finish(ctx, r.Patience)
		r.result.Verdicts = append(r.result.Verdicts, check.JudgeDeliveries(r.result.History, finals, deliveries))
	}
	if err := r.judgeAccess(ctx); err != nil {
		return err
	}
	if err := r.writeReport(); err != nil {
		return err
	}
	if healed != nil {
		r.addFailure("live: not healthy again after the last fault: %v", healed)
	}
	for _, v := range r.result.Verdicts {
		if v.Violations > 0 {
			r.addFailure("%s: %s", v.Promise, strings.Join(v.Messages, "; "))
		}
		if v.Undecided != "" {
			r.result.Undecided = append(r.result.Undecided, fmt.Sprintf("%s: %s", v.Promise, v.Undecided))
		}
	}
	for _, exit := range r.target.UnexpectedExits() {
		r.addFailure("crash: %s ended by itself with code %d at %s", exit.Node, exit.Code,
			exit.At.Format(time.TimeOnly))
	}
	for _, n := range r.cluster.Nodes {
		if line := panicIn(n.Log()); line != "" {
			r.addFailure("crash: %s: %s", n.ID, line)
		}
	}
	return nil
}

// panicIn returns the first line of a panic in a log. It ignores one kind: raft panics if it cannot write its term
// because of a fault of the disk, and must do so.
func panicIn(log string) string {
	for line := range strings.Lines(log) {
		crash := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
		if crash && !strings.Contains(line, "the data folder failed") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func (r *activeRun) writeReport() error {
	page := report.Run{
		Seed: r.Seed, Nodes: r.Size, Scenario: strings.Join(r.Scenario, ","), Faults: r.result.Faults.String(),
		Again:   r.Command(),
		History: r.result.History, Verdicts: r.result.Verdicts,
	}
	for _, s := range r.target.Spans() {
		page.Spans = append(page.Spans, report.Span{
			Name: s.Name, From: s.From.Sub(r.recorder.Began()),
			Until: s.Until.Sub(r.recorder.Began()),
		})
	}
	for _, e := range r.result.Events {
		page.Events = append(page.Events, report.Event{At: e.At.Sub(r.recorder.Began()), What: e.What, Node: e.Node})
	}
	if page.Scenario == "" {
		page.Scenario = "everything"
	}
	timeline := os.WriteFile(filepath.Join(r.Dir, "timeline.txt"), []byte(r.result.Timeline()), 0o600)
	return errors.Join(report.Write(r.Dir, page), timeline)
}

func (r *activeRun) addFailure(format string, args ...any) {
	r.result.Failures = append(r.result.Failures, fmt.Sprintf(format, args...))
}

// keepDisks stops the nodes first. The data is copied because the disks vanish with the cluster.
func (r *activeRun) keepDisks() error {
	var failed []error
	for _, n := range r.cluster.Nodes {
		failed = append(failed, n.Kill(), os.CopyFS(filepath.Join(r.Dir, "kept", n.ID), os.DirFS(n.Disk.Backing)))
	}
	return errors.Join(failed...)
}
