package check

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/history"
)

// TestJudgeDeliveries: a grant that was acknowledged and not delivered is found, unless it may be in a gap; so is a
// wrong order.
func TestJudgeDeliveries(t *testing.T) {
	grant := func(id string, fence, index uint64) history.Op {
		return history.Op{
			Kind: history.Allocate, ID: id, Outcome: history.OK, Index: index, Fence: fence, State: history.Held,
			Call: int64(10 * index), Return: int64(10*index + 5),
			Claims: []history.Claim{{Tree: "t", Amounts: map[string]int64{"cores": 1}}},
		}
	}
	h := history.History{Ops: []history.Op{grant("a", 1, 5), grant("b", 2, 6)}}
	delivered := func(index, fence uint64) Delivery {
		return Delivery{Index: index, Number: 1, Type: "allocation.granted", Fence: fence}
	}
	both := []Delivery{delivered(5, 1), delivered(6, 2)}
	for name, c := range map[string]struct {
		d    Deliveries
		says string
	}{
		"all":        {Deliveries{From: 4, Events: both}, ""},
		"one":        {Deliveries{From: 4, Events: both[:1]}, "b was granted with fence 2"},
		"before":     {Deliveries{From: 6, Events: nil}, ""},
		"in a gap":   {Deliveries{From: 4, Events: both[:1], Gaps: []DeliveryGap{{5, 7}}}, ""},
		"in another": {Deliveries{From: 4, Events: both[1:], Gaps: []DeliveryGap{{7, 9}}}, "a was granted with fence 1"},
		"order":      {Deliveries{From: 4, Events: []Delivery{both[1], both[0]}}, "was first delivered after"},
		"late":       {Deliveries{From: 4, Events: []Delivery{both[1], both[0]}, Gaps: []DeliveryGap{{4, 5}}}, ""},
		"later": {
			Deliveries{
				From: 4, Events: []Delivery{delivered(8, 3), delivered(9, 4), both[0], both[1]}, Gaps: []DeliveryGap{{6, 8}},
			},
			"event 5.1 was first delivered after 9.1",
		},
		"wrong": {Deliveries{From: 4, Events: both, Wrong: []string{"signature"}}, "signature"},
	} {
		v := JudgeDeliveries(h, Finals{}, c.d)
		if got := strings.Join(v.Messages, "; "); (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
	if v := JudgeDeliveries(h, Finals{}, Deliveries{Unfinished: "away"}); v.Status() != "undecided" {
		t.Errorf("an unfinished run is %s", v.Status())
	}
}
