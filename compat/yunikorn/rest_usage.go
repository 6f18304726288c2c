package yunikorn

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
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
		Users        []string    `json:"users"` // only on the design page of the original
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

func (s *server) handleUsers(r *http.Request) (any, error) {
	v, found, err := s.listPrincipals(r, quoratev1.HolderKind_HOLDER_KIND_USER, "")
	list := []*userUsage{}
	for _, p := range found {
		list = append(list, v.userUsageOf(p))
	}
	return list, err
}

func (s *server) handleUser(r *http.Request) (any, error) {
	name, readable := lastName(r)
	if !readable || !userName.MatchString(name) || len(name) > maxHolder {
		return nil, &failure{http.StatusBadRequest, "Invalid user name"}
	}
	v, found, err := s.listPrincipals(r, quoratev1.HolderKind_HOLDER_KIND_USER, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &failure{http.StatusNotFound, "User not found"}
	}
	return v.userUsageOf(found[0]), nil
}

func (s *server) handleGroups(r *http.Request) (any, error) {
	v, found, err := s.listPrincipals(r, quoratev1.HolderKind_HOLDER_KIND_GROUP, "")
	list := []*groupUsage{}
	for _, p := range found {
		list = append(list, v.groupUsageOf(p))
	}
	return list, err
}

// handleGroup also answers for *, the common pot, which the original lists and then refuses to show.
func (s *server) handleGroup(r *http.Request) (any, error) {
	name, readable := lastName(r)
	if !readable || name != anyName && !groupName.MatchString(name) || len(name) > maxHolder {
		return nil, &failure{http.StatusBadRequest, "Invalid group name"}
	}
	v, found, err := s.listPrincipals(r, quoratev1.HolderKind_HOLDER_KIND_GROUP, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &failure{http.StatusNotFound, "Group not found"}
	}
	return v.groupUsageOf(found[0]), nil
}

func (s *server) listPrincipals(
	r *http.Request, kind quoratev1.HolderKind, name string,
) (*view, []*quoratev1.PrincipalUsage, error) {
	v, err := s.findView(r)
	if err != nil {
		return nil, nil, err
	}
	found, err := collectPages(
		r.Context(),
		func(ctx context.Context, token string) ([]*quoratev1.PrincipalUsage, string, error) {
			page, err := s.trees.ListPrincipals(ctx, &quoratev1.ListPrincipalsRequest{
				Tree: v.tree, Kind: kind, Name: name, PageSize: pageSize, PageToken: token,
			})
			return page.GetPrincipals(), page.GetNextPageToken(), err
		},
	)
	slices.SortFunc(found, func(a, b *quoratev1.PrincipalUsage) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return v, found, err
}

func (v *view) userUsageOf(p *quoratev1.PrincipalUsage) *userUsage {
	return &userUsage{p.GetName(), nonNilMap(p.GetGroups()), v.principalUsage(p)}
}

func (v *view) groupUsageOf(p *quoratev1.PrincipalUsage) *groupUsage {
	queues := v.principalUsage(p)
	users := append([]string{}, p.GetUsers()...)
	return &groupUsage{p.GetName(), users, queues.RunningApplications, queues}
}

// principalUsage includes all queues between a node and root.
func (v *view) principalUsage(p *quoratev1.PrincipalUsage) *queueUsage {
	made := map[string]*queueUsage{}
	root := v.ensureQueue("", made)
	for _, node := range p.GetNodes() {
		q := v.ensureQueue(node.GetNode(), made)
		q.ResourceUsage, q.MaxResources = nonNilMap(node.GetUsed()), map[string]int64{}
		for resource, limit := range node.GetLimits() {
			q.MaxResources[resource] = limit.GetAmount()
		}
		q.RunningApplications = append(q.RunningApplications, slices.Sorted(slices.Values(node.GetApplications()))...)
		q.MaxApplications = node.GetMaxApplications().GetAmount()
	}
	return root
}

// ensureQueue makes the queue of a node and those above it if they are missing.
func (v *view) ensureQueue(path string, made map[string]*queueUsage) *queueUsage {
	if q := made[path]; q != nil {
		return q
	}
	q := &queueUsage{
		QueuePath: v.queues[path], ResourceUsage: map[string]int64{}, RunningApplications: []string{},
		MaxResources: map[string]int64{}, Children: []*queueUsage{},
	}
	made[path] = q
	if path != "" {
		parentPath, name := splitPath(path)
		parent := v.ensureQueue(parentPath, made)
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

// nonNilMap makes an empty map be written as {}.
func nonNilMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
