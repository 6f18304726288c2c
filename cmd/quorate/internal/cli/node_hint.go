package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/spelling"
)

// printNodeHint prints the nodes that are spelled similarly to one of the command line that does not exist: only those
// that the caller sees.
func (c *Env) printNodeHint(cmd *cobra.Command, err error) {
	if connect.CodeOf(err) != connect.CodeNotFound {
		return
	}
	for _, word := range c.Args {
		if strings.HasPrefix(word, "-") {
			_, word, _ = strings.Cut(word, "=")
		}
		at, malformed := ParsePlace(word)
		if malformed != nil || at.Node == "" || strings.Contains(at.Node, ":") {
			continue
		}
		// A list names the node itself.
		if similar, found := c.similarNode(cmd, at); found && !strings.Contains(err.Error(), similar.String()) {
			c.Messagef("  did you mean:             %s", similar)
			return
		}
	}
}

var errNoSimilarNode = errors.New("no node is spelled similarly")

// similarNode follows a path down to the first part that does not exist and replaces it by a child that is spelled
// similarly.
func (c *Env) similarNode(cmd *cobra.Command, at Place) (Place, bool) {
	names, _ := c.CompleteNames(cmd, cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			parts, above := strings.Split(at.Node, "/"), ""
			for i, part := range parts {
				children, err := c.childNames(ctx, quorate, Place{at.Tree, above})
				if err != nil {
					return nil, err
				}
				if !slices.Contains(children, part) {
					if part = spelling.Nearest(part, children); part == "" {
						return nil, errNoSimilarNode
					}
					return []string{strings.Join(append([]string{part}, parts[i+1:]...), "/"), above}, nil
				}
				above = strings.TrimPrefix(above+"/"+part, "/")
			}
			return nil, errNoSimilarNode
		})
	if len(names) == 0 {
		return Place{}, false
	}
	return Place{at.Tree, strings.TrimPrefix(names[1]+"/"+names[0], "/")}, true
}

// childNames are the names of the children of a node that the caller sees.
func (c *Env) childNames(ctx context.Context, quorate *client.Client, at Place) ([]string, error) {
	answer, err := quorate.Trees.GetUsage(ctx, &quoratev1.GetUsageRequest{
		Tree: at.Tree, Node: at.Node, Subtree: true, MaxDepth: 1, Read: c.ReadOptions(),
	})
	var names []string
	for _, n := range answer.GetNodes() {
		if n.GetNode() != at.Node {
			names = append(names, n.GetNode()[strings.LastIndexByte(n.GetNode(), '/')+1:])
		}
	}
	return names, err
}
