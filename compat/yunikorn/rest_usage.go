package yunikorn

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// The answers about users and groups.
type (
	userUsage struct {
		UserName string            `json:"userName"`
		Groups   map[string]string `json:"groups"` // by application
		Queues   *queueUsage       `json:"queues"`
	}
	groupUsage struct {
		GroupName    string      `json:"groupName"`
		Applications []string    `json:"applications"`
		Queues       *queueUsage `json:"queues"`
	}
	queueUsage struct {
		QueuePath           string           `json:"queuePath"`
		ResourceUsage       map[string]int64 `json:"resourceUsage"`
		RunningApplications []string         `json:"runningApplications"`
		MaxResources        map[string]int64 `json:"maxResources"`
		MaxApplications     int64            `json:"maxApplications"`
		Children            []*queueUsage    `json:"children"`
	}
)

func (s *server) users(r *http.Request) (any, error) {
	v, found, err := s.principals(r, quoratev1.HolderKind_HOLDER_KIND_USER, "")
	list := []*userUsage{}
	for _, p := range found {
		list = append(list, v.user(p))
	}
	return list, err
}

func (s *server) user(r *http.Request) (any, error) {
	name, readable := lastName(r)
	if !readable || !userName.MatchString(name) || len(name) > maxHolder {
		return nil, &failure{http.StatusBadRequest, "Invalid user name"}
	}
	v, found, err := s.principals(r, quoratev1.HolderKind_HOLDER_KIND_USER, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &failure{http.StatusNotFound, "User not found"}
	}
	return v.user(found[0]), nil
}

func (s *server) groups(r *http.Request) (any, error) {
	v, found, err := s.principals(r, quoratev1.HolderKind_HOLDER_KIND_GROUP, "")
	list := []*groupUsage{}
	for _, p := range found {
		list = append(list, v.group(p))
	}
	return list, err
}

// group also answers for *, the common pot, which the original lists and then refuses to show.
func (s *server) group(r *http.Request) (any, error) {
	name, readable := lastName(r)
	if !readable || name != everybody && !groupName.MatchString(name) || len(name) > maxHolder {
		return nil, &failure{http.StatusBadRequest, "Invalid group name"}
	}
	v, found, err := s.principals(r, quoratev1.HolderKind_HOLDER_KIND_GROUP, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &failure{http.StatusNotFound, "Group not found"}
	}
	return v.group(found[0]), nil
}

// principals are all users or groups of a partition by name, or the one that is named.
func (s *server) principals(
	r *http.Request, kind quoratev1.HolderKind, name string,
) (*view, []*quoratev1.PrincipalUsage, error) {
	v, err := s.look(r)
	if err != nil {
		return nil, nil, err
	}
	found, err := pages(r.Context(), func(ctx context.Context, token string) ([]*quoratev1.PrincipalUsage, string, error) {
		page, err := s.trees.ListPrincipals(ctx, &quoratev1.ListPrincipalsRequest{
			Tree: v.tree, Kind: kind, Name: name, PageSize: pageSize, PageToken: token,
		})
		return page.GetPrincipals(), page.GetNextPageToken(), err
	})
	slices.SortFunc(found, func(a, b *quoratev1.PrincipalUsage) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return v, found, err
}

func (v *view) user(p *quoratev1.PrincipalUsage) *userUsage {
	return &userUsage{p.GetName(), filled(p.GetGroups()), v.usage(p)}
}

func (v *view) group(p *quoratev1.PrincipalUsage) *groupUsage {
	queues := v.usage(p)
	return &groupUsage{p.GetName(), queues.RunningApplications, queues}
}

// usage hangs the nodes of a user or group below each other, with all queues between them and root.
func (v *view) usage(p *quoratev1.PrincipalUsage) *queueUsage {
	made := map[string]*queueUsage{}
	root := v.place("", made)
	for _, node := range p.GetNodes() {
		q := v.place(node.GetNode(), made)
		q.ResourceUsage, q.MaxResources = filled(node.GetUsed()), filled(node.GetLimits())
		q.RunningApplications = append(q.RunningApplications, slices.Sorted(slices.Values(node.GetApplications()))...)
		q.MaxApplications = node.GetMaxApplications()
	}
	return root
}

// place makes the queue of a node and those above it, as far as they are not made.
func (v *view) place(path string, made map[string]*queueUsage) *queueUsage {
	if q := made[path]; q != nil {
		return q
	}
	q := &queueUsage{
		QueuePath: v.queues[path], ResourceUsage: map[string]int64{}, RunningApplications: []string{},
		MaxResources: map[string]int64{}, Children: []*queueUsage{},
	}
	made[path] = q
	if path != "" {
		parentPath, name := split(path)
		parent := v.place(parentPath, made)
		if q.QueuePath == "" { // the node came between the reading of the tree and of its users
			q.QueuePath = parent.QueuePath + "." + name
		}
		at, _ := slices.BinarySearchFunc(parent.Children, q.QueuePath, func(sibling *queueUsage, path string) int {
			return cmp.Compare(sibling.QueuePath, path)
		})
		parent.Children = slices.Insert(parent.Children, at, q)
	}
	return q
}

// filled is a map that is written as {} if it is empty.
func filled[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
