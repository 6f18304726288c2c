package config

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

func newLimitShowCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "show TREE[:node/path]",
		Short: "Show the limits of one node, of its users, groups and applications, and the use of each",
		Long: `Show the limits that are configured at one node, and what is used of each:

  OF     the node itself, a user or a group in its subtree, or below: what an unset limit of the nodes below is
  LIMIT  what is set, or for an unset limit what stands for it: "0 by policy", "20 by default of NODE"; (*) is the limit
         of the user *, which applies to every user that the node does not name
  USED   held in the subtree of the node
  OVER   how far that is above the limit, after the limit was lowered

Where scheduled limits replace a configured one now, IN FORCE is the limit that applies, and UNTIL when that changes
again: one of them ends, or another begins. Below the table are the scheduled limits of the node, with
when they begin and end ("quorate schedule list").

Groups are listed in the order in which they are looked up. Limits of the nodes above apply too; "quorate usage" shows
how much is left, and "quorate principal list" what users and groups hold everywhere in a tree.

The right config.read is needed at the node, and for the use of users and groups holders.read at the tree.`,
		Example: `  quorate limit show cern:atlas/physics
  quorate limit show queues:ci/build -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := &limitsGetOptions{Env: c}
			return o.run(cmd.Context(), args[0])
		},
	}
}

type limitsGetOptions struct {
	*cli.Env
	at cli.Place
	// usersUsed and groupsUsed are by name what users and groups hold at the node; nil if that may not be read.
	usersUsed, groupsUsed map[string]*quoratev1.PrincipalNode
	// replaced has the resources whose configured limit at the node is replaced by scheduled limits now.
	replaced map[string]bool
}

// shownLimits is the JSON and YAML of "limit show". Amounts are in base units.
type shownLimits struct {
	Tree     string       `json:"tree"`
	Node     string       `json:"node"`
	Policy   string       `json:"policy"`
	Revision uint64       `json:"revision,string"`
	Limits   []shownLimit `json:"limits"`
	// Scheduled are the scheduled limits of the node.
	Scheduled []shownSchedule `json:"scheduled,omitempty"`
}

type shownSchedule struct {
	ID      string `json:"id"`
	Limits  string `json:"limits"`
	From    string `json:"from,omitempty"`
	Until   string `json:"until,omitempty"`
	Every   string `json:"every,omitempty"`
	InForce bool   `json:"inForce"`
	Actor   string `json:"actor,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

type shownLimit struct {
	// Of is node, user, group or below.
	Of   string `json:"of"`
	Name string `json:"name,omitempty"`
	// Resource is empty for a number of applications.
	Resource     string `json:"resource,omitempty"`
	Applications bool   `json:"applications,omitempty"`
	// Limit is an amount, advisory: and an amount, unlimited or unset; Effective is what applies instead of unset,
	// and EffectiveBy what it comes from.
	Limit       string `json:"limit"`
	Effective   string `json:"effective,omitempty"`
	EffectiveBy string `json:"effectiveBy,omitempty"`
	// Used is nil if it may not be read, or if nothing is counted.
	Used *int64 `json:"used,string,omitempty"`
	Over int64  `json:"over,string,omitempty"`
	// InForce is what applies now instead of Limit because of scheduled limits, and InForceUntil when that changes again;
	// both are empty if none is in force.
	InForce      string `json:"inForce,omitempty"`
	InForceUntil string `json:"inForceUntil,omitempty"`
	// Wildcard is true if the limit is that of the wildcard.
	Wildcard bool `json:"wildcard,omitempty"`
}

func (o *limitsGetOptions) run(ctx context.Context, place string) error {
	var err error
	if o.at, err = cli.ParsePlace(place); err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	response, err := quorate.Configuration.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{
		Read: o.ReadOptions(), Tree: o.at.Tree, Node: o.at.Node,
	})
	if err != nil {
		return err
	}
	usage, err := quorate.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
		Tree: o.at.Tree, Node: o.at.Node, Read: o.ReadOptions(),
	})
	if err != nil {
		return err
	}
	o.ReportAge(response.GetRead())
	scheduled, err := scheduledAt(ctx, quorate, o.at, o.ReadOptions())
	if err != nil {
		return err
	}
	o.replaced = replacedLimits(scheduled)
	shown, err := o.collect(ctx, quorate, response, usage)
	if err != nil {
		return err
	}
	for _, s := range scheduled {
		shown.Scheduled = append(shown.Scheduled, shownSchedule{
			ID: s.GetId(), Limits: cli.Units{}.AdjustmentsText(s), From: cli.FormatTime(s.GetBeginsAt()),
			Until: cli.FormatTime(s.GetEndsAt()), Every: s.GetEvery(), InForce: s.GetInForce(), Actor: s.GetActor(),
			Reason: s.GetReason(),
		})
	}
	return o.PrintValue(shown, func(p *cli.Page) error {
		p.Linef("%s, policy %s, revision %d", o.at, shown.Policy, shown.Revision)
		if err := p.Table(o.rows(shown.Limits)); err != nil {
			return err
		}
		for _, s := range scheduled {
			p.Linef("scheduled: %s", scheduledText(o.Units, s))
		}
		return nil
	})
}

