package usage

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/config"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

type usageOptions struct {
	*cli.Env
	at       string
	subtree  bool
	depth    int32
	fullest  bool
	cordoned bool
	minShare percentFlag
	contains string
	follow   cli.Following
}

// percentFlag is a share of a limit, written with or without the sign.
type percentFlag int32

// Set reads a number of percent.
func (f *percentFlag) Set(text string) error {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "%"), 10, 16)
	if err != nil || n > quota.MaxUsagePercent {
		return fmt.Errorf("%q is not a number of percent from 0%% to %d%%", text, quota.MaxUsagePercent)
	}
	*f = percentFlag(n)
	return nil
}

// String writes the share with the sign.
func (f *percentFlag) String() string { return strconv.Itoa(int(*f)) + "%" }

// Type is shown in help texts.
func (f *percentFlag) Type() string { return "PERCENT" }

func newNodeListCmd(c *cli.Env) *cobra.Command {
	o := &usageOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list TREE[:node/path] | list {--fullest | --cordoned}",
		Short: "Show limits and usage as a tree",
		Long: `Show the limits and the usage of a node and of all nodes below it:

  LIMIT     limit of the node and everything below it; (n) is what its policy makes of unset
  OWN       held at the node itself
  SUBTREE   held at the node and everywhere below it
  HEADROOM  the largest claim that would fit at this node now, limited by the whole path to the root
  OVER      how far the subtree is above its limit, after the limit was lowered

With -o wide also:

  USED      share of the limit in use
  BORROWED  in a cohort, what the subtree holds beyond its own
  LENDABLE  in a cohort, the unused part of its own that others may use; what they use already is not taken off

With --fullest, the nodes that use most of a limit come first: of the resources of a node, the one with the largest
share counts. Without a tree these are the nodes of all trees. --at-least leaves out nodes of which no resource uses so
much of its limit. Applications do not count.
--name-contains leaves out nodes whose own name, the last part of the path, does not contain a text, upper or lower
case.

With --cordoned, list instead the cordoned nodes ("quorate node cordon"), and what is held at each and below. Without a
tree these are the nodes of all trees. A drain is "drained" once nothing was left; "quorate allocation list --at" lists
what is.

A row counts applications where they run or are limited. Long amounts of bytes are rounded down and begin with ~;
-o json has them exactly.`,
		Example: `  quorate usage cern
  quorate usage cern --depth 1
  quorate usage --fullest --at-least 90%
  quorate usage cern --name-contains sim
  quorate usage cern --depth 1 --watch
  quorate usage cern:atlas/physics --subtree=false -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (o.fullest || o.cordoned) {
				return nil
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.cordoned {
				if o.isFiltered(cmd) {
					return cli.Usagef("--cordoned cannot be combined with flags about usage")
				}
				return config.ListCordoned(cmd.Context(), c, strings.Join(args, ""))
			}
			if len(args) == 0 {
				return o.runFullest(cmd.Context())
			}
			o.at = args[0]
			return o.runUsage(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.subtree, "subtree", true, "also show all nodes below")
	cmd.Flags().Int32Var(&o.depth, "depth", 0, "show at most this many levels below the node; 0 shows all")
	cmd.Flags().BoolVar(&o.fullest, "fullest", false, "order by the share of a limit in use, largest first")
	cmd.Flags().Var(&o.minShare, "at-least", "show only nodes that use at least this share of a limit: 90%")
	cmd.Flags().StringVar(&o.contains, "name-contains", "", "show only nodes whose own name contains this text")
	cmd.Flags().BoolVar(&o.cordoned, "cordoned", false, "list the cordoned nodes, and what is left there")
	o.follow.AddFlag(cmd)
	return cmd
}

func (o *usageOptions) isFiltered(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"subtree", "depth", "fullest", "at-least", "name-contains", "watch"},
		cmd.Flags().Changed)
}

func (o *usageOptions) runUsage(ctx context.Context) error {
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return err
	}
	o.follow.Trees = []string{at.Tree}
	o.follow.Concerns = func(m *quoratev1.WatchChangesResponse) bool { return len(m.GetTrees()) > 0 }
	return o.RunOrFollow(ctx, o.follow, func(ctx context.Context, quorate *client.Client) error {
		return o.showUsage(ctx, quorate, at)
	})
}

func (o *usageOptions) showUsage(ctx context.Context, quorate *client.Client, at cli.Place) error {
	all, err := o.fetchUsage(ctx, quorate, at)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.ReportFiltered(all)
	o.reportHolds(at, all.GetNodes())
	names := func() []string {
		names := []string{}
		for _, n := range all.GetNodes() {
			names = append(names, cli.PlaceOf(at.Tree, n.GetNode()).String())
		}
		return names
	}
	return o.PrintNamed(all, names, func(p *cli.Page) error { return p.Table(o.usageRows(at, all.GetNodes())) })
}

// reportHolds prints which of the nodes are cordoned, and which node above them is. In the other forms of output a
// field tells it.
func (o *usageOptions) reportHolds(at cli.Place, nodes []*quoratev1.NodeUsage) {
	for i, n := range nodes {
		hold := n.GetCordon()
		if hold == nil || !o.IsTable() || i > 0 && hold.GetNode() != n.GetNode() {
			continue
		}
		place := cli.PlaceOf(at.Tree, hold.GetNode()).String()
		if reason := hold.GetReason(); reason != "" {
			place += " (" + reason + ")"
		}
		o.Messagef("cordoned: %s; nothing new is admitted there and below", place)
	}
}

func (o *usageOptions) fetchUsage(
	ctx context.Context, quorate *client.Client, at cli.Place,
) (*quoratev1.GetUsageResponse, error) {
	request := &quoratev1.GetUsageRequest{
		Tree: at.Tree, Node: at.Node, Subtree: o.subtree, Read: o.ReadOptions(),
		MaxDepth: o.depth, AtLeastPercent: int32(o.minShare), FullestFirst: o.fullest,
		NameContains: o.contains,
	}
	return cli.AllPages(ctx, quorate.Trees.GetUsage, request)
}

func (o *usageOptions) usageRows(at cli.Place, nodes []*quoratev1.NodeUsage) [][]string {
	rows := [][]string{{"NODE", "RESOURCE", "LIMIT", "OWN", "SUBTREE", "HEADROOM", "OVER"}}
	if o.Output == cli.OutputWide {
		rows[0] = append(rows[0], "USED", "BORROWED", "LENDABLE")
	}
	for i, node := range nodes {
		// The first one is the node that was asked for, unless its tree hides that. A list without parents has no indents.
		name := cli.Place{Tree: at.Tree, Node: node.GetNode()}.String()
		if i > 0 && !o.fullest && o.minShare == 0 && o.contains == "" && o.Output != cli.OutputCSV {
			name = indentName(at.Node, node.GetNode())
		}
		for _, r := range node.GetResources() {
			rows = append(rows, append([]string{name}, o.usageColumns(r)...))
			if o.Output != cli.OutputCSV {
				name = ""
			}
		}
		if len(node.GetResources()) == 0 { // the tree shows only names
			rows = append(rows, []string{name})
		}
		running, most := node.GetRunningApplications(), node.GetMaxApplications()
		if _, isLimited := manifest.Bound(most); running > 0 || isLimited {
			rows = append(rows, append([]string{name}, applicationColumns(running, most)...))
		}
	}
	return rows
}

// indentName is the last name of a path, indented by its depth below top.
func indentName(top, path string) string {
	below := strings.TrimPrefix(strings.TrimPrefix(path, top), "/")
	names := strings.Split(below, "/")
	return strings.Repeat("  ", len(names)) + names[len(names)-1]
}

func (o *usageOptions) usageColumns(r *quoratev1.ResourceUsage) []string {
	columns := usageColumns(r)
	if o.Output != cli.OutputWide {
		return columns
	}
	amount := func(n int64) string { return quantity.Round(n, r.GetUnit()) }
	return append(columns, usedShare(r), amount(r.GetBorrowed()), amount(r.GetLends()))
}

// usedShare is in per cent of the limit in force, rounded down; "-" without a limit.
func usedShare(r *quoratev1.ResourceUsage) string {
	limit := r.GetLimit()
	if limit == nil {
		limit = r.GetEffective()
	}
	if limit.GetAmount() <= 0 {
		return "-"
	}
	share := new(big.Int).Mul(big.NewInt(r.GetSubtree()), big.NewInt(100))
	return share.Quo(share, big.NewInt(limit.GetAmount())).String() + "%"
}

func usageColumns(r *quoratev1.ResourceUsage) []string {
	amount := func(n int64) string { return quantity.Round(n, r.GetUnit()) }
	limit := limitText(r)
	headroom, over := "unlimited", ""
	if r.Headroom != nil {
		headroom = amount(r.GetHeadroom())
	}
	if r.GetOver() > 0 {
		over = amount(r.GetOver()) + " over"
	}
	return []string{r.GetResource(), limit, amount(r.GetOwn()), amount(r.GetSubtree()), headroom, over}
}

// limitText says what stands for an unset limit, and why: the default of a node above, or the policy. A scheduled limit
// may be in force instead.
func limitText(r *quoratev1.ResourceUsage) string {
	if r.GetLimit() != nil || r.GetEffective() == nil {
		return manifest.FormatLimit(r.GetLimit(), r.GetUnit())
	}
	inForce := manifest.FormatLimit(r.GetEffective(), r.GetUnit())
	if r.GetLimitChangesAt() != nil {
		return "unset (" + inForce + ")"
	}
	return inForce + " by " + cli.GiverOf(r)
}

// applicationColumns counts the applications that run at a node and below it. It leaves the headroom empty, because
// that depends on other nodes as well.
func applicationColumns(running int64, limited *quoratev1.Limit) []string {
	limit, over := "unlimited", ""
	most, isLimited := manifest.Bound(limited)
	if isLimited {
		limit = strconv.FormatInt(most, 10)
	}
	if isLimited && running > most {
		over = strconv.FormatInt(running-most, 10) + " over"
	}
	return []string{"applications", limit, "", strconv.FormatInt(running, 10), "", over}
}
