package handlers

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/wire"
)

// Explain decides a request without carrying it out, or shows how one was decided. A denial is an answer here.
func (s AllocationService) Explain(
	ctx context.Context, r *quoratev1.ExplainRequest,
) (*quoratev1.ExplainResponse, error) {
	answer := &quoratev1.ExplainResponse{}
	question := func(v ledger.Sandbox) error { return explainID(v, r, namespaceOf(ctx), answer) }
	if r.GetRequest() != nil {
		command := wire.ToAllocate(r.GetRequest(), namespaceOf(ctx))
		question = func(v ledger.Sandbox) error { return explainRequest(v, command, answer) }
	}
	options := toReadOptions(r.GetRead())
	options.WhatIf = r.GetCertainBy() && r.GetRequest() == nil // in a copy, if any request waits
	read, err := s.lendSandbox(ctx, options, question)
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// explainRequest ignores how long the request would be held, or wait: that does not matter to the decision now.
func explainRequest(v ledger.Sandbox, command quota.Allocate, answer *quoratev1.ExplainResponse) error {
	command.ReserveFor, command.WaitFor, command.Keep = 0, 0, 0
	if command.Mode != quota.Force {
		command.Mode = quota.Hold
	}
	o := v.Explain(command)
	if o.Refused != nil {
		return inRequest(o.Refused)
	}
	claims := o.Decision.Placements
	if o.Allocation != nil { // it was granted before
		info := o.Allocation.Info()
		claims, answer.Allocation = info.Claims, wire.FromAllocation(info)
	}
	answer.Decision = wire.FromDecision(*o.Decision, claims)
	answer.Levels, answer.LevelsCut = wire.FromLevels(o.Levels), o.LevelsCut
	return nil
}

// inRequest puts the field of a refusal below the field of the question.
func inRequest(e *quota.Error) *quota.Error {
	if e.Field == "" {
		return e
	}
	named := *e
	named.Field = "request." + e.Field
	return &named
}

func explainID(
	v ledger.Sandbox, r *quoratev1.ExplainRequest, own string, answer *quoratev1.ExplainResponse,
) error {
	decision, allocation, denied, unknown := v.ExplainID(wire.ToID(r, own))
	if unknown != nil {
		return unknown
	}
	if allocation != nil && r.GetCertainBy() {
		granted, refused := v.Forecast()
		if refused != nil {
			return refused
		}
		setCertainBy(allocation, granted)
	}
	claims := decision.Placements
	if allocation != nil {
		claims, answer.Allocation = allocation.Claims, wire.FromAllocation(*allocation)
	}
	if denied != nil {
		answer.DecidedAt = wire.FromWall(denied.Wall)
	}
	answer.Decision = wire.FromDecision(decision, claims)
	return nil
}

// eventCost is what an event costs beside a record, for readBySize: it has a request and a decision.
const eventCost = 20

// eventNamespace is that of the filter, or for a filter of an id that of the caller.
func eventNamespace(ctx context.Context, r *quoratev1.ListEventsRequest) string {
	if r.GetNamespace() == "" && r.GetId() != "" {
		return namespaceOf(ctx)
	}
	return r.GetNamespace()
}
