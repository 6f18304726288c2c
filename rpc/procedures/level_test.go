package procedures

import (
	"testing"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// TestLevelOf: the level of a field counts wherever it is in a request, also if its value is 0.
func TestLevelOf(t *testing.T) {
	amount := &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: 1}}
	advisory := &quoratev1.Limit{Value: &quoratev1.Limit_Advisory{}}
	in := func(limit *quoratev1.Limit) map[string]*quoratev1.Limit {
		return map[string]*quoratev1.Limit{"cores": amount, "ram": limit}
	}
	node := &quoratev1.Node{Path: "a", Defaults: in(advisory)}
	for name, test := range map[string]struct {
		request proto.Message
		want    uint32
	}{
		"nothing new": {&quoratev1.SetLimitsRequest{Tree: "t", Limits: in(amount)}, 0},
		"in a map":    {&quoratev1.SetLimitsRequest{Tree: "t", Limits: in(advisory)}, 9},
		"in a map of a message of a list": {
			&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{Name: "t", Nodes: []*quoratev1.Node{node}}}}, 9,
		},
		"in a field": {&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{{RequirePrincipal: true}}}, 8},
	} {
		if got := LevelOf(test.request); got != test.want {
			t.Errorf("%s: level %d, want %d", name, got, test.want)
		}
	}
}
