package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

const (
	// mostTrees and nodesPerTree bound the nodes that are read, mostRows the rows of another pane.
	mostTrees    = 50
	nodesPerTree = 20
	mostRows     = 200
)

// snapshot is what the screen shows, as texts without characters that a terminal would interpret.
type snapshot struct {
	cluster string
	panes   [paneCount]pane
}

// The panes from top to bottom.
const (
	nodesPane = iota
	waitingPane
	leasesPane
	paneCount
)

type pane struct {
	rows    []row
	problem string
}

// row is one line of a pane. Only nodes have a tree, a share and its text.
type row struct {
	tree  string
	cells []string
	// percent is the share of the limit in use, -1 if there is no limit.
	percent int
}

type fetcher struct {
	client  *client.Client
	units   cli.Units
	now     *quoratev1.WatchChangesResponse
	timeout time.Duration
	// idText is the id of an allocation as commands take it.
	idText func(allocation *quoratev1.Allocation) string
}

func (f *fetcher) fetch(ctx context.Context) snapshot {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	s := snapshot{cluster: cli.Printable(f.clusterText(ctx))}
	for i, read := range []func(context.Context) ([]row, error){f.nodes, f.waiting, f.leases} {
		rows, err := read(ctx)
		if err != nil {
			s.panes[i].problem = cli.Printable(cli.ErrorText(err))
		}
		for _, r := range rows {
			for j := range r.cells {
				r.cells[j] = cli.Printable(r.cells[j])
			}
			s.panes[i].rows = append(s.panes[i].rows, r)
		}
	}
	return s
}

// read asks for a state at least as new as the message; it needs no leader.
func (f *fetcher) read() *quoratev1.ReadOptions {
	return &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE, MinIndex: f.now.GetIndex()}
}

func (f *fetcher) clusterText(ctx context.Context) string {
	text := fmt.Sprintf("%s answers  revision %d  index %d", f.now.GetServedBy(), f.now.GetRevision(), f.now.GetIndex())
	if !f.now.GetLeaderKnown() {
		return text + fmt.Sprintf("  NO LEADER for %s", cli.RoundSpan(f.now.GetAgeMs()))
	}
	status, err := f.client.Cluster.GetStatus(ctx, &adminv1.GetStatusRequest{})
	if err != nil {
		return text
	}
	text = fmt.Sprintf("%s  %s  leader %s", cmp.Or(status.GetClusterName(), "quorate"), text, status.GetLeaderId())
	if list, err := f.client.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{}); err == nil && list.GetVoters() > 0 {
		text += fmt.Sprintf("  %d of %d voters healthy", list.GetHealthyVoters(), list.GetVoters())
	}
	return text
}

func (f *fetcher) nodes(ctx context.Context) ([]row, error) {
	list, err := f.client.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: f.read()})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, tree := range list.GetTrees()[:min(len(list.GetTrees()), mostTrees)] {
		f.units.AddTree(tree.GetName(), tree.GetResources())
		usage, err := f.client.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
			Tree: tree.GetName(), Subtree: true, FullestFirst: true, PageSize: nodesPerTree, Read: f.read(),
		})
		if err != nil {
			return rows, err
		}
		for _, n := range usage.GetNodes() {
			rows = append(rows, nodeRow(tree.GetName(), n))
		}
	}
	return rows, nil
}

// nodeRow shows the resource of a node that uses most of its limit.
func nodeRow(tree string, n *quoratev1.NodeUsage) row {
	place := cli.PlaceOf(tree, n.GetNode()).String()
	full := row{tree: tree, percent: -1, cells: []string{place, "", ""}}
	for _, r := range n.GetResources() {
		percent := percentOf(r)
		if full.cells[1] != "" && percent <= full.percent {
			continue
		}
		full.percent = percent
		full.cells = []string{place, r.GetResource(), quantity.Round(r.GetSubtree(), r.GetUnit()) + " of " +
			manifest.FormatLimit(cmp.Or(r.GetEffective(), r.GetLimit()), r.GetUnit())}
	}
	return full
}

// percentOf is the share of the limit in use, rounded down, at most 999; -1 if there is no limit.
func percentOf(r *quoratev1.ResourceUsage) int {
	limit, limited := cmp.Or(r.GetEffective(), r.GetLimit()).GetValue().(*quoratev1.Limit_Amount)
	switch {
	case !limited:
		return -1
	case limit.Amount == 0:
		return int(min(r.GetSubtree(), 1)) * 100
	}
	return int(min(999, float64(r.GetSubtree())/float64(limit.Amount)*100))
}

func (f *fetcher) waiting(ctx context.Context) ([]row, error) {
	answer, err := f.client.Allocations.ListWaiting(ctx,
		&quoratev1.ListWaitingRequest{PageSize: mostRows, Read: f.read()})
	if err != nil {
		return nil, err
	}
	list := answer.GetRequests()
	slices.SortStableFunc(list, func(a, b *quoratev1.WaitingRequest) int {
		return waitingOf(a).GetArrivedAt().AsTime().Compare(waitingOf(b).GetArrivedAt().AsTime())
	})
	var rows []row
	for _, r := range list {
		a, blocker := r.GetAllocation(), ""
		if v := r.GetDecision().GetViolations(); len(v) > 0 {
			blocker = f.units.ViolationText(v[0])
		}
		asks := f.units.ClaimsText(a)
		if resize := a.GetResize(); resize != nil {
			asks = f.units.ResizeClaims(resize)
		}
		rows = append(rows, row{cells: []string{f.idText(a), cli.FormatTime(waitingOf(r).GetArrivedAt()), asks, blocker}})
	}
	return rows, nil
}

func waitingOf(r *quoratev1.WaitingRequest) *quoratev1.Waiting {
	if resize := r.GetAllocation().GetResize(); resize != nil {
		return resize.GetWaiting()
	}
	return r.GetAllocation().GetWaiting()
}

// leases are those that end first, of the 1,000 oldest.
func (f *fetcher) leases(ctx context.Context) ([]row, error) {
	answer, err := f.client.Allocations.ListAllocations(ctx,
		&quoratev1.ListAllocationsRequest{Leases: true, PageSize: 1000, Read: f.read()})
	if err != nil {
		return nil, err
	}
	list := answer.GetAllocations()
	slices.SortStableFunc(list, func(a, b *quoratev1.Allocation) int {
		return cmp.Compare(a.GetExpiresLedgerMs(), b.GetExpiresLedgerMs())
	})
	var rows []row
	for _, a := range list[:min(len(list), mostRows)] {
		left := cli.RoundSpan(a.GetExpiresLedgerMs() - answer.GetRead().GetLedgerTimeMs())
		owner := cmp.Or(a.GetPrincipal().GetUser(), a.GetOwner())
		rows = append(rows, row{cells: []string{f.idText(a), "ends in " + left, owner, f.units.ClaimsText(a)}})
	}
	return rows, nil
}
