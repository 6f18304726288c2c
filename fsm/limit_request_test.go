package fsm

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/audit"
)

// TestRequestsAreAudited: what happens to a request is in the records, with who did it.
func TestRequestsAreAudited(t *testing.T) {
	f := accessFSM(t)
	var lines []string
	for _, e := range f.records.Entries() {
		record, err := audit.Decode(e.Line)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range record.Changes {
			if strings.HasPrefix(c.Field, "request ") {
				lines = append(lines, record.Action+" "+record.Actor.User+" "+c.Tree+":"+c.Node+" "+c.Field, c.Before, c.After)
			}
		}
	}
	want := `RequestLimits corp/eva pair:a request 1

open: cores=7 for corp/eva
RequestLimits corp/eva bound:a request 2

open: cores=8 for corp/eva
RequestLimits corp/eva bound:a request 3

open: cores=9 for corp/eva
ApproveRequest account/admin pair:a request 1
open: cores=7 for corp/eva
open: cores=7 for corp/eva; approved by account/admin
ApproveRequest account/admin bound:a request 2
open: cores=8 for corp/eva
applied: cores=8 for corp/eva; approved by account/admin
WithdrawRequest corp/eva bound:a request 3
open: cores=9 for corp/eva
withdrawn: cores=9 for corp/eva
RequestLimits corp/eva ruled:a request 4

applied: cores=8 for corp/eva; approved by system/auto-approve`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("the records are\n%s\nwant\n%s", got, want)
	}
}
