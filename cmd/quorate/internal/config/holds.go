package config

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// drainTimeout is how long drain waits after the grace of the leases, unless --timeout says it.
	drainTimeout = 2 * time.Minute
	// drainPoll is the time between two looks at what is left.
	drainPoll = 500 * time.Millisecond
)

// ListCordoned prints the cordoned nodes: all, or those at a node and below it.
func ListCordoned(ctx context.Context, c *cli.Env, at string) error {
	request := &adminv1.ListCordonsRequest{Read: c.ReadOptions()}
	if at != "" {
		place, err := cli.ParsePlace(at)
		if err != nil {
			return err
		}
		request.Tree, request.Node = place.Tree, place.Node
	}
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Cordons.ListCordons(ctx, request)
	if err != nil {
		return err
	}
	c.ReportAge(answer.GetRead())
	c.ReportFiltered(answer)
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error { return p.Table(holdRows(c.Units, answer)) })
}

func holdRows(u cli.Units, answer *adminv1.ListCordonsResponse) [][]string {
	rows := [][]string{{"NODE", "REQUESTS", "DRAIN", "SINCE", "ENDS", "USED", "ACTOR", "REASON"}}
	for _, h := range answer.GetCordons() {
		requests, ends := "wait", "with uncordon"
		if h.GetDeny() {
			requests = "denied"
		}
		if h.GetEndsLedgerMs() != 0 {
			ends = "in " + cli.RoundSpan(h.GetEndsLedgerMs()-answer.GetRead().GetLedgerTimeMs())
		}
		rows = append(rows, []string{
			cli.PlaceOf(h.GetTree(), h.GetNode()).String(), requests, drainText(h), cli.FormatTime(h.GetBeganAt()), ends,
			u.FormatAmounts(h.GetTree(), h.GetUsed()), h.GetActor(), h.GetReason(),
		})
	}
	return rows
}

func drainText(h *quoratev1.NodeCordon) string {
	switch {
	case h.GetDrained():
		return "drained"
	case h.GetRevoking():
		return "revoking"
	case h.GetDrain():
		return "draining"
	}
	return ""
}

func (o *holdOptions) waitDrained(ctx context.Context) error {
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	for {
		left, err := o.leftAt(ctx, quorate, at)
		switch {
		case err != nil:
			return err
		case left == "":
			o.Messagef("nothing is held at %s", at)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not drained yet: %s; list it with quorate allocation list --at %s: %w", at, left, at,
				ctx.Err())
		case <-time.After(drainPoll):
		}
	}
}

// leftAt returns an empty text if nothing is left at a cordoned node.
func (o *holdOptions) leftAt(ctx context.Context, quorate *client.Client, at cli.Place) (string, error) {
	answer, err := quorate.Cordons.ListCordons(ctx, &adminv1.ListCordonsRequest{Tree: at.Tree, Node: at.Node})
	if err != nil {
		return "", err
	}
	for _, h := range answer.GetCordons() {
		if h.GetNode() != at.Node {
			continue
		}
		if !h.GetIsUsed() {
			return "", nil
		}
		if len(h.GetUsed()) == 0 {
			return "claims without amounts, or that are counted further up", nil
		}
		return "it holds " + o.Units.FormatAmounts(at.Tree, h.GetUsed()), nil
	}
	return "", cli.Usagef("%s is not cordoned any more: it was uncordoned meanwhile", at)
}
