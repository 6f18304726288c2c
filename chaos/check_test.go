package chaos

import (
	"strings"
	"testing"
	"time"
)

// TestTheCheckerIsNotBlind plants one broken promise at a time: a checker that finds nothing proves nothing.
func TestTheCheckerIsNotBlind(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	grant := func(id string, worker int, amount int64, fence, index uint64, called, returned int) Operation {
		return Operation{Worker: worker, Kind: Allocate, ID: id, Amount: amount, Fence: fence, Index: index, Verdict: Granted, Called: at(called), Returned: at(returned)}
	}
	tests := map[string]struct {
		history []Operation
		want    string
	}{
		"a history as it should be": {
			[]Operation{
				grant("a", 0, LeafLimit, 1, 5, 0, 1),
				{Worker: 0, Kind: Release, ID: "a", Amount: LeafLimit, Index: 6, Verdict: Released, Called: at(2), Returned: at(3)},
				grant("b", 0, LeafLimit, 2, 7, 4, 5),
			}, "",
		},
		"a release whose first answer was lost": {
			[]Operation{
				grant("a", 0, LeafLimit, 1, 5, 0, 1), grant("b", 0, 1, 2, 7, 4, 9),
				{Worker: 0, Kind: Release, ID: "a", Amount: LeafLimit, After: 5, Index: 8, Repeated: true, Verdict: Released, Called: at(2), Returned: at(9)},
			}, "",
		},
		"a leaf over its limit":   {[]Operation{grant("a", 0, LeafLimit, 1, 5, 0, 1), grant("b", 0, 1, 2, 6, 2, 3)}, "P1"},
		"one id, two grants":      {[]Operation{grant("a", 0, 1, 1, 5, 0, 1), grant("a", 0, 1, 2, 6, 2, 3)}, "P2"},
		"one fence, two ids":      {[]Operation{grant("a", 0, 1, 1, 5, 0, 1), grant("b", 0, 1, 1, 6, 0, 3)}, "P5"},
		"a fence that went back":  {[]Operation{grant("a", 0, 1, 9, 5, 0, 1), grant("b", 0, 1, 8, 6, 2, 3)}, "P7"},
		"a read of something old": {[]Operation{{Kind: ReadOwn, Verdict: Observed, Seen: 3, Expected: 5}}, "P7"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Check(test.history)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Check finds %v in it", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("Check says %v, want a broken %s", err, test.want)
			}
		})
	}
}

func TestTheFinalCheckIsNotBlind(t *testing.T) {
	granted := []Operation{{Kind: Allocate, ID: "a", Verdict: Granted}}
	if err := checkHeld(map[string]int64{"a": 1}, granted); err != nil {
		t.Error(err)
	}
	if checkHeld(map[string]int64{}, granted) == nil {
		t.Error("a lost grant was not noticed")
	}
	if checkHeld(map[string]int64{"a": 1, "b": 1}, granted) == nil {
		t.Error("an allocation from nowhere was not noticed")
	}
}
