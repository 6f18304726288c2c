package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// completionTimeout bounds the wait of a shell for names from a server.
	completionTimeout = time.Second
	// mostCompletions bounds the names that are offered at once.
	mostCompletions = 200
)

// CompleteFlag offers fixed values for a flag.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	registerCompletion(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func registerCompletion(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist, which is a mistake in this program
	}
}

// AddCompletions gives each command below root completions of its first argument by what its line of usage calls it,
// and of its flags by their names, unless it has its own.
func (c *Env) AddCompletions(root *cobra.Command) {
	arguments := map[string]cobra.CompletionFunc{
		"TREE": c.CompleteTrees, "[TREE...]": c.CompleteTrees, "TREE[:node/path]": c.completePlaces,
		"[TREE[:node/path]]": c.completePlaces, "TREE[:node/path]...": c.completePlaces, "TREE:old/path": c.completePlaces,
		"TREE[:RESOURCE]": c.CompleteTrees, "TREE:RESOURCE": c.CompleteTrees,
	}
	flags := map[string]cobra.CompletionFunc{
		"at": c.completePlaces, "amount": c.completeAmounts,
	}
	for _, cmd := range allCommands(root) {
		_, first, _ := strings.Cut(cmd.Use, " ")
		first, more, _ := strings.Cut(first, " ")
		complete := arguments[first]
		// Of other nouns, an id names a token or a request for limits.
		isAllocation := cmd.HasParent() && cmd.Parent().Name() == "allocation" ||
			strings.HasPrefix(LongForm(cmd), "allocation ")
		if strings.TrimSuffix(first, "...") == "ID" && isAllocation {
			complete = c.completeAllocations
		}
		if first == "ID" && isAllocation { // several ids may have a namespace each
			cmd.RunE = c.takeNamespace(cmd.RunE)
		}
		if complete != nil && cmd.ValidArgsFunction == nil && cmd.Runnable() {
			cmd.ValidArgsFunction = c.completeArguments(complete, strings.HasSuffix(first, "..."),
				strings.Contains(more, "RESOURCE=LIMIT"))
		}
		for name, complete := range flags {
			if _, isKnown := cmd.GetFlagCompletionFunc(name); cmd.Flag(name) != nil && !isKnown {
				registerCompletion(cmd, name, complete)
			}
		}
	}
}

func allCommands(root *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		all = append(all, allCommands(cmd)...)
	}
	return all
}

// completeArguments completes the first argument, and later ones as repetitions of it, as resources with limits, or not
// at all.
func (c *Env) completeArguments(first cobra.CompletionFunc, isRepeated, takesLimits bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 || isRepeated:
			return first(cmd, args, typed)
		case takesLimits:
			tree, _, _ := strings.Cut(args[0], ":")
			return c.completeResources(cmd, tree)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAmounts uses the tree that --at names, or all trees.
func (c *Env) completeAmounts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	tree := ""
	if at := cmd.Flag("at"); at != nil {
		tree, _, _ = strings.Cut(at.Value.String(), ":")
	}
	return c.completeResources(cmd, strings.Trim(tree, "[]"))
}

// CompleteTrees offers the names of trees.
func (c *Env) CompleteTrees(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.ReadOptions()})
			var names []string
			for _, tree := range answer.GetTrees() {
				names = append(names, tree.GetName())
			}
			return names, err
		})
}

// completePlaces offers trees, and after a colon the nodes below.
func (c *Env) completePlaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	tree, path, isNode := strings.Cut(typed, ":")
	if !isNode {
		return c.CompleteTrees(cmd, nil, typed)
	}
	parent := ""
	if slash := strings.LastIndexByte(path, '/'); slash >= 0 {
		parent = path[:slash]
	}
	return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			answer, err := quorate.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
				Tree: tree, Node: parent, Subtree: true, MaxDepth: 1, Read: c.ReadOptions(),
			})
			var names []string
			for _, n := range answer.GetNodes() {
				if n.GetNode() != parent && strings.HasPrefix(n.GetNode(), path) && len(names) < mostCompletions {
					names = append(names, PlaceOf(tree, n.GetNode()).String())
				}
			}
			return names, err
		})
}

// completeResources offers NAME=, for an amount that follows.
func (c *Env) completeResources(cmd *cobra.Command, tree string) ([]string, cobra.ShellCompDirective) {
	return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.ReadOptions()})
			var names []string
			for _, t := range answer.GetTrees() {
				for _, r := range t.GetResources() {
					if name := r.GetName() + "="; (tree == "" || t.GetName() == tree) && !slices.Contains(names, name) {
						names = append(names, name)
					}
				}
			}
			return names, err
		})
}

// completeAllocations offers the ids of allocations and of waiting requests that begin as typed, those of other
// namespaces with theirs.
func (c *Env) completeAllocations(
	cmd *cobra.Command, _ []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			namespace, prefix, isQualified := strings.Cut(typed, " ")
			if !isQualified {
				namespace, prefix = "", typed
			}
			held, err := quorate.Allocations.ListAllocations(ctx, &quoratev1.ListAllocationsRequest{
				Namespace: cmp.Or(namespace, c.Namespace), IdPrefix: prefix, PageSize: mostCompletions, Read: c.ReadOptions(),
			})
			if err != nil {
				return nil, err
			}
			waiting, err := quorate.Allocations.ListWaiting(ctx, &quoratev1.ListWaitingRequest{
				Namespace: cmp.Or(namespace, c.Namespace), PageSize: mostCompletions, Read: c.ReadOptions(),
			})
			var names []string
			for _, a := range held.GetAllocations() {
				names = append(names, c.IDText(a))
			}
			for _, r := range waiting.GetRequests() {
				id := c.IDText(r.GetAllocation())
				if strings.HasPrefix(r.GetAllocation().GetId(), prefix) && !slices.Contains(names, id) {
					names = append(names, id)
				}
			}
			return names, err
		})
}

// CompleteNames offers names that a server has; none if no server answers in time. The answer may be stale.
func (c *Env) CompleteNames(
	cmd *cobra.Command, directive cobra.ShellCompDirective,
	list func(context.Context, *client.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	c.Timeout, c.Stale = completionTimeout, true
	c.UseContext(cmd.Flags())
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	quorate, ctx, cancel, err := c.Connect(parent)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer cancel()
	names, err := list(ctx, quorate)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, directive
}