func (o *limitsGetOptions) collect(
	ctx context.Context, quorate *client.Client, response *adminv1.GetConfigurationResponse,
	usage *quoratev1.GetUsageResponse,
) (*shownLimits, error) {
	shown := &shownLimits{Tree: o.at.Tree, Node: o.at.Node, Revision: response.GetRevision(), Limits: []shownLimit{}}
	o.Units = cli.Units{}
	for _, n := range usage.GetNodes() {
		shown.Policy = n.GetPolicy()
		for _, r := range n.GetResources() {
			o.Units.AddTree(o.at.Tree, []*quoratev1.Resource{{Name: r.GetResource(), Unit: r.GetUnit()}})
		}
		shown.Limits = append(shown.Limits, o.nodeLimitsOf(n)...)
	}
	for _, text := range response.GetTrees() {
		if err := o.addConfigured(ctx, quorate, text, shown); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

func (o *limitsGetOptions) addConfigured(
	ctx context.Context, quorate *client.Client, text *quoratev1.Tree, shown *shownLimits,
) error {
	n, err := limitsAt(text, o.at)
	if err != nil {
		return err
	}
	if len(*n.principals) > 0 {
		if err := o.readHolders(ctx, quorate); err != nil {
			return err
		}
	}
	shown.Limits = append(shown.Limits, o.holderLimits(userHolder, *n.principals, o.usersUsed)...)
	shown.Limits = append(shown.Limits, o.othersLimits()...)
	shown.Limits = append(shown.Limits, o.holderLimits(groupHolder, *n.principals, o.groupsUsed)...)
	for _, resource := range slices.Sorted(maps.Keys(*n.defaults)) {
		shown.Limits = append(shown.Limits, shownLimit{
			Of: "below", Resource: resource, Limit: limitNumber((*n.defaults)[resource]),
		})
	}
	return nil
}

// readHolders reads what users and groups hold at the node. Without the right to read it, only limits are shown.
func (o *limitsGetOptions) readHolders(ctx context.Context, quorate *client.Client) error {
	var err error
	if o.usersUsed, err = o.readKind(ctx, quorate, quoratev1.HolderKind_HOLDER_KIND_USER); err == nil {
		o.groupsUsed, err = o.readKind(ctx, quorate, quoratev1.HolderKind_HOLDER_KIND_GROUP)
	}
	code := connect.CodeOf(err)
	if code == connect.CodePermissionDenied || code == connect.CodeNotFound { // what may not be read does not exist
		o.usersUsed, o.groupsUsed = nil, nil
		o.Messagef("without the use of users and groups: the right holders.read is needed at tree %s", o.at.Tree)
		return nil
	}
	return err
}

func (o *limitsGetOptions) readKind(
	ctx context.Context, quorate *client.Client, kind quoratev1.HolderKind,
) (map[string]*quoratev1.PrincipalNode, error) {
	used := map[string]*quoratev1.PrincipalNode{}
	request := &quoratev1.ListPrincipalsRequest{
		Tree: o.at.Tree, Kind: kind, PageSize: 1000, Read: o.ReadOptions(),
	}
	for page, err := range client.Pages(ctx, quorate.Trees.ListPrincipals, request) {
		if err != nil {
			return nil, err
		}
		for _, principal := range page.GetPrincipals() {
			for _, n := range principal.GetNodes() {
				if n.GetNode() == o.at.Node {
					used[principal.GetName()] = n
				}
			}
		}
	}
	return used, nil
}

// replacedLimits are the resources that scheduled limits in force are about.
func replacedLimits(scheduled []*quoratev1.ScheduledLimit) map[string]bool {
	replaced := map[string]bool{}
	for _, s := range scheduled {
		if !s.GetInForce() {
			continue
		}
		for resource := range s.GetAdjustments() {
			replaced[resource] = true
		}
	}
	return replaced
}

func (o *limitsGetOptions) nodeLimitsOf(n *quoratev1.NodeUsage) []shownLimit {
	var list []shownLimit
	for _, r := range n.GetResources() {
		limit := shownLimit{
			Of: "node", Resource: r.GetResource(), Limit: limitNumber(r.GetLimit()), Used: new(r.GetSubtree()),
			Over: r.GetOver(),
		}
		if r.GetLimit() == nil {
			limit.Effective, limit.EffectiveBy = limitNumber(r.GetEffective()), cli.GiverOf(r)
		}
		if o.replaced[r.GetResource()] {
			limit.InForce, limit.InForceUntil = limitNumber(r.GetEffective()), cli.FormatTime(r.GetLimitChangesAt())
		}
		list = append(list, limit)
	}
	most, isLimited := manifest.Bound(n.GetMaxApplications())
	running := n.GetRunningApplications()
	switch {
	case isLimited:
		list = append(list, shownLimit{
			Of: "node", Applications: true, Limit: strconv.FormatInt(most, 10), Used: &running, Over: overOf(most, running),
		})
	case running > 0:
		list = append(list, shownLimit{Of: "node", Applications: true, Limit: unlimitedText, Used: &running})
	}
	return list
}

// holderLimits keeps the order of the configuration.
func (o *limitsGetOptions) holderLimits(
	kind holderKind, entries []*quoratev1.PrincipalLimit, used map[string]*quoratev1.PrincipalNode,
) []shownLimit {
	var list []shownLimit
	for _, entry := range entries {
		for _, name := range (holderName{kind: kind}).names(entry) {
			counts := used != nil && (kind == groupHolder || name != quota.Wildcard) // the user * is each user separately
			node := &quoratev1.PrincipalNode{
				Limits: entry.GetLimits(), MaxApplications: entry.GetApplications(), Used: used[name].GetUsed(),
				Applications: used[name].GetApplications(),
			}
			list = append(list, limitsOf(string(kind), name, node, counts)...)
		}
	}
	return list
}

// othersLimits are the limits of users to whom the wildcard applies, as far as they hold anything.
func (o *limitsGetOptions) othersLimits() []shownLimit {
	var list []shownLimit
	for _, name := range slices.Sorted(maps.Keys(o.usersUsed)) {
		if n := o.usersUsed[name]; n.GetWildcard() {
			list = append(list, limitsOf(string(userHolder), name, n, true)...)
		}
	}
	return list
}

func limitsOf(kind, name string, n *quoratev1.PrincipalNode, counts bool) []shownLimit {
	var list []shownLimit
	add := func(limit shownLimit, most, used int64) {
		limit.Of, limit.Name, limit.Wildcard = kind, name, n.GetWildcard()
		if limit.Limit = strconv.FormatInt(most, 10); counts {
			limit.Used, limit.Over = &used, overOf(most, used)
		}
		list = append(list, limit)
	}
	limits := manifest.Bounds(n.GetLimits())
	for _, resource := range slices.Sorted(maps.Keys(limits)) {
		add(shownLimit{Resource: resource}, limits[resource], n.GetUsed()[resource])
	}
	if most, isLimited := manifest.Bound(n.GetMaxApplications()); isLimited {
		add(shownLimit{Applications: true}, most, int64(len(n.GetApplications())))
	}
	return list
}

func overOf(most, used int64) int64 { return max(0, used-most) }

func (o *limitsGetOptions) rows(limits []shownLimit) [][]string {
	rows := [][]string{{"OF", "RESOURCE", "LIMIT", "USED", "OVER"}}
	if len(o.replaced) > 0 {
		rows[0] = append(rows[0], "IN FORCE", "UNTIL")
	}
	before := ""
	for _, l := range limits {
		holder := l.Of
		if l.Name != "" {
			holder += " " + l.Name
		}
		row := []string{holder, cmp.Or(l.Resource, "applications"), o.limitText(l), "", ""}
		if l.Used != nil {
			row[3] = o.number(l, *l.Used)
		}
		if l.Over > 0 {
			row[4] = o.number(l, l.Over) + " over"
		}
		if holder == before {
			row[0] = ""
		}
		before = holder
		if len(o.replaced) > 0 {
			row = append(row, o.numberText(l, l.InForce), l.InForceUntil)
		}
		rows = append(rows, row)
	}
	return rows
}

func (o *limitsGetOptions) limitText(l shownLimit) string {
	text := o.numberText(l, l.Limit)
	if l.Effective != "" {
		text = o.numberText(l, l.Effective) + " by " + l.EffectiveBy
		if l.InForce != "" { // a schedule replaces it now
			text = "unset (" + o.numberText(l, l.Effective) + ")"
		}
	}
	if l.Wildcard {
		text += " (*)"
	}
	return text
}

func (o *limitsGetOptions) numberText(l shownLimit, text string) string {
	if word, n, hasAmount := cutAmount(text); hasAmount {
		return word + o.number(l, n)
	}
	return text
}

// cutAmount divides the text of a limit into the word of advisory limits, which may be empty, and an amount in base
// units.
func cutAmount(text string) (word string, amount int64, hasAmount bool) {
	number, isAdvisory := strings.CutPrefix(text, quota.AdvisoryWord)
	if isAdvisory {
		word = quota.AdvisoryWord
	}
	amount, err := strconv.ParseInt(number, 10, 64)
	return word, amount, err == nil
}

func (o *limitsGetOptions) number(l shownLimit, n int64) string {
	if l.Applications {
		return strconv.FormatInt(n, 10)
	}
	return quantity.Round(n, o.Units[o.at.Tree][l.Resource])
}

// limitNumber writes a limit in base units.
func limitNumber(limit *quoratev1.Limit) string {
	if amount, isAmount := limit.GetValue().(*quoratev1.Limit_Amount); isAmount {
		return strconv.FormatInt(amount.Amount, 10)
	}
	return manifest.FormatLimit(limit, quoratev1.Unit_UNIT_COUNT)
}
