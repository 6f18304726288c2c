package plain

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/internal/manifest"
)

// stale reads need no leader.
func stale() *quoratev1.ReadOptions {
	return &quoratev1.ReadOptions{Consistency: quoratev1.Consistency_CONSISTENCY_STALE}
}

// read returns an error if there is no page at all. A part that could not be read is said on the page.
func read(ctx context.Context, api API) (page, error) {
	status, err := api.Cluster.GetStatus(ctx, &adminv1.GetStatusRequest{})
	if err != nil {
		return page{}, err
	}
	p := page{Title: "Quorate cluster " + status.GetClusterName(), Problem: status.GetProblem()}
	p.Sections = append(p.Sections, section{Title: "Cluster", Rows: clusterRows(status)})
	list, err := api.Cluster.ListMembers(ctx, &adminv1.ListMembersRequest{})
	if err == nil {
		p.Sections[0].Note = healthText(list)
	}
	if len(list.GetMembers()) > 0 {
		p.Sections = append(p.Sections, memberSection(status.GetCommitIndex(), list.GetMembers()))
	}
	p.addTrees(ctx, api)
	return p, nil
}

func (p *page) addTrees(ctx context.Context, api API) {
	trees, err := api.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: stale()})
	if err != nil {
		p.Sections = append(p.Sections, section{Title: "Trees", Note: "The trees cannot be read: " + err.Error()})
		return
	}
	p.Source = sourceText(trees.GetRead(), trees.GetRevision())
	p.Sections = append(p.Sections, treeSections(ctx, api, trees)...)
}

func sourceText(at *quoratev1.ReadInfo, revision uint64) string {
	text := fmt.Sprintf("From node %s, index %d, revision %d", at.GetServedBy(), at.GetIndex(), revision)
	if age := time.Duration(at.GetAgeMs()) * time.Millisecond; age >= 5*time.Second {
		return fmt.Sprintf("%s, %s old", text, age.Truncate(time.Second))
	}
	return text + ", up to date"
}

// clusterRows have only what the caller may see: the others are zero.
func clusterRows(s *adminv1.GetStatusResponse) [][]string {
	leader := s.GetLeaderId()
	if leader == "" {
		leader = "none"
	}
	rows := [][]string{{"answered by", s.GetServedBy()}, {"leader", leader}}
	if s.GetMember() == nil {
		return rows
	}
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	rows = append(rows,
		[]string{"term", number(s.GetTerm())},
		[]string{"committed index", number(s.GetCommitIndex())},
		[]string{"applied index", number(s.GetAppliedIndex())},
		[]string{"revision", number(s.GetRevision())},
		[]string{"allocations", strconv.FormatInt(s.GetHeldAllocations(), 10)},
		[]string{"ledger size", bytesText(s.GetLedgerBytes()) + " of " + bytesText(s.GetLedgerBytesLimit())})
	if at := s.GetCivilTimeMs(); at != 0 {
		rows = append(rows, []string{"civil time", time.UnixMilli(at).UTC().Format(time.RFC3339)})
	}
	return rows
}

func bytesText(n int64) string { return quantity.Round(n, quoratev1.Unit_UNIT_BYTES) }

func healthText(m *adminv1.ListMembersResponse) string {
	switch {
	case m.GetProblem() != "":
		return m.GetProblem() + "."
	case m.GetVoters() == 0:
		return ""
	}
	return fmt.Sprintf("%d of %d voters are healthy; the cluster survives the loss of %d more.",
		m.GetHealthyVoters(), m.GetVoters(), m.GetFailureTolerance())
}

func memberSection(committed uint64, members []*adminv1.Member) section {
	shown := section{
		Title: "Members",
		Head: []string{
			"Member", "Role", "Version", "Level", "Applied", "Behind", "Certificate ends", "Last backup", "Problem",
		},
	}
	for _, m := range members {
		role := strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))
		applied, behind, problem := strconv.FormatUint(m.GetAppliedIndex(), 10), "0", m.GetProblem()
		if committed > m.GetAppliedIndex() {
			behind = strconv.FormatUint(committed-m.GetAppliedIndex(), 10)
		}
		if !m.GetReachable() {
			role, applied, behind = "unknown", "-", "-"
			if problem == "" {
				problem = "does not answer"
			}
		}
		if m.GetSeat() != adminv1.Seat_SEAT_VOTER {
			role += ", no vote"
		}
		shown.Rows = append(shown.Rows, []string{
			m.GetId(), role, m.GetVersion(), strconv.FormatUint(uint64(m.GetFeatureLevel()), 10), applied, behind,
			timeText(m.GetCertificateEndsAt()), timeText(m.GetLastBackupAt()), problem,
		})
	}
	return shown
}

