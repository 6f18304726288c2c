package cluster

import (
	"strings"
	"testing"
)

func testPeer(id string, change ...func(*Peer)) Peer {
	p := Peer{ID: id, RaftAddr: id + ":1", Expect: 3, Alive: true}
	for _, c := range change {
		c(&p)
	}
	return p
}

func TestDeliberation(t *testing.T) {
	agreed := intentDigest([]Peer{testPeer("a"), testPeer("b"), testPeer("c")})
	intends := func(intent string) func(*Peer) { return func(p *Peer) { p.Intent = intent } }
	expects := func(n int) func(*Peer) { return func(p *Peer) { p.Expect = n } }
	settled := func(p *Peer) { p.HasState = true }
	cases := []struct {
		name   string
		self   Peer
		peers  []Peer
		form   string // ids of the configuration
		intent string
		never  bool
		wait   string // part of the reason
	}{
		{
			name: "a single node forms its cluster in two steps", self: testPeer("a", expects(1)),
			intent: intentDigest([]Peer{testPeer("a")}), wait: "not announced",
		},
		{
			name: "a single node that has announced itself", self: testPeer("a", expects(1),
				intends(intentDigest([]Peer{testPeer("a")}))),
			form: "a", intent: intentDigest([]Peer{testPeer("a")}),
		},
		{name: "no other node is here yet", self: testPeer("a"), wait: "1 of 3"},
		{name: "one is missing", self: testPeer("a"), peers: []Peer{testPeer("b")}, wait: "2 of 3"},
		{
			name: "all are here, none has agreed", self: testPeer("a"), peers: []Peer{testPeer("b"), testPeer("c")},
			intent: agreed, wait: "not agreed",
		},
		{
			name: "one has not agreed", self: testPeer("a", intends(agreed)), peers: []Peer{
				testPeer("b", intends(agreed)),
				testPeer("c"),
			},
			intent: agreed, wait: "c has not agreed",
		},
		{
			name: "one agreed to another set", self: testPeer("a", intends(agreed)),
			peers: []Peer{testPeer("b", intends(agreed)), testPeer("c", intends("other"))}, intent: agreed,
			wait: "c has not agreed",
		},
		{
			name: "all have agreed but this node", self: testPeer("a"),
			peers: []Peer{testPeer("b", intends(agreed)), testPeer("c", intends(agreed))}, intent: agreed,
			wait: "this node",
		},
		{
			name: "all have agreed", self: testPeer("b", intends(agreed)),
			peers: []Peer{testPeer("a", intends(agreed)), testPeer("c", intends(agreed))},
			form:  "a b c", intent: agreed,
		},
		{
			name: "a fourth came after the agreement", self: testPeer("a", intends(agreed)),
			peers:  []Peer{testPeer("b", intends(agreed)), testPeer("c", intends(agreed)), testPeer("d")},
			intent: agreed,
			wait:   "4 of 3",
		},
		{
			name: "another set is here than was agreed on", self: testPeer("a", intends(agreed)),
			peers: []Peer{testPeer("b"), testPeer("d")}, intent: agreed, wait: "the set of nodes has changed",
		},
		{
			name: "one with another address is another set", self: testPeer("a", intends(agreed)),
			peers: []Peer{testPeer("b"), testPeer("c",
				func(p *Peer) { p.RaftAddr = "elsewhere:1" })}, intent: agreed, wait: "the set of nodes has changed",
		},
		{
			name: "one joins only", self: testPeer("a", intends(agreed)),
			peers: []Peer{testPeer("b", intends(agreed)), testPeer("c", intends(agreed)), testPeer("d", expects(0))},
			form:  "a b c", intent: agreed,
		},
		{
			name: "they disagree about the number", self: testPeer("a"),
			peers: []Peer{testPeer("b"), testPeer("c", expects(5))},
			wait:  "c expects 5",
		},
		{
			name: "a cluster exists already", self: testPeer("a", intends(agreed)),
			peers: []Peer{testPeer("b", intends(agreed)), testPeer("c", intends(agreed), settled)}, never: true,
			wait: "c belongs",
		},
		{
			name: "a cluster exists already, of nodes that only joined", self: testPeer("a"),
			peers: []Peer{testPeer("b", expects(0), settled)}, never: true, wait: "b belongs",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := decideBootstrap(c.self, c.peers)
			var form []string
			for _, s := range v.servers {
				form = append(form, string(s.ID))
			}
			if got := strings.Join(form, " "); got != c.form || v.intent != c.intent || v.clusterExists != c.never {
				t.Errorf("got %+v, want form %q, intent %q, never %v", v, c.form, c.intent, c.never)
			}
			if c.wait == "" && v.waitReason != "" || !strings.Contains(v.waitReason, c.wait) {
				t.Errorf("waits for %q, want %q", v.waitReason, c.wait)
			}
		})
	}
}
