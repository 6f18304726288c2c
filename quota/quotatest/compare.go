package quotatest

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// RequireSame compares what has no pointers; an empty list is as good as none.
func RequireSame[T any](t *rapid.T, what string, want, got T) {
	t.Helper()
	if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}

// RequireSameDryRun checks that a dry run predicted what the command then did, and made neither an allocation nor a
// revision.
func RequireSameDryRun(t *rapid.T, c quota.Command, dry, real ledger.Outcome) {
	t.Helper()
	if d := dry.Decision; d != nil {
		withoutPlacements := *d
		withoutPlacements.Placements = nil // only a dry run has them
		dry.Decision = &withoutPlacements
	}
	if !cmp.Equal(dry.Refused, real.Refused) || !cmp.Equal(dry.Decision, real.Decision) ||
		dry.Repeated != real.Repeated {
		t.Fatalf("a dry run of %T %+v differs in refusal, decision or repetition (-dry +real):\n%s%s%v, %v", c, c,
			cmp.Diff(dry.Refused, real.Refused), cmp.Diff(dry.Decision, real.Decision), dry.Repeated, real.Repeated)
	}
	if _, ok := c.(quota.Allocate); ok && !dry.Repeated && dry.Allocation != nil {
		t.Fatalf("a dry run of %+v allocated", c)
	}
	if dry.Configuration == nil || dry.Repeated {
		return
	}
	made := uint64(0)
	if len(real.Configuration.Changes) > 0 {
		made = 1
	}
	if dry.Configuration.Revision+made != real.Configuration.Revision ||
		!cmp.Equal(dry.Configuration.Changes, real.Configuration.Changes) ||
		!cmp.Equal(dry.Configuration.Over, real.Configuration.Over) {
		t.Fatalf("a dry run of %+v predicted %+v, but the outcome was %+v", c, *dry.Configuration,
			*real.Configuration)
	}
}
