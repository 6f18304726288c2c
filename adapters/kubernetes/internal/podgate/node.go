package podgate

import (
	"fmt"
	"strings"
)

// maxPath is the longest path of a node in bytes.
const maxPath = 1024

func parseNode(text string) (tree, path string, err error) {
	tree, path, _ = strings.Cut(text, ":")
	if tree == "" || len(tree) > 63 || len(path) > maxPath || strings.ContainsAny(text, " \t\n") ||
		strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
		return "", "", fmt.Errorf("%s: %q is not a node: write TREE or TREE:PATH, as in prod:team/batch",
			NodeAnnotation, text)
	}
	return tree, path, nil
}

// isWithin reports whether a node is another one or below it.
func isWithin(node, other string) bool {
	return node == other || strings.HasPrefix(node, other+"/") ||
		!strings.Contains(other, ":") && strings.HasPrefix(node, other+":")
}
