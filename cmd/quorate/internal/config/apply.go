package config

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type applyOptions struct {
	changeOptions
	source sourceOptions
	// exitCode makes plan tell by its exit code whether there are changes.
	exitCode bool
}

func newApplyOptions(c *cli.Env) *applyOptions {
	return &applyOptions{changeOptions: changeOptions{Env: c}}
}

func newApplyCmd(c *cli.Env) *cobra.Command {
	o := newApplyOptions(c)
	cmd := &cobra.Command{
		Use:   "apply -f FILE...",
		Short: "Apply manifests: make trees, policies and access exactly as written, all or nothing",
		Long: `Make each tree and each policy in the manifests exactly as it is written there, all or nothing. Those
that they do not name stay unchanged, unless --prune deletes them. Nodes keep their allocations; a node with
allocations is not removed. A policy with other rules is checked against all trees that use it. The access section
replaces that of the cluster; without one, with --prune too, it stays as it is.

Files of other systems (--from) cannot say who may do what: nodes that exist keep their bindings, and trees what
tenants see and whether requests need a user. Queue configurations of YuniKorn do not say what is counted: trees keep
the resources they have, and --also-count adds others.

A change that removes a tree, or more than half of the nodes of one, is refused and names what would go, unless
--allow-removals has the number of these trees and nodes. A tree counts once.

With --at, only the subtree of a node changes, and the file is the text of that subtree, as "quorate manifest export
--at" prints it. It needs no rights elsewhere, and --expected-revision refuses it only if a later revision changed that
subtree.

Every difference is printed: + added, ~ changed, - removed, and ! for a node, user or group that uses more than its new
limit. "quorate plan" shows them beforehand, with their effect on requests. A limit of users or groups above that of the
node where it is set is a warning on standard error, with its place in the file: the limit of the node is reached
first.`,
		Example: `  quorate apply -f examples/cern.yaml --dry-run
  quorate apply -f cern.yaml -f zuul.yaml --prune --expected-revision 7 --reason "one text for everything"
  quorate apply -f limits/ --reason "everything in one folder"
  quorate apply -f nodepool.yaml --from zuul
  quorate apply --at cern:atlas -f atlas.yaml --expected-revision 7
  quorate manifest export cern | sed s/20/25/ | quorate apply -f - --reason "physics bought a rack"`,
		Args: o.source.checkNoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runApply(cmd.Context()) },
	}
	o.source.addFlags(cmd)
	o.addFlags(cmd)
	o.addConfirmation(cmd)
	o.addAllowRemovals(cmd)
	return cmd
}

func (o *applyOptions) runApply(ctx context.Context) error {
	m, err := o.source.readAll(o.Env)
	if err != nil {
		return err
	}
	learn := func(ctx context.Context, quorate *client.Client) error {
		if err := o.source.keepResources(ctx, quorate, m); err != nil {
			return err
		}
		o.source.learnUnits(ctx, o.Env, quorate, m)
		return nil
	}
	if o.source.prune && !o.dryRun {
		if err := o.confirm("delete every tree and policy that the files do not name"); err != nil {
			return err
		}
	}
	changes := 0
	err = o.runChange(ctx, learn, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		request := m.ApplyRequest()
		request.Prune, request.Actor, request.Reason = o.source.prune, o.actor, o.reason
		request.KeepAccess = o.source.from != "" && request.GetSubtree() == nil
		call := func(ctx context.Context, dry bool) (changeAnswer, error) {
			request.DryRun, request.ExpectedRevision, request.RequestId = dry, o.expected.value, ""
			return applyTrees(ctx, quorate, request)
		}
		answer, err := o.guardRemovals(ctx, countFromText(request), call)
		if err == nil && !o.dryRun {
			if o.source.prune { // a tree made after the plan must not go
				o.tieToPlan(answer)
			}
			answer, err = call(ctx, false)
		}
		if err != nil {
			return nil, err
		}
		changes = len(answer.GetResult().GetChanges())
		return answer, nil
	})
	if err == nil && o.exitCode && changes > 0 {
		return &cli.ExitError{Code: cli.ExitUsage, Ours: true}
	}
	return err
}

func newPlanCmd(c *cli.Env) *cobra.Command {
	o := newApplyOptions(c)
	o.dryRun = true
	cmd := &cobra.Command{
		Use:   "plan -f FILE...",
		Short: "Show what apply would change, and how requests would be affected",
		Long: `Show what "quorate apply" would change, without changing anything:

  + added, ~ changed, - removed
  !  a node, user or group would use more than its new limit
  <  a node would lose its headroom
  >  a node would gain headroom
  *  a request that waits, or was denied recently, would be granted
  !  also an allocation that would be preempted or revoked for such a request, and a request that waits and would be
     cancelled, or would step aside because it could not fit any more

Requests are evaluated in a copy of the ledger in which the change is made: what is shown is what would happen at once
if it were applied now. The first 100 of each kind are listed, of those that you may see.

The exit code is 0 whether or not there are changes, and 3 if the change would be refused; every rule that forbids it
is named. With --exit-code it is 0 if there is nothing to change, 2 if there are changes, and 1 for every error, also a
refusal. Give the same --reason, --actor and --expected-revision as for apply, because a tree can require them. --at is
that of apply.`,
		Example: `  quorate plan -f examples/cern.yaml
  quorate plan -f cern.yaml -f zuul.yaml --prune
  quorate plan -f limits/ --exit-code
  quorate plan -f nodepool.yaml --from zuul`,
		Args: o.source.checkNoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.runApply(cmd.Context())
			if status := (*cli.ExitError)(nil); err != nil && o.exitCode && !errors.As(err, &status) {
				return &cli.FixedError{Err: err, Code: cli.ExitFailure}
			}
			return err
		},
	}
	o.source.addFlags(cmd)
	o.addMetaFlags(cmd)
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false,
		"exit with 0 if nothing would change, 2 if something would, and 1 after an error")
	return cmd
}
