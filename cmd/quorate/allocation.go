package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newAllocationCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "allocation ID",
		Short: "Show one allocation, held or ended not long ago",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.allocation(cmd.Context(), args[0]) },
	}
}

func (c *cli) allocation(ctx context.Context, id string) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: id, Read: c.read()})
	if err != nil {
		return err
	}
	c.sayAge(answer.GetRead())
	c.learnForTable(ctx, quorate)
	return c.print(answer, func(p *page) error {
		return c.units.drawAllocation(p, answer.GetAllocation(), answer.GetRead().GetLedgerTimeMs())
	})
}

// drawAllocation writes one allocation with all that is known of it at a moment of ledger time.
func (u units) drawAllocation(p *page, a *quoratev1.Allocation, nowMs int64) error {
	if err := p.table(u.allocationRows(a)); err != nil {
		return err
	}
	if who := a.GetPrincipal(); who != nil {
		p.line("held by %s", principal(who))
	}
	if until := a.GetReservedUntilLedgerMs(); until > 0 && a.GetState() == quoratev1.AllocationState_ALLOCATION_STATE_RESERVED {
		p.line("reserved for %v from its grant on", time.Duration(until-a.GetGrantedLedgerMs())*time.Millisecond)
	}
	for _, text := range []string{leaseText(a, nowMs), waitingText(a)} {
		if text != "" {
			p.line("%s", text)
		}
	}
	for _, victim := range a.GetPreempted() {
		p.line("preempted %s at %s", victim.GetId(), place{victim.GetTree(), victim.GetNode()})
	}
	if a.GetPreemptedBy() != "" {
		p.line("preempted by %s", a.GetPreemptedBy())
	}
	return nil
}

// principal says who holds.
func principal(who *quoratev1.Principal) string {
	text := "user " + who.GetUser()
	if len(who.GetGroups()) > 0 {
		text += " of " + strings.Join(who.GetGroups(), ", ")
	}
	if who.GetApplication() != "" {
		text += ", application " + who.GetApplication()
	}
	return text
}
