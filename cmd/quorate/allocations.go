package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type allocationsOptions struct {
	*cli
	tree, node string
	labels     []string
	limit      int
	leases     bool
}

func newAllocationsCmd(c *cli) *cobra.Command {
	o := &allocationsOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "allocations",
		Short: "List what is held, oldest first",
		Example: `  quorate allocations --tree cern --node atlas/physics
  quorate allocations --label job=nightly -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *allocationsOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.tree, "tree", "", "only allocations with a claim in this tree")
	flags.StringVar(&o.node, "node", "", "only those counted at this node of the tree or below it")
	flags.StringArrayVar(&o.labels, "label", nil, "only those that carry this `name=value`; several must all hold")
	flags.IntVar(&o.limit, "limit", 0, "show at most this many (default: all)")
}

func (o *allocationsOptions) run(ctx context.Context) error {
	if o.node != "" && o.tree == "" {
		return usagef("--node needs --tree: a node is a place in a tree")
	}
	if o.limit < 0 {
		return usagef("--limit must not be negative")
	}
	labels, err := labelPairs(o.labels)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetch(ctx, quorate, labels)
	if err != nil {
		return err
	}
	o.sayAge(all.GetRead())
	o.learnForTable(ctx, quorate)
	return o.print(all, func(p *page) error {
		if o.leases {
			return p.table(o.units.leaseRows(all.GetAllocations(), all.GetRead().GetLedgerTimeMs()))
		}
		return p.table(o.units.allocationRows(all.GetAllocations()...))
	})
}

// fetch joins pages into one answer until it has as many as were asked for.
func (o *allocationsOptions) fetch(
	ctx context.Context, quorate *client.Client, labels map[string]string,
) (*quoratev1.ListAllocationsResponse, error) {
	const pageSize = 1000
	all := &quoratev1.ListAllocationsResponse{}
	request := &quoratev1.ListAllocationsRequest{
		Tree: o.tree, Node: o.node, Labels: labels, PageSize: pageSize, Read: o.read(), Leases: o.leases,
	}
	for {
		if o.limit > 0 {
			request.PageSize = int32(min(o.limit-len(all.GetAllocations()), pageSize))
		}
		page, err := quorate.Allocations.ListAllocations(ctx, request)
		if err != nil {
			return nil, err
		}
		all.Allocations = append(all.Allocations, page.GetAllocations()...)
		all.Read = page.GetRead()
		all.NextPageToken = page.GetNextPageToken()
		request.PageToken = page.GetNextPageToken()
		if request.GetPageToken() == "" || len(all.GetAllocations()) == o.limit {
			return all, nil
		}
	}
}

// allocationRows is the table of allocations, one a row.
func (u units) allocationRows(allocations ...*quoratev1.Allocation) [][]string {
	rows := [][]string{{"ID", "STATE", "FENCE", "GRANTED", "HOLDS", "LABELS"}}
	for _, a := range allocations {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(a.GetLabels())) {
			labels = append(labels, name+"="+a.GetLabels()[name])
		}
		state := stateText(a)
		if a.GetForced() {
			state += " by force"
		}
		rows = append(rows, []string{
			a.GetId(), state, strconv.FormatUint(a.GetFence(), 10), date(a.GetGrantedAt()),
			u.claims(a), strings.Join(labels, " "),
		})
	}
	return rows
}

// claims writes all that an allocation holds, or asks for while it waits.
func (u units) claims(a *quoratev1.Allocation) string {
	var claims []string
	for _, claim := range a.GetClaims() {
		claims = append(claims, u.claim(claim))
	}
	return strings.Join(claims, "; ")
}

// stateText is the word for where an allocation is in its life.
func stateText(a *quoratev1.Allocation) string {
	word := strings.ToLower(strings.TrimPrefix(a.GetState().String(), "ALLOCATION_STATE_"))
	return strings.ReplaceAll(word, "_", " ")
}

// claim writes what is held where, and in brackets what is out of the ordinary.
func (u units) claim(c *quoratev1.HeldClaim) string {
	held := []string{place{c.GetTree(), c.GetNode()}.String()}
	if len(c.GetAmounts()) > 0 {
		held = append(held, u.amounts(c.GetTree(), c.GetAmounts()))
	}
	text := strings.Join(append(held, itemsText(c)...), " ")
	var notes []string
	if c.GetPlaced() != c.GetNode() {
		notes = append(notes, "counted at "+place{c.GetTree(), c.GetPlaced()}.String())
	}
	if c.GetPriority() != 0 {
		notes = append(notes, "priority "+strconv.FormatInt(c.GetPriority(), 10))
	}
	if c.GetType() != 0 {
		notes = append(notes, "type "+strconv.FormatInt(c.GetType(), 10))
	}
	if c.GetUnpreemptable() {
		notes = append(notes, "unpreemptable")
	}
	if c.GetGroup() != "" {
		notes = append(notes, "counted for group "+c.GetGroup())
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}
