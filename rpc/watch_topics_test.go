package rpc

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	thresholds    = quoratev1.WatchTopic_WATCH_TOPIC_THRESHOLDS
	configuration = quoratev1.WatchTopic_WATCH_TOPIC_CONFIGURATION
	allocations   = quoratev1.WatchTopic_WATCH_TOPIC_ALLOCATIONS
)

// warnedHistory makes a tree with thresholds, crosses and clears one at each of two nodes, and changes a limit.
func warnedHistory(d *testServer) (begin uint64) {
	begin = d.node.index
	cores := func(n quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(n)}}
	}
	claim := func(id, node string, n quota.Amount) quota.Command {
		return quota.Allocate{ID: id, Claims: []quota.Claim{
			{Tree: "w", Node: node, Amounts: quota.Vector{{Resource: "cores", Amount: n}}},
		}}
	}
	d.node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "w", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Thresholds: quota.Thresholds{Percents: []int{80}}}, {Path: "a", Limits: cores(10)}, {Path: "b", Limits: cores(10)},
		},
	}}})
	d.node.apply(claim("in-a", "a", 8))
	d.node.apply(claim("in-b", "b", 9))
	d.node.apply(quota.Release{ID: "in-a"})
	d.node.apply(quota.SetLimits{
		Meta: quota.ChangeMeta{Actor: "ann", Reason: "more"}, Tree: "w", Node: "b", Limits: cores(11),
	})
	return begin
}

// eventText is such as "crossed w:a 80% 8 of 10" or "revision 2 by ann: w:b limit cores 10 11".
func eventText(m *quoratev1.WatchEventsResponse) string {
	if c := m.GetCrossing(); c != nil {
		word := map[bool]string{true: "cleared", false: "crossed"}[c.GetCleared()]
		return fmt.Sprintf("%s %s:%s %d%% %d of %d", word, c.GetTree(), c.GetNode(), c.GetPercent(), c.GetUsed(),
			c.GetLimit().GetAmount())
	}
	if r := m.GetRevision(); r != nil {
		text := fmt.Sprintf("revision by %s:", r.GetActor())
		for _, c := range r.GetChanges() {
			text += fmt.Sprintf(" %s:%s %s %s %s", c.GetTree(), c.GetNode(), c.GetField(), c.GetBefore(), c.GetAfter())
		}
		return text
	}
	return "allocation " + m.GetChange().GetAllocation().GetId()
}

