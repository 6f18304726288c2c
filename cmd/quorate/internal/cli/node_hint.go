package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
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
		if similar, found := c.similarNode(cmd, at); found {
			c.Messagef("  did you mean:             %s", similar)
			return
		}
	}
}

var errNoSimilarNode = errors.New("no node is spelled similarly")

// similarNode follows a path down to the first part that does not exist and replaces it by the child that is spelled
// most similarly.
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
					if part = mostSimilar(part, children); part == "" {
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

// mostSimilar is the name with the fewest typing mistakes, at most a third of its letters; empty if there is none.
func mostSimilar(typed string, names []string) string {
	best, fewest := "", len(typed)/3+1
	for _, name := range names {
		if n := typingMistakes(typed, name); n < fewest || n == fewest && best == "" {
			best, fewest = name, n
		}
	}
	return best
}

// longestCompared bounds the lengths of names that are compared, because that takes time by their product.
const longestCompared = 64

// typingMistakes is the number of letters to add, drop, replace or swap with a neighbour, to turn one name into another.
func typingMistakes(a, b string) int {
	if len(a) > longestCompared || len(b) > longestCompared {
		return longestCompared
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
