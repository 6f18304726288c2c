package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/history"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

type server struct {
	url           string
	allocations   quoratev1connect.AllocationServiceClient
	trees         quoratev1connect.TreeServiceClient
	events        quoratev1connect.EventServiceClient
	cordons       adminv1connect.CordonServiceClient
	configuration adminv1connect.ConfigurationServiceClient
	cluster       adminv1connect.ClusterServiceClient
	// joined joins the calls that all clients of the workload "joined" make to this node at one time.
	joined quoratev1connect.AllocationServiceClient
}

func newServers(config Config) ([]*server, error) {
	var servers []*server
	for _, url := range config.Servers {
		joined, err := client.New([]string{url}, client.WithHTTPClient(config.HTTP), client.WithoutRetries(),
			client.WithAttemptTimeout(config.Timeout))
		if err != nil {
			return nil, err
		}
		servers = append(servers, &server{
			url: url, allocations: quoratev1connect.NewAllocationServiceClient(config.HTTP, url),
			trees:         quoratev1connect.NewTreeServiceClient(config.HTTP, url),
			events:        quoratev1connect.NewEventServiceClient(config.HTTP, url),
			cordons:       adminv1connect.NewCordonServiceClient(config.HTTP, url),
			configuration: adminv1connect.NewConfigurationServiceClient(config.HTTP, url),
			cluster:       adminv1connect.NewClusterServiceClient(config.HTTP, url),
			joined:        joined.Allocations,
		})
	}
	return servers, nil
}

type caller struct {
	config   Config
	workload string
	number   int
	servers  []*server
	random   *rand.Rand
	serial   int
	// highestIndex is the highest log index of all answers so far.
	highestIndex uint64
}

func (c *caller) runSteps(ctx context.Context, step func(context.Context)) {
	for ctx.Err() == nil {
		step(ctx)
		c.pauseAbout(ctx, c.config.Pause)
	}
}

// pauseAbout waits for a random time with the given mean, or until ctx ends.
func (c *caller) pauseAbout(ctx context.Context, mean time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(c.random.Int64N(int64(2*mean) + 1))):
	}
}

// oneIn returns true once in n times on average.
func (c *caller) oneIn(n int) bool { return c.random.IntN(n) == 0 }

func (c *caller) newID() string {
	c.serial++
	return c.idOf(c.serial)
}

func (c *caller) idOf(serial int) string {
	return fmt.Sprintf("%s-%d-%d", c.workload, c.number, serial)
}

func (c *caller) randomServer() *server { return c.servers[c.random.IntN(len(c.servers))] }

func (c *caller) beginOp(kind history.Kind, s *server) *history.Op {
	return &history.Op{Workload: c.workload, Client: c.number, Kind: kind, Server: s.url, Call: c.config.Recorder.Now()}
}

func (c *caller) endOp(o *history.Op, err error) history.Op {
	o.Return = c.config.Recorder.Now()
	c.setOutcome(o, err)
	c.highestIndex = max(c.highestIndex, o.Index)
	c.config.Recorder.Add(*o)
	return *o
}

func (c *caller) setOutcome(o *history.Op, err error) {
	o.Outcome = history.OK
	if err == nil {
		return
	}
	decision, denied := client.DecisionOf(err)
	problem, said := client.ProblemOf(err)
	if f, element := refusalOf(err); element {
		decision, denied, problem, said = f.GetDecision(), f.GetDecision() != nil, f.GetProblem(), f.GetProblem() != nil
	}
	switch {
	case denied:
		o.Outcome, o.Reason, o.Violations = history.Refused, history.Denied, violationsOf(decision)
		o.Index = decision.GetIndex()
	case said && !isClusterFailure(problem):
		o.Outcome, o.Reason = history.Refused, problem.GetReason()
	case o.IsRead() || !client.MayBeDone(err):
		o.Outcome, o.Reason = history.Failed, err.Error()
	default:
		o.Outcome, o.Reason = history.Unknown, err.Error()
	}
}

// clusterFailures are reasons why a cluster cannot serve. All other reasons are decisions of the ledger.
const clusterFailures = "NO_LEADER NOT_LEADER LEADERSHIP_LOST OVERLOADED DEADLINE HALTED SHUTTING_DOWN " +
	"NOT_UPGRADED FORGOTTEN INTERNAL TOKEN_UNVERIFIABLE"

func isClusterFailure(p *quoratev1.Problem) bool {
	return slices.Contains(strings.Fields(clusterFailures), p.GetReason())
}

func violationsOf(d *quoratev1.Decision) []history.Violation {
	var all []history.Violation
	for _, v := range d.GetViolations() {
		all = append(all, history.Violation{
			Tree: v.GetTree(), Node: v.GetNode(), Resource: v.GetResource(), Limit: v.GetLimit(), Used: v.GetUsed(),
			Requested: v.GetRequested(), Missing: v.GetMissing(),
			Kind:        enumName(v.GetKind().String(), "VIOLATION_KIND_"),
			Alternative: int(v.GetAlternative()),
		})
	}
	return all
}

// enumName returns the name of an enum value without its prefix, and "" for the unspecified value.
func enumName(name, prefix string) string {
	name = strings.TrimPrefix(name, prefix)
	if name == "UNSPECIFIED" {
		return ""
	}
	return name
}

// withTimeout lets the attempt outlive ctx: a call that is under way when the run ends still gets its answer.
func (c *caller) withTimeout(ctx context.Context, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.config.Timeout)
	defer cancel()
	return attempt(ctx)
}

// retryUntilDecided repeats a call until it is decided or ctx ends, a few times at most. A call that the cluster does
// not know yet is not repeated: that has no effect until all nodes are upgraded.
func (c *caller) retryUntilDecided(ctx context.Context, attempt func() history.Op) history.Op {
	const attempts = 8
	for i := 1; ; i++ {
		o := attempt()
		if isDecided(o) || isNotUpgraded(o) || ctx.Err() != nil || i == attempts {
			return o
		}
		c.pauseAbout(ctx, c.config.Pause<<i)
	}
}

// retryForever repeats a call until it is decided, ctx ends, or the cluster does not know such calls yet.
func (c *caller) retryForever(ctx context.Context, attempt func() history.Op) {
	for {
		if o := attempt(); isDecided(o) || isNotUpgraded(o) || ctx.Err() != nil {
			return
		}
		c.pauseAbout(ctx, c.config.Timeout/8)
	}
}

// isNotUpgraded reports whether the cluster does not know such calls yet: an upgraded member says that they need a
// feature level, and an earlier version does not know the method.
func isNotUpgraded(o history.Op) bool {
	return o.Outcome == history.Failed &&
		(strings.Contains(o.Reason, "feature level") || strings.HasPrefix(o.Reason, "unimplemented"))
}

func isDecided(o history.Op) bool { return o.Outcome == history.OK || o.Outcome == history.Refused }

var errNoAnswer = errors.New("the answer has no outcome for this request")
