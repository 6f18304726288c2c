package guarded

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/chaos/check"
)

type auditChain struct {
	records []Record
	// gap says why the records are not complete; empty if they are.
	gap string
}

// joinRecords joins what was seen in the meantime with the records of all members. Violations are records that differ
// between two members, and those with another hash or number than their content and the record before demand.
func joinRecords(e *Evidence, v *check.Verdict) *auditChain {
	chain := &auditChain{gap: e.Missing}
	chain.addFrom("an earlier read", e.Seen, v)
	for _, m := range e.Members {
		v.Count("members", 1)
		chain.addFrom(m.Server, m.Records, v)
	}
	last := uint64(len(chain.records))
	for _, m := range e.Members {
		if n := len(m.Records); n == 0 || m.Records[n-1].Number < last {
			v.AddViolation("%s has no audit record %d, which another member had", m.Server, last)
		}
	}
	v.Count("records", len(chain.records))
	return chain
}

// addFrom reports only the first record of the source that is wrong.
func (c *auditChain) addFrom(source string, list []Record, v *check.Verdict) {
	for i, r := range list {
		switch {
		case r.Hash != r.Computed:
			v.AddViolation("%s: audit record %d has another hash than its content: %+v", source, r.Number, r)
			return
		case i > 0 && (r.Number != list[i-1].Number+1 || r.Previous != list[i-1].Hash):
			v.AddViolation("%s: audit record %d does not follow record %d", source, r.Number, list[i-1].Number)
			return
		}
		have := uint64(len(c.records))
		switch {
		case r.Number > have+1:
			c.gap = fmt.Sprintf("the records %d to %d were forgotten before they were read", have+1, r.Number-1)
			return
		case r.Number == have+1:
			c.records = append(c.records, r)
		case r.Number == 0 || r.Hash != c.records[r.Number-1].Hash:
			v.AddViolation("%s has another audit record %d than another member: %+v", source, r.Number, r)
			return
		}
	}
}

type moment struct{ index, time int64 }

func (m moment) indexAt() int64 { return m.index }
func (m moment) timeAt() int64  { return m.time }

type rightChange struct {
	moment

	may bool
}

// rightsHistory tells when an account could do something, in the order of the log.
type rightsHistory []rightChange

// allowedAt reports whether the account could do it at a point of the log. If it changed at that very point, both
// count: an entry has many commands.
func (h rightsHistory) allowedAt(indexOf func(moment) int64, at int64) bool {
	may := false
	for _, c := range h {
		switch key := indexOf(c.moment); {
		case key < at:
			may = c.may
		case key == at:
			may = may || c.may
		}
	}
	return may
}

// accessHistory is what the audit records tell of tokens and rights.
type accessHistory struct {
	// revoked has the tokens, bound and enabled have the accounts.
	revoked        map[string]moment
	bound, enabled map[string]rightsHistory
}

func historyOf(records []Record) *accessHistory {
	h := &accessHistory{
		revoked: map[string]moment{}, bound: map[string]rightsHistory{}, enabled: map[string]rightsHistory{},
	}
	for _, r := range records {
		at := moment{int64(r.Index), r.Time}
		for _, c := range r.Changes {
			h.addChange(at, r.Action, c)
		}
	}
	return h
}

// Fields of records that tell of access.
const (
	tokenField   = "access token "
	accountField = "access account "
	holderField  = "binding holder"
)

func (h *accessHistory) addChange(at moment, action string, c FieldChange) {
	if id, isToken := strings.CutPrefix(c.Field, tokenField); isToken && action == actionRevoke {
		h.revoked[id] = at
	}
	if name, isAccount := strings.CutPrefix(c.Field, accountField); isAccount {
		h.enabled[name] = append(h.enabled[name], rightChange{at, strings.HasPrefix(c.After, "enabled")})
	}
	if c.Tree == guardedTree && c.Field == holderField {
		h.bound[c.Node] = append(h.bound[c.Node], rightChange{at, c.After != ""})
	}
}
