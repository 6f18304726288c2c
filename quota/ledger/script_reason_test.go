package ledger_test

import (
	"fmt"

	"github.com/quorate/quorate/quota/ledger"
)

func (p *player) why(v ledger.Sandbox, id string) {
	a, refused := v.Allocation(id)
	if refused != nil {
		p.say("refused %s: %s", refused.Kind, refused.Error())
		return
	}
	if a.Reason != nil {
		p.say("%s: %s", id, a.Reason)
	}
	if m := a.MadeRoom; m != nil {
		text := fmt.Sprintf("%s: %d made room", id, m.Count)
		for _, t := range m.Totals {
			text += fmt.Sprintf(" %s=%d of %s", t.Resource, t.Amount, t.Tree)
		}
		p.say("%s", text)
	}
	for _, other := range a.Preempted {
		p.say("  %s: %s", other.ID, other.Reason)
	}
	if a.Reason == nil && a.MadeRoom == nil {
		p.say("%s has no reason", id)
	}
}
