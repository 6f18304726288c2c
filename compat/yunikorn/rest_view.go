package yunikorn

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// pageSize is how much a call of the API may bring.
const pageSize = 1000

// view is a tree under the names that YuniKorn's users know. The root has the path "".
type view struct {
	tree   string
	nodes  map[string]*quoratev1.Node // by path
	queues map[string]string          // by path: the queue's, "root.dev"
	below  map[string][]string        // by path: the children's, sorted by queue
	paths  map[string]string          // by queue, as it is spelled and in lower case
}

// findView finds the tree of the partition in the request's path: the one that was converted, or else one of the very
// name, since trees that were not converted may have a + in theirs.
func (s *server) findView(r *http.Request) (*view, error) {
	partition := r.PathValue("partition")
	names := []string{treeName(partition)}
	if names[0] != partition && compat.IsName(partition) {
		names = append(names, partition)
	}
	for _, name := range names {
		response, err := s.trees.GetTree(r.Context(), &quoratev1.GetTreeRequest{Name: name})
		if err == nil {
			return newView(response.GetTree()), nil
		}
		if connect.CodeOf(err) != connect.CodeNotFound {
			return nil, err
		}
	}
	return nil, &failure{http.StatusNotFound, noPartition}
}

func newView(tree *quoratev1.Tree) *view {
	v := &view{
		tree: tree.GetName(), below: map[string][]string{}, queues: map[string]string{"": rootName},
		nodes: map[string]*quoratev1.Node{"": {Labels: tree.GetLabels()}}, paths: map[string]string{rootName: ""},
	}
	nodes := slices.SortedFunc(slices.Values(tree.GetNodes()), func(a, b *quoratev1.Node) int {
		return cmp.Compare(a.GetPath(), b.GetPath()) // a parent's path is the beginning of its children's
	})
	for _, node := range nodes {
		path := node.GetPath()
		parent, name := splitPath(path)
		if label := node.GetLabels()[LabelQueue]; label != "" {
			name = strings.ToLower(label)
		}
		v.nodes[path] = node
		v.queues[path] = v.queues[parent] + "." + name
		v.below[parent] = append(v.below[parent], path)
		v.paths[v.queues[path]] = path
	}
	for _, node := range nodes { // trees that were not converted may have names that differ in case only
		folded := strings.ToLower(v.queues[node.GetPath()])
		if _, taken := v.paths[folded]; !taken {
			v.paths[folded] = node.GetPath()
		}
	}
	for _, children := range v.below {
		slices.SortFunc(children, func(a, b string) int { return cmp.Compare(v.queues[a], v.queues[b]) })
	}
	return v
}

// pathOf finds a queue by its name, exactly or else ignoring case.
func (v *view) pathOf(queue string) (string, bool) {
	for _, name := range []string{queue, strings.ToLower(queue)} {
		if path, found := v.paths[name]; found {
			return path, true
		}
	}
	return "", false
}

func splitPath(path string) (parent, name string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

func collectPages[T any](
	ctx context.Context,
	page func(ctx context.Context, token string) ([]T, string, error),
) ([]T, error) {
	all := []T{}
	for token := ""; ; {
		some, next, err := page(ctx, token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next == "" {
			return all, nil
		}
		token = next
	}
}
