package cluster

import (
	"strings"
	"testing"
)

func peer(id string, change ...func(*Peer)) Peer {
	p := Peer{ID: id, RaftAddr: id + ":1", Expect: 3, Alive: true}
	for _, c := range change {
		c(&p)
	}
	return p
}

func TestDeliberation(t *testing.T) {
	agreed := digest([]Peer{peer("a"), peer("b"), peer("c")})
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
		{name: "a single node forms its cluster in two steps", self: peer("a", expects(1)), intent: digest([]Peer{peer("a")}), wait: "not announced"},
		{
			name: "a single node that has announced itself", self: peer("a", expects(1), intends(digest([]Peer{peer("a")}))),
			form: "a", intent: digest([]Peer{peer("a")}),
		},
		{name: "nobody else is here yet", self: peer("a"), wait: "1 of 3"},
		{name: "one is missing", self: peer("a"), peers: []Peer{peer("b")}, wait: "2 of 3"},
		{name: "all are here, none has agreed", self: peer("a"), peers: []Peer{peer("b"), peer("c")}, intent: agreed, wait: "not agreed"},
		{
			name: "one has not agreed", self: peer("a", intends(agreed)), peers: []Peer{peer("b", intends(agreed)), peer("c")},
			intent: agreed, wait: "c has not agreed",
		},
		{
			name: "one agreed to another set", self: peer("a", intends(agreed)),
			peers: []Peer{peer("b", intends(agreed)), peer("c", intends("other"))}, intent: agreed, wait: "c has not agreed",
		},
		{
			name: "all have agreed but this node", self: peer("a"),
			peers: []Peer{peer("b", intends(agreed)), peer("c", intends(agreed))}, intent: agreed, wait: "this node",
		},
		{
			name: "all have agreed", self: peer("b", intends(agreed)),
			peers: []Peer{peer("a", intends(agreed)), peer("c", intends(agreed))}, form: "a b c", intent: agreed,
		},
		{
			name: "a fourth came after the agreement", self: peer("a", intends(agreed)),
			peers: []Peer{peer("b", intends(agreed)), peer("c", intends(agreed)), peer("d")}, intent: agreed, wait: "4 of 3",
		},
		{
			name: "another set is here than was agreed on", self: peer("a", intends(agreed)),
			peers: []Peer{peer("b"), peer("d")}, intent: agreed, wait: "other nodes came",
		},
		{
			name: "one with another address is another set", self: peer("a", intends(agreed)),
			peers: []Peer{peer("b"), peer("c", func(p *Peer) { p.RaftAddr = "elsewhere:1" })}, intent: agreed, wait: "other nodes",
		},
		{
			name: "one joins only", self: peer("a", intends(agreed)),
			peers: []Peer{peer("b", intends(agreed)), peer("c", intends(agreed)), peer("d", expects(0))}, form: "a b c", intent: agreed,
		},
		{name: "they disagree about the number", self: peer("a"), peers: []Peer{peer("b"), peer("c", expects(5))}, wait: "c expects 5"},
		{
			name: "a cluster exists already", self: peer("a", intends(agreed)),
			peers: []Peer{peer("b", intends(agreed)), peer("c", intends(agreed), settled)}, never: true, wait: "c belongs",
		},
		{
			name: "a cluster exists already, of nodes that only joined", self: peer("a"),
			peers: []Peer{peer("b", expects(0), settled)}, never: true, wait: "b belongs",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := deliberate(c.self, c.peers)
			var form []string
			for _, s := range v.form {
				form = append(form, string(s.ID))
			}
			if got := strings.Join(form, " "); got != c.form || v.intent != c.intent || v.never != c.never {
				t.Errorf("got %+v, want form %q, intent %q, never %v", v, c.form, c.intent, c.never)
			}
			if c.wait == "" && v.wait != "" || !strings.Contains(v.wait, c.wait) {
				t.Errorf("waits for %q, want %q", v.wait, c.wait)
			}
		})
	}
}
