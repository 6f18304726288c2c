package handlers

import (
	"context"
	"slices"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/identify"
	"github.com/quorate/quorate/rpc/wire"
)

type refusals struct {
	// outcomes has one for each command, or is nil if none is refused. That of a command that may be given has no Refused.
	outcomes []ledger.Outcome
	// index is the log index of the state that they were refused by.
	index uint64
}

func (r *refusals) permitted(commands []quota.Command) []quota.Command {
	var list []quota.Command
	for i, command := range commands {
		if r.outcomes[i].Refused == nil {
			list = append(list, command)
		}
	}
	return list
}

// merge puts the outcomes of the permitted commands, in their order, between the refused ones.
func (r *refusals) merge(permitted []ledger.Outcome) []ledger.Outcome {
	for i := range r.outcomes {
		if r.outcomes[i].Refused == nil && len(permitted) > 0 {
			r.outcomes[i], permitted = permitted[0], permitted[1:]
		}
	}
	return r.outcomes
}

// refuseEarly decides which commands the caller may not give; nil for none. They are not written to the log, which any
// caller could fill otherwise. What passes can still be refused when it is carried out.
func (c Service) refuseEarly(ctx context.Context, commands []quota.Command) (*refusals, error) {
	if c.Node.Book().Mode() != access.Guarded {
		return nil, nil
	}
	caller, refused := identify.CallerOf(ctx), refusals{}
	_, err := c.Node.Read(ctx, cluster.ReadOptions{Stale: true},
		func(v ledger.Reader) { refused.ask(v, caller, namespaceOf(ctx), commands) })
	if err != nil {
		return nil, wire.ToError(err)
	}
	if refused.outcomes != nil {
		// The node may have been deposed, or not have applied yet what gave the right. That must not refuse the caller.
		return c.refuseSurely(ctx, commands)
	}
	return c.askPlans(ctx, commands)
}

// refuseSurely asks in a linearizable read.
func (c Service) refuseSurely(ctx context.Context, commands []quota.Command) (*refusals, error) {
	caller, refused := identify.CallerOf(ctx), refusals{}
	info, err := lendState(ctx, c, cluster.ReadOptions{}, c.Node.Read, func(v ledger.Reader) error {
		refused.ask(v, caller, namespaceOf(ctx), commands)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if refused.outcomes == nil {
		return c.askPlans(ctx, commands)
	}
	refused.index = info.GetIndex()
	return &refused, nil
}

// ask covers what is known without a plan.
func (r *refusals) ask(v ledger.Reader, caller *access.Caller, own string, commands []quota.Command) {
	for i, command := range commands {
		out, isRefused := v.RefusalOf(caller, command)
		if !isRefused {
			continue
		}
		if r.outcomes == nil {
			r.outcomes = make([]ledger.Outcome, len(commands))
		}
		out.Refused = wire.ToReader(out.Refused, own)
		r.outcomes[i] = out
	}
}

func (c Service) askPlans(ctx context.Context, commands []quota.Command) (*refusals, error) {
	if !slices.ContainsFunc(commands, needsPlan) {
		return nil, nil
	}
	outcomes, index, err := c.planChanges(ctx, commands...)
	if err != nil {
		return nil, err
	}
	caller := identify.CallerOf(ctx)
	isStranger := caller != nil && caller.Kind == access.Anonymous
	refused := &refusals{outcomes: make([]ledger.Outcome, len(commands)), index: index}
	for i := range outcomes {
		if lacksRight(outcomes[i].Refused) || isStranger && outcomes[i].Refused != nil {
			refused.outcomes[i] = outcomes[i]
		}
	}
	if len(refused.permitted(commands)) == len(commands) {
		return nil, nil
	}
	return refused, nil
}

func needsPlan(c quota.Command) bool { return quota.FactsOf(c).NeedsPlan }

func lacksRight(refused *quota.Error) bool {
	return refused != nil &&
		(refused.Verb != 0 || refused.Kind == quota.Forbidden || refused.Kind == quota.Unauthenticated)
}
