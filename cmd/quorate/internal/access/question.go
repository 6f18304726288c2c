package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	rights "github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/manifest"
)

func newCheckCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check VERB [TREE[:node/path]]",
		Short: "Ask whether you have a verb at a node, or on the cluster",
		Long: `Ask whether you have a verb at a node, or on the cluster. The exit code is 0 for yes and 1 for no. In a
cluster that is not guarded, the answer is what guarded would do. A node that does not exist, or that you may not see,
has no verb. No verb is needed to ask.

` + verbsHelp(),
		Example: `  quorate access check hold cern:atlas/physics
  quorate access check cluster.operate && quorate member delete n4`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeQuestion(c),
		RunE:              func(cmd *cobra.Command, args []string) error { return runCanI(cmd.Context(), c, args) },
	}
}

func verbsHelp() string {
	return "Verbs at nodes: " + strings.Join(rights.NodeVerbs.Names(), " ") + "\n\nVerbs on the cluster: " +
		strings.Join(rights.ClusterVerbs.Names(), " ")
}

func runCanI(ctx context.Context, c *cli.Env, args []string) error {
	place, err := parsePlace(args[1:])
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := askRight(ctx, quorate, args[0], place)
	if err != nil {
		return err
	}
	word := "no"
	if answer.GetAllowed()[0] {
		word = "yes"
	}
	err = c.Print(answer, func(p *cli.Page) error {
		p.Linef("%s", word)
		return nil
	})
	if err == nil && word == "no" {
		return &cli.ExitError{Code: cli.ExitFailure, Ours: true}
	}
	return err
}

func askRight(
	ctx context.Context, quorate *client.Client, verb string, place cli.Place,
) (*quoratev1.CanIResponse, error) {
	answer, err := quorate.Identity.CanI(ctx, &quoratev1.CanIRequest{
		Questions: []*quoratev1.AccessQuestion{{Verb: verb, Tree: place.Tree, Node: place.Node}},
	})
	if err == nil && len(answer.GetAllowed()) != 1 {
		return nil, fmt.Errorf("the server answered %d questions instead of 1", len(answer.GetAllowed()))
	}
	return answer, err
}

func newBindingListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "list VERB [TREE[:node/path]]",
		Short: "List the bindings that give a verb at a node, or on the cluster",
		Long: `List the bindings that give a verb at a node, or on the cluster, the nearest first. A binding holds at its
node and everything below it, one on the cluster everywhere. It needs access.read on the cluster, or bindings.grant at
the node.`,
		Example: `  quorate binding list limits.set cern:atlas/physics
  quorate binding list access.manage -o json`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeQuestion(c),
		RunE:              func(cmd *cobra.Command, args []string) error { return runWhoCan(cmd.Context(), c, args) },
	}
}

func runWhoCan(ctx context.Context, c *cli.Env, args []string) error {
	place, err := parsePlace(args[1:])
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Access.WhoCan(ctx, &adminv1.WhoCanRequest{
		Verb: args[0], Tree: place.Tree, Node: place.Node,
	})
	if err != nil {
		return err
	}
	if len(answer.GetBindings()) == 0 {
		c.Messagef("no binding gives %s at %s", args[0], placeText(place))
	}
	return c.Print(answer, func(p *cli.Page) error {
		rows := [][]string{{"AT", "ROLE", "SUBJECTS", "CEILING", "ENDS"}}
		for _, found := range answer.GetBindings() {
			b := found.GetBinding()
			subjects := strings.Join(manifest.SubjectTexts(b.GetSubjects()), ", ")
			rows = append(rows, []string{
				placeText(cli.PlaceOf(found.GetTree(), found.GetNode())), b.GetRole(), subjects, ceilingText(b),
				cli.FormatTime(b.GetEndsAt()),
			})
		}
		return p.Table(rows)
	})
}

// ceilingText says how high a binding reaches, in the words of a manifest.
func ceilingText(b *quoratev1.Binding) string {
	var parts []string
	if b.GetMaxPriority() != 0 {
		parts = append(parts, fmt.Sprintf("max-priority: %d", b.GetMaxPriority()))
	}
	if b.GetUnpreemptable() {
		parts = append(parts, "unpreemptable")
	}
	if b.GetHoldAs().GetAny() {
		parts = append(parts, "hold-as: any")
	} else if names := b.GetHoldAs().GetNames(); len(names) > 0 {
		parts = append(parts, "hold-as: "+strings.Join(names, " "))
	}
	return strings.Join(parts, ", ")
}

type roleView struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Verbs       []string `json:"verbs"`
}

func newRoleListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the built-in roles and their verbs",
		Long: `List the built-in roles and their verbs, as this binary knows them. No server is asked. Custom roles are
in the configuration, see "quorate manifest export".`,
		Example: "  quorate role list\n  quorate role list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var views []roleView
			rows := [][]string{{"ROLE", "VERBS", "DESCRIPTION"}}
			for _, role := range rights.BuiltinRoles() {
				verbs := role.Verbs.Names()
				views = append(views, roleView{role.Name, role.Description, verbs})
				rows = append(rows, []string{role.Name, clusterVerbsText(verbs), role.Description})
			}
			return c.PrintValue(views, func(p *cli.Page) error { return p.Table(rows) })
		},
	}
}
