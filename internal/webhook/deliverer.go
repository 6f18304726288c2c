package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// lookEvery is how often a leader looks whether it still leads and what webhooks there are.
	lookEvery = 200 * time.Millisecond
	// reportEvery is the time between two reports, and so how much is delivered twice at a change of the leader.
	reportEvery = time.Second
	// skipEvery is the time between two reports that only tell of events that are not selected.
	skipEvery = 30 * time.Second
	// reportTimeout bounds a report.
	reportTimeout = 5 * time.Second
)

// Node is the part of [cluster.Node] that a Deliverer uses.
type Node interface {
	IsLeader() bool
	Read(ctx context.Context, o cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error)
	ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error)
	Propose(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error)
}

// Config configures a Deliverer. All fields but SecretsDir and Hosts are required.
type Config struct {
	Node        Node
	ClusterName string
	Log         hclog.Logger
	Registerer  prometheus.Registerer
	// Hosts are where this server may deliver to.
	Hosts Hosts
	// SecretsDir is the folder with a file for each secret.
	SecretsDir string
	// TypeOf is the type of an event, such as "allocation.granted", and Encode its details as JSON in the present state;
	// nil if the owner of the webhook may see nothing of it.
	TypeOf func(cluster.WatchEvent) string
	Encode func(ledger.Reader, *quota.Webhook, cluster.WatchEvent) ([]byte, error)
}

// Deliverer delivers events while its server leads.
type Deliverer struct {
	config  Config
	client  *http.Client
	metrics *metrics
	// dead are the webhooks that were logged as dead.
	dead map[string]bool
}

// New returns a deliverer and registers its metrics. Run must be called.
func New(c Config) (*Deliverer, error) {
	d := &Deliverer{config: c, client: newClient(c.Hosts), metrics: newMetrics(c.Node), dead: map[string]bool{}}
	if err := c.Registerer.Register(d.metrics); err != nil {
		return nil, fmt.Errorf("registering the metrics of webhooks: %w", err)
	}
	return d, nil
}

// CheckURL refuses a receiver that this server does not deliver to.
func (d *Deliverer) CheckURL(url string) error { return d.config.Hosts.Check(url) }

// Run delivers whenever the server leads, until ctx ends. It then reports once more.
func (d *Deliverer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if d.config.Node.IsLeader() {
			d.lead(ctx)
		}
		pause(ctx, lookEvery)
	}
}

func (d *Deliverer) lead(ctx context.Context) {
	l := &leading{Deliverer: d, workers: map[string]*worker{}}
	for ctx.Err() == nil && d.config.Node.IsLeader() {
		hooks, err := d.readWebhooks(ctx)
		if err == nil {
			l.reconcile(ctx, hooks)
			l.report(ctx, hooks)
		}
		pause(ctx, lookEvery)
	}
	l.stop()
	if hooks, err := d.readWebhooks(context.WithoutCancel(ctx)); err == nil && d.config.Node.IsLeader() {
		l.reported = time.Time{}
		l.report(context.WithoutCancel(ctx), hooks)
	}
}

func (d *Deliverer) readWebhooks(ctx context.Context) (list []*quota.Webhook, err error) {
	_, err = d.config.Node.Read(ctx, cluster.ReadOptions{Stale: true}, func(v ledger.Reader) { list = v.Webhooks() })
	return list, err
}

type leading struct {
	*Deliverer
	workers map[string]*worker
	running sync.WaitGroup
	// reported is when the last report was made.
	reported time.Time
}

func (l *leading) stop() {
	for _, w := range l.workers {
		w.cancel()
	}
	l.running.Wait()
}

// reconcile runs one worker for each active webhook as it is now. A worker of another version ends first: what it has
// delivered and not reported is delivered again.
func (l *leading) reconcile(ctx context.Context, hooks []*quota.Webhook) {
	wanted := map[string]*quota.Webhook{}
	for _, hook := range hooks {
		l.logDead(hook)
		if hook.State == quota.WebhookActive {
			wanted[hook.Name] = hook
		}
	}
	for name, w := range l.workers {
		if hook := wanted[name]; hook == nil || hook.Version != w.hook.Version {
			w.cancel()
			<-w.ended
			delete(l.workers, name)
		}
	}
	for name, hook := range wanted {
		if l.workers[name] == nil {
			l.workers[name] = l.startWorker(ctx, hook)
		}
	}
	l.metrics.forgetOthers(hooks)
}

func (l *leading) startWorker(ctx context.Context, hook *quota.Webhook) *worker {
	w := &worker{
		Deliverer: l.Deliverer, hook: *hook, at: hook.Cursor, ended: make(chan struct{}),
		progress: progress{cursor: hook.Cursor}, sentAt: time.Now(),
	}
	ctx, w.cancel = context.WithCancel(ctx)
	l.running.Go(func() {
		defer close(w.ended)
		w.run(ctx)
	})
	return w
}

// logDead is the alert in the log.
func (l *leading) logDead(hook *quota.Webhook) {
	isDead := hook.State == quota.WebhookDead
	if isDead && !l.dead[hook.Name] {
		l.config.Log.Error("a webhook is dead: nothing is delivered until quorate webhook resume", "webhook", hook.Name,
			"error", hook.LastError)
	}
	l.dead[hook.Name] = isDead
}

func (l *leading) report(ctx context.Context, hooks []*quota.Webhook) {
	if time.Since(l.reported) < reportEvery {
		return
	}
	var command quota.AdvanceWebhooks
	for _, hook := range hooks {
		if w := l.workers[hook.Name]; w != nil && w.hook.Version == hook.Version {
			if r, needed := w.reportFor(hook); needed {
				command.Reports = append(command.Reports, r)
			}
		}
	}
	if len(command.Reports) == 0 {
		return
	}
	l.reported = time.Now()
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	outcomes, _, err := l.config.Node.Propose(cluster.WithSystemCaller(ctx), command)
	if err == nil && outcomes[0].Refused != nil {
		err = outcomes[0].Refused
	}
	if err != nil {
		l.config.Log.Warn("cannot report what webhooks have delivered, trying again", "error", err)
	}
}

func (d *Deliverer) selects(spec quota.WebhookSpec, e cluster.WatchEvent) bool {
	if len(spec.Types) > 0 && !slices.Contains(spec.Types, d.config.TypeOf(e)) {
		return false
	}
	if spec.Tree == "" {
		return true
	}
	if c := e.Crossing; c != nil {
		return c.Tree == spec.Tree && quota.IsWithin(c.Node, spec.Node)
	}
	if r := e.Revision; r != nil {
		return slices.ContainsFunc(r.Changes, func(c quota.Change) bool { return c.IsWithin(spec.Tree, spec.Node) })
	}
	if e.Event != nil {
		tree, node := e.Event.NodePlace()
		return tree == spec.Tree && quota.IsWithin(node, spec.Node)
	}
	return slices.ContainsFunc(e.Allocation.Info().Claims, func(c quota.ClaimInfo) bool {
		return c.Tree == spec.Tree && (quota.IsWithin(c.Node, spec.Node) || quota.IsWithin(c.Placed, spec.Node))
	})
}

func positionOf(p cluster.Position) quota.EventPosition {
	return quota.EventPosition{Index: p.Index, Number: p.Number}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