func timeText(at *timestamppb.Timestamp) string {
	if at == nil {
		return "-"
	}
	return at.AsTime().UTC().Format(time.RFC3339)
}

// treeSections are the first trees by name, each with its fullest nodes.
func treeSections(ctx context.Context, api API, list *quoratev1.ListTreesResponse) []section {
	var sections []section
	trees := list.GetTrees()
	for _, t := range trees[:min(len(trees), maxTrees)] {
		sections = append(sections, treeSection(ctx, api, t))
	}
	switch more := len(trees) - maxTrees; {
	case more > 0:
		sections = append(sections, section{
			Title: "More trees", Note: fmt.Sprintf("There are %d more trees. See quorate tree list.", more),
		})
	case len(trees) == 0 && list.GetFiltered():
		sections = append(sections, section{Title: "Trees", Note: "There is no tree that you may see."})
	case len(trees) == 0:
		sections = append(sections, section{Title: "Trees", Note: "There is no tree yet. Make one with quorate apply."})
	}
	return sections
}

func treeSection(ctx context.Context, api API, t *quoratev1.TreeSummary) section {
	shown := section{
		Title: "Tree " + t.GetName(),
		Note:  fmt.Sprintf("%d nodes, %d claims held. The fullest nodes:", t.GetNodeCount(), t.GetClaimCount()),
	}
	usage, err := api.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
		Tree: t.GetName(), Subtree: true, FullestFirst: true, PageSize: fullestNodes, Read: stale(),
	})
	if err != nil {
		shown.Note = "The usage cannot be read: " + err.Error()
		return shown
	}
	shown.Head = []string{"Node", "Resource", "Used", "Limit", "Headroom", "State"}
	for _, n := range usage.GetNodes() {
		shown.Rows = append(shown.Rows, nodeRows(t.GetName(), n)...)
	}
	return shown
}

// nodeRows are the resources of a node that are used or limited.
func nodeRows(tree string, n *quoratev1.NodeUsage) [][]string {
	name := tree
	if n.GetNode() != "" {
		name = tree + ":" + n.GetNode()
	}
	var rows [][]string
	for _, r := range n.GetResources() {
		if _, limited := amountOf(r.GetEffective()); r.GetSubtree() == 0 && !limited || len(rows) == maxResources {
			continue
		}
		headroom := "no limit"
		if r.Headroom != nil {
			headroom = quantity.Round(r.GetHeadroom(), r.GetUnit())
		}
		rows = append(rows, []string{
			name, r.GetResource(), quantity.Round(r.GetSubtree(), r.GetUnit()),
			manifest.FormatLimit(r.GetEffective(), r.GetUnit()), headroom, stateText(r),
		})
	}
	if rows == nil {
		return [][]string{{name, "-", "-", "-", "-", ""}}
	}
	return rows
}

// stateText is told in words, as in the dashboard.
func stateText(r *quoratev1.ResourceUsage) string {
	limit, limited := amountOf(r.GetEffective())
	switch {
	case r.GetOver() > 0:
		return "over by " + quantity.Round(r.GetOver(), r.GetUnit())
	case r.Headroom != nil && r.GetHeadroom() == 0 || limited && r.GetSubtree() >= limit:
		return "full"
	case limited && r.GetSubtree() >= limit-limit/10:
		return "nearly full"
	}
	return ""
}

func amountOf(limit *quoratev1.Limit) (int64, bool) {
	switch v := limit.GetValue().(type) {
	case *quoratev1.Limit_Amount:
		return v.Amount, true
	case *quoratev1.Limit_Advisory:
		return v.Advisory, true
	}
	return 0, false
}
