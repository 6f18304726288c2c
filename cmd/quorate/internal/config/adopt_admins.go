package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/access"
)

type adoptAdminsOptions struct {
	changeOptions
	maps []string
}

// adminRole is what admins of a node become: its administrators set what is below it.
const adminRole = "node-admin"

// NewAdoptAdminsCmd is the command that turns admins of trees into bindings.
func NewAdoptAdminsCmd(c *cli.Env) *cobra.Command {
	o := &adoptAdminsOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "adopt-admins --map NAME=USER...",
		Short: "Turn the admins of all trees into bindings, in one change of the configuration",
		Long: `Turn the admins of all trees into bindings of the role node-admin at the same nodes, in one change of the
configuration. In a guarded cluster admins count for nothing, because they are names that callers give themselves, so a
cluster with admins is not guarded.

--map says who each admin is: ann=corp/ann is the user corp/ann, ann=account/ann the account ann, and
board="group corp/board" a group. All admins must be mapped. Admins who are none any more are mapped to nothing: old= .
Nothing is changed without --map, or with --dry-run.`,
		Example: `  quorate access adopt-admins --map ann=account/ann --map bob=corp/bob --dry-run
  quorate access adopt-admins --map ann=account/ann --map bob=corp/bob --reason "before guard on"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runAdoptAdmins(cmd.Context()) },
	}
	cmd.Flags().StringArrayVar(&o.maps, "map", nil, "`NAME=USER` of one admin; repeat it for each")
	o.addFlags(cmd)
	return cmd
}

func (o *adoptAdminsOptions) runAdoptAdmins(ctx context.Context) error {
	users, err := parseAdminMap(o.maps)
	if err != nil {
		return err
	}
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		present, err := quorate.Trees.GetConfiguration(ctx, &quoratev1.GetConfigurationRequest{})
		if err != nil {
			return nil, err
		}
		trees, err := withoutAdmins(present.GetTrees(), users)
		if err != nil {
			return nil, err
		}
		if len(trees) == 0 {
			o.Messagef("no tree names admins")
			return &quoratev1.ApplyTreesResponse{
				Result: &quoratev1.ConfigurationResult{Revision: present.GetRevision()},
			}, nil
		}
		revision := present.GetRevision()
		if o.expected.value != nil {
			revision = *o.expected.value
		}
		return applyTrees(ctx, quorate, &quoratev1.ApplyTreesRequest{
			Trees: trees, DryRun: o.dryRun, ExpectedRevision: &revision, Actor: o.actor, Reason: o.reason,
		})
	})
}

// parseAdminMap reads the flags --map: subjects of bindings by the names of admins; empty for those who are dropped.
func parseAdminMap(flags []string) (map[string]string, error) {
	users := map[string]string{}
	for _, flag := range flags {
		name, user, found := strings.Cut(flag, "=")
		if _, again := users[name]; !found || name == "" || again {
			return nil, cli.Usagef("--map: %q does not map one admin, or maps it again: write NAME=USER", flag)
		}
		if user == "" {
			users[name] = ""
			continue
		}
		subject := user
		if account, isAccount := strings.CutPrefix(user, access.AccountIssuer+"/"); isAccount {
			subject = "account " + account
		} else if !strings.Contains(user, " ") {
			subject = "user " + user
		}
		if _, err := access.ParseSubject(subject); err != nil {
			return nil, cli.Usagef("--map: %q: %v", flag, err)
		}
		users[name] = subject
	}
	return users, nil
}

func withoutAdmins(trees []*quoratev1.Tree, users map[string]string) ([]*quoratev1.Tree, error) {
	unmapped := map[string]bool{}
	var changed []*quoratev1.Tree
	for _, t := range trees {
		hasAdmins := len(t.GetAdmins()) > 0
		t.Bindings = adoptInto(t.GetBindings(), t.GetAdmins(), users, unmapped)
		t.Admins = nil
		for _, n := range t.GetNodes() {
			hasAdmins = hasAdmins || len(n.GetAdmins()) > 0
			n.Bindings = adoptInto(n.GetBindings(), n.GetAdmins(), users, unmapped)
			n.Admins = nil
		}
		if hasAdmins {
			changed = append(changed, t)
		}
	}
	if len(unmapped) > 0 {
		names := slices.Sorted(maps.Keys(unmapped))
		var flags strings.Builder
		for _, name := range names {
			fmt.Fprintf(&flags, " --map %s", cli.ShellWord(name+"=account/"+name))
		}
		return nil, cli.Usagef("these admins are not mapped to users: %s; add, with the users that they are:%s",
			strings.Join(names, ", "), flags.String())
	}
	return changed, nil
}

func adoptInto(
	bindings []*quoratev1.Binding, admins []string, users map[string]string, unmapped map[string]bool,
) []*quoratev1.Binding {
	var to []string
	for _, name := range admins {
		switch subject, mapped := users[name]; {
		case !mapped:
			unmapped[name] = true
		case subject != "" && !slices.Contains(to, subject) && !isBound(bindings, subject):
			to = append(to, subject)
		}
	}
	if len(to) == 0 {
		return bindings
	}
	return append(bindings, &quoratev1.Binding{Role: adminRole, To: to})
}

// isBound reports whether a subject has the role of admins at a node already, without an end.
func isBound(bindings []*quoratev1.Binding, subject string) bool {
	return slices.ContainsFunc(bindings, func(b *quoratev1.Binding) bool {
		return b.GetRole() == adminRole && b.GetEndsAt() == nil && slices.Contains(b.GetTo(), subject)
	})
}
