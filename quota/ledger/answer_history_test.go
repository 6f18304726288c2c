package ledger_test

import (
	"fmt"
	"math"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func (p *player) history(v ledger.Sandbox, args []string) error {
	before, most := uint64(0), math.MaxInt
	for _, arg := range args {
		if _, err := fmt.Sscanf(arg, "before=%d", &before); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(arg, "max=%d", &most); err != nil {
			return fmt.Errorf("what is %s?", arg)
		}
	}
	for _, r := range v.Revisions(before, most) {
		p.say("revision %d by %q for %q, %s", r.Number, r.Actor, r.Reason,
			moment(quota.Instant(r.Wall-wallBase), r.Wall))
		p.changes(r.Changes)
		if more := r.ChangeCount - len(r.Changes); more > 0 {
			p.say("  and %d more", more)
		}
	}
	return nil
}
