package workload

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/chaos/history"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// countedResource is the counted resource of all trees.
const countedResource = "units"

// treeSpec is a tree: its limits as histories have them, its items, and other settings.
type treeSpec struct {
	name   string
	limits []history.Limit
	items  map[string][]string
	// change adds other settings; nil if there are none.
	change func(*quoratev1.Tree)
}

// newTreeSpec takes pairs of a node and a limit: newTreeSpec("t", "", 10, "a", 5).
func newTreeSpec(name string, pairs ...any) treeSpec {
	t := treeSpec{name: name}
	for i := 0; i < len(pairs); i += 2 {
		node, _ := pairs[i].(string)
		amount, _ := pairs[i+1].(int)
		t.limits = append(t.limits, history.Limit{
			Tree: name, Node: node, Resource: countedResource,
			Amount: int64(amount),
		})
	}
	return t
}

func (t treeSpec) toProto() *quoratev1.Tree {
	p := &quoratev1.Tree{
		Name:      t.name,
		Resources: []*quoratev1.Resource{{Name: countedResource, Unit: quoratev1.Unit_UNIT_COUNT}},
	}
	for name, items := range t.items {
		p.Resources = append(p.Resources, &quoratev1.Resource{
			Name: name, Unit: quoratev1.Unit_UNIT_ITEMS, Items: &quoratev1.ItemSpec{Names: items},
		})
	}
	for _, l := range t.limits {
		amounts := map[string]*quoratev1.Limit{countedResource: toLimit(l)}
		if l.Amount == history.Unlimited {
			amounts = nil
		}
		if l.Node == "" {
			p.Limits = amounts
		} else {
			p.Nodes = append(p.Nodes, &quoratev1.Node{Path: l.Node, Limits: amounts})
		}
	}
	if t.change != nil {
		t.change(p)
	}
	return p
}

func toLimit(l history.Limit) *quoratev1.Limit {
	switch {
	case l.Advises > 0:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Advisory{Advisory: l.Advises}}
	case l.Amount == history.Unlimited:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}
	}
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: l.Amount}}
}

// SetUp creates the trees of the workloads, and records that: their limits are part of the history. It retries until
// the cluster accepts them or ctx ends.
func SetUp(ctx context.Context, config Config) error {
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	servers, err := newServers(config)
	if err != nil {
		return err
	}
	c := &caller{
		config: config, workload: "setup", servers: servers,
		random: clientRandom(config.Seed, "setup", 0),
	}
	var all []treeSpec
	for _, name := range config.Names {
		if workloads()[name].trees != nil {
			all = append(all, workloads()[name].trees()...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	id := c.newID()
	for {
		o := c.callApplyTrees(ctx, id, all)
		switch {
		case o.Outcome == history.OK:
			return nil
		case o.Outcome == history.Refused:
			return fmt.Errorf("set up the workloads: the cluster refused their trees: %s", o.Reason)
		case ctx.Err() != nil:
			return fmt.Errorf("set up the workloads: %w, after %s", ctx.Err(), o.Reason)
		}
		c.pauseAbout(ctx, config.Timeout/8)
	}
}

func (c *caller) callApplyTrees(ctx context.Context, id string, trees []treeSpec) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Configure, s)
	o.ID = id
	request := &quoratev1.ApplyTreesRequest{RequestId: id, Actor: "chaos", Reason: c.workload}
	for _, t := range trees {
		o.Limits = append(o.Limits, t.limits...)
		request.Trees = append(request.Trees, t.toProto())
	}
	var answer *quoratev1.ApplyTreesResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.ApplyTrees(ctx, request)
		return err
	})
	setConfiguration(o, answer)
	return c.endOp(o, err)
}

// configurationAnswer is the answer to a change of configuration.
type configurationAnswer interface {
	GetResult() *quoratev1.ConfigurationResult
	GetWrite() *quoratev1.WriteInfo
}

func setConfiguration(o *history.Op, a configurationAnswer) {
	o.Index, o.Repeated = a.GetWrite().GetIndex(), a.GetWrite().GetRepetition()
	o.Revision = a.GetResult().GetRevision()
}

func (c *caller) callSetLimits(ctx context.Context, id string, l history.Limit) history.Op {
	s := c.randomServer()
	o := c.beginOp(history.Configure, s)
	o.ID, o.Limits = id, []history.Limit{l}
	var answer *quoratev1.SetLimitsResponse
	err := c.withTimeout(ctx, func(ctx context.Context) (err error) {
		answer, err = s.trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
			Tree: l.Tree, Node: l.Node, Limits: map[string]*quoratev1.Limit{l.Resource: toLimit(l)},
			RequestId: id, Actor: "chaos", Reason: c.workload,
		})
		return err
	})
	setConfiguration(o, answer)
	return c.endOp(o, err)
}

func (t treeSpec) withStrictQueue() treeSpec {
	t.change = func(p *quoratev1.Tree) { p.Queueing = quoratev1.Queueing_QUEUEING_STRICT }
	return t
}
