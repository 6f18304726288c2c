package authorize

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// Labels of what would be refused for want of something else than one verb.
const (
	// noVerb is for calls that need an identity and no verb.
	noVerb = "none"
	// otherVerb is for commands that need more than one right, such as to be the owner.
	otherVerb = "other"
)

// wouldRefuse counts by verb; its keys never change.
type wouldRefuse map[string]*atomic.Int64

func newWouldRefuse() wouldRefuse {
	counts := wouldRefuse{}
	for _, verb := range wouldRefuseLabels() {
		counts[verb] = new(atomic.Int64)
	}
	return counts
}

func wouldRefuseLabels() []string { return append(access.AllVerbs.Names(), noVerb, otherVerb) }

// register shows counts of zero too.
func (w wouldRefuse) register(to prometheus.Registerer) error {
	for _, verb := range wouldRefuseLabels() {
		if err := to.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_access_would_refuse_total",
			Help: "What a guarded cluster would have refused, by the verb that the caller lacks: calls before they begin, " +
				"and commands while the leader carries them out; counted in the mode watching.",
			ConstLabels: prometheus.Labels{"verb": verb},
		}, func() float64 { return float64(w[verb].Load()) })); err != nil {
			return err
		}
	}
	return nil
}

// NoteWouldRefuse counts and logs a command that a guarded ledger would have refused; nil is none.
func (a *Authorizer) NoteWouldRefuse(ctx context.Context, refusal *quota.Error) {
	if refusal == nil {
		return
	}
	label := refusal.Verb.String()
	switch {
	case refusal.Kind == quota.Unauthenticated:
		label = noVerb
	case refusal.Verb == 0:
		label = otherVerb
	}
	a.wouldRefuse.count(label)
	a.logWouldRefuse(ctx, label, refusal.Place)
}

func (a *Authorizer) logWouldRefuse(ctx context.Context, label, place string) {
	if a.config.LogWouldRefuse != nil {
		a.config.LogWouldRefuse(ctx, a.Caller(ctx).User, label, place)
	}
}

func (w wouldRefuse) count(label string) {
	if counter, known := w[label]; known {
		counter.Add(1)
	}
}

// WouldRefuseCount is how much would have been refused for want of a verb.
type WouldRefuseCount struct {
	Verb  string
	Calls int64
}

// WouldRefuse returns what was counted since the start of the server, without zeros.
func (a *Authorizer) WouldRefuse() []WouldRefuseCount {
	var list []WouldRefuseCount
	for _, verb := range wouldRefuseLabels() {
		if calls := a.wouldRefuse[verb].Load(); calls > 0 {
			list = append(list, WouldRefuseCount{verb, calls})
		}
	}
	return list
}
