package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

type principalsOptions struct {
	*cli.Env
	tree, name    string
	users, groups bool
}

func newPrincipalListCmd(c *cli.Env) *cobra.Command {
	o := &principalsOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "list TREE [NAME]",
		Short: "Show usage and limits of users or groups in a tree",
		Long: `Show what each user or group holds at each node and below it, beside the limit there. A limit with (*)
is that of the wildcard. The group * is shared by all users whose groups are not named. With a NAME, a user who holds
nothing is shown with the limits of the wildcard.

For applications, the number that run is shown beside the limit, with their names. With a NAME, a group is shown with
its members: at each node the users who hold something there that is counted for it, and how much. With -o json or
-o yaml, each group has the names of its users in the tree.`,
		Example: `  quorate principal list cern
  quorate principal list cern --groups
  quorate principal list cern physics --groups
  quorate principal list cern ann -o json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.tree, o.name = args[0], strings.Join(args[1:], "")
			return o.runPrincipals(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.users, "users", false, "show users (the default)")
	cmd.Flags().BoolVar(&o.groups, "groups", false, "show groups")
	return cmd
}

func (o *principalsOptions) runPrincipals(ctx context.Context) error {
	if o.users && o.groups {
		return cli.Usagef("use only one of --users and --groups")
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	all, err := o.fetchPrincipals(ctx, quorate)
	if err != nil {
		return err
	}
	o.ReportAge(all.GetRead())
	o.LearnUnitsForTable(ctx, quorate)
	return o.Print(all, func(p *cli.Page) error {
		heading := "USER"
		if o.groups {
			heading = "GROUP"
		}
		rows := [][]string{{heading, "AT", "WHAT", "USED", "LIMIT", ""}}
		for _, principal := range all.GetPrincipals() {
			rows = append(rows, principalRows(o.Units, o.tree, principal)...)
		}
		return p.Table(rows)
	})
}

func (o *principalsOptions) fetchPrincipals(
	ctx context.Context, quorate *client.Client,
) (*quoratev1.ListPrincipalsResponse, error) {
	request := &quoratev1.ListPrincipalsRequest{
		Tree: o.tree, Kind: quoratev1.HolderKind_HOLDER_KIND_USER, Name: o.name, Read: o.ReadOptions(),
	}
	if o.groups {
		request.Kind = quoratev1.HolderKind_HOLDER_KIND_GROUP
	}
	return cli.AllPages(ctx, quorate.Trees.ListPrincipals, request)
}

// principalRows has a row for each resource that is used or limited. Only the first row of a name and of a node shows
// them.
func principalRows(u cli.Units, tree string, p *quoratev1.PrincipalUsage) [][]string {
	var rows [][]string
	name := p.GetName()
	for _, node := range p.GetNodes() {
		at := cli.PlaceOf(tree, node.GetNode()).String()
		for _, row := range principalNodeRows(u, tree, node) {
			rows = append(rows, append([]string{name, at}, row...))
			name, at = "", ""
		}
		rows = append(rows, memberRows(u, tree, node)...)
	}
	return rows
}

func memberRows(u cli.Units, tree string, node *quoratev1.PrincipalNode) [][]string {
	var rows [][]string
	for _, m := range node.GetMembers() {
		member := "user " + m.GetUser()
		for _, resource := range slices.Sorted(maps.Keys(m.GetUsed())) {
			used := u.FormatAmount(tree, resource, m.GetUsed()[resource])
			rows = append(rows, []string{"", member, resource, used, "", ""})
			member = ""
		}
		if running := m.GetApplications(); len(running) > 0 {
			count := strconv.Itoa(len(running))
			rows = append(rows, []string{"", member, "applications", count, "", strings.Join(running, " ")})
		}
	}
	if more := node.GetMoreMembers(); more > 0 {
		rows = append(rows, []string{"", fmt.Sprintf("and %d more users", more), "", "", "", ""})
	}
	return rows
}

func principalNodeRows(u cli.Units, tree string, node *quoratev1.PrincipalNode) [][]string {
	var rows [][]string
	mark := ""
	if node.GetWildcard() {
		mark = " (*)"
	}
	limits := manifest.Bounds(node.GetLimits())
	resources := maps.Clone(limits)
	maps.Copy(resources, node.GetUsed())
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		limit := ""
		if most, limited := limits[resource]; limited {
			limit = u.FormatAmount(tree, resource, most) + mark
		}
		rows = append(rows, []string{resource, u.FormatAmount(tree, resource, node.GetUsed()[resource]), limit, ""})
	}
	most, isLimited := manifest.Bound(node.GetMaxApplications())
	if running := node.GetApplications(); len(running) > 0 || isLimited {
		limit := ""
		if isLimited {
			limit = strconv.FormatInt(most, 10) + mark
		}
		rows = append(rows, []string{"applications", strconv.Itoa(len(running)), limit, strings.Join(running, " ")})
	}
	return rows
}