func TestWatchTopics(t *testing.T) {
	d := oneNode(t)
	begin := warnedHistory(d)
	for name, test := range map[string]struct {
		topics []quoratev1.WatchTopic
		node   string
		want   []string
	}{
		"none": {nil, "", []string{"allocation in-a", "allocation in-b", "allocation in-a"}},
		"thresholds": {[]quoratev1.WatchTopic{thresholds}, "", []string{
			"crossed w:a 80% 8 of 10", "crossed w:b 80% 9 of 10", "cleared w:a 80% 0 of 10",
		}},
		"thresholds of a node": {[]quoratev1.WatchTopic{thresholds}, "b", []string{"crossed w:b 80% 9 of 10"}},
		"a node": {[]quoratev1.WatchTopic{configuration, thresholds, allocations}, "b", []string{
			"revision by : w:b node  b w:b limit cores  10", "allocation in-b", "crossed w:b 80% 9 of 10",
			"revision by ann: w:b limit cores 10 11",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d.node.apply(quota.UncordonNode{Tree: "w"}) // nothing changes
			stream := d.watch(t, &quoratev1.WatchEventsRequest{
				AfterIndex: begin, Tree: "w", Node: test.node, Topics: test.topics,
			})
			var got []string
			for len(got) < len(test.want) && stream.Receive() {
				if m := stream.Msg(); m.GetChange().GetAllocation() != nil || m.GetCrossing() != nil || m.GetRevision() != nil {
					got = append(got, eventText(m))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the stream says\n%q, want\n%q (%v)", got, test.want, stream.Err())
			}
		})
	}
	stream := d.watch(t,
		&quoratev1.WatchEventsRequest{
			Allocations: []*quoratev1.AllocationRef{{Id: "x"}},
			Topics:      []quoratev1.WatchTopic{thresholds},
		})
	if stream.Receive() || connect.CodeOf(stream.Err()) != connect.CodeInvalidArgument {
		t.Errorf("thresholds of an id: %v", stream.Err())
	}
}

// TestWatchNodes: scheduled limits and drains are watched at the node and above it, and by those who may see them.
func TestWatchNodes(t *testing.T) {
	t.Parallel()
	d := oneNode(t)
	d.startCivil(0)
	begin := d.node.index
	if _, err := d.trees().ScheduleLimits(t.Context(), lessHiggs()); err != nil {
		t.Fatal(err)
	}
	d.node.applyAt(0, quota.CordonNode{Tree: "cern", Node: "physics/higgs", Drain: true})
	for _, second := range []int64{10, 25, 40} {
		d.startCivil(second)
	}
	for node, want := range map[string][]string{
		"physics": {"LIMIT_SCHEDULED less", "DRAINED ", "LIMIT_STARTED less", "LIMIT_ENDING less", "LIMIT_ENDED less"},
		"it":      {},
	} {
		stream := d.watch(t, &quoratev1.WatchEventsRequest{
			AfterIndex: begin, Tree: "cern", Node: node,
			Topics: []quoratev1.WatchTopic{quoratev1.WatchTopic_WATCH_TOPIC_NODES, thresholds, configuration},
		})
		got := []string{}
		for stream.Receive() {
			m := stream.Msg()
			if e := m.GetEvent(); e != nil {
				got = append(got, strings.TrimPrefix(e.GetKind().String(), "EVENT_KIND_")+" "+e.GetId())
			} else if m.GetRevision() == nil { // the heartbeat behind everything
				break
			}
			if len(want) > 0 && len(got) == len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %s: %q, want %q (%v)", node, got, want, stream.Err())
		}
	}
}

// TestNodeEventsForWebhooks: they have types and the JSON of the watch.
func TestNodeEventsForWebhooks(t *testing.T) {
	d := oneNode(t)
	d.startCivil(0)
	begin := d.node.index
	if _, err := d.trees().ScheduleLimits(t.Context(), lessHiggs()); err != nil {
		t.Fatal(err)
	}
	d.node.applyAt(0, quota.CordonNode{Tree: "cern", Node: "physics/higgs", Drain: true})
	page, err := d.node.ReadFeed(cluster.Position{Index: begin, Number: math.MaxUint32}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.Events {
		var text []byte
		_, _ = d.node.Read(t.Context(), cluster.ReadOptions{Stale: true}, func(v ledger.Reader) { // it never fails
			text, err = EncodeEvent(v, &quota.Webhook{}, e)
		})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, EventType(e))
		if e.Event != nil && !strings.Contains(string(text), `"event":{`) {
			t.Errorf("%s is %s", EventType(e), text)
		}
	}
	if want := []string{"limit.scheduled", "configuration.changed", "node.drained"}; !slices.Equal(got, want) {
		t.Errorf("the types are %q, want %q", got, want)
	}
}

func TestEventsOfANode(t *testing.T) {
	d := oneNode(t)
	warnedHistory(d)
	answer, err := d.allocations().ListEvents(t.Context(), &quoratev1.ListEventsRequest{Tree: "w", Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var got []quoratev1.EventKind
	for _, e := range answer.GetEvents() {
		if got = append(got, e.GetKind()); e.GetCrossing().GetNode() != "a" {
			t.Errorf("an event of a is %v", e)
		}
	}
	want := []quoratev1.EventKind{quoratev1.EventKind_EVENT_KIND_CROSSED, quoratev1.EventKind_EVENT_KIND_CLEARED}
	if !slices.Equal(got, want) {
		t.Errorf("the events of a are %v", got)
	}
	_, err = d.allocations().ListEvents(t.Context(), &quoratev1.ListEventsRequest{Node: "a"})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("events of a node without a tree: %v", err)
	}
}
