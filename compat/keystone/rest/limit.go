package rest

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strings"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

type limitBody struct {
	ID          string  `json:"id"`
	Project     *string `json:"project_id"`
	Domain      *string `json:"domain_id"` // always null: each node is a project
	Service     string  `json:"service_id"`
	Region      *string `json:"region_id"`
	Resource    string  `json:"resource_name"`
	Limit       int64   `json:"resource_limit"`
	Description *string `json:"description"`
	Links       links   `json:"links"`
}

func newLimitBody(t *treeEntry, n *nodeEntry, r resourceEntry, limit int64, description string) limitBody {
	id := limitID(t.name, n.path, r.name)
	return limitBody{
		ID: id, Project: &n.project, Service: t.service, Region: orNull(r.region), Resource: r.keystoneName, Limit: limit,
		Description: orNull(description), Links: linkTo("limits", id),
	}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// unlimited is how Keystone writes that something has no limit.
const unlimited = -1

func setLimit(l *quoratev1.Limit) (value int64, why string) {
	amount, limited := amountOf(l)
	switch {
	case limited && amount > math.MaxInt32:
		return math.MaxInt32, "more than Keystone's largest limit"
	case limited:
		return amount, ""
	}
	if _, advisory := l.GetValue().(*quoratev1.Limit_Advisory); advisory {
		return unlimited, "an advisory limit, which denies nothing"
	}
	return unlimited, ""
}

// filter must match all query parameters. A parameter that is not given selects all.
type filter struct{ query url.Values }

func (f filter) allows(key, value string) bool {
	return !f.query.Has(key) || f.query.Get(key) == value
}

func (f filter) selectTrees(v *view) []*treeEntry {
	var chosen []*treeEntry
	for _, t := range v.visible {
		if f.allows("service_id", t.service) {
			chosen = append(chosen, t)
		}
	}
	return chosen
}

func (f filter) allowsResource(r resourceEntry) bool {
	return f.allows("resource_name", r.keystoneName) && f.allows("region_id", r.region)
}

func (s *server) listLimits(r *http.Request) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	f := filter{r.URL.Query()}
	if f.query.Get("domain_id") != "" {
		return http.StatusOK, listBody[limitBody]("limits", nil), nil
	}
	var found []limitBody
	if project := f.query.Get("project_id"); project != "" {
		found, err = s.toldLimits(r.Context(), v, f, project)
	} else {
		found, err = s.setLimits(r.Context(), v, f)
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, listBody("limits", found), nil
}

// toldLimits are what a project is told, an entry for each resource, so that a service never takes the default for it.
//
// A project without a node gets 0 in a tree that refuses unknown nodes, if the query names the service. In other trees,
// which count unknown nodes further up or create them, it has no entry, and the service takes the default.
func (s *server) toldLimits(ctx context.Context, v *view, f filter, project string) ([]limitBody, error) {
	byService := f.query.Has("service_id")
	var found []limitBody
	for _, t := range f.selectTrees(v) {
		n, err := t.findProject(project)
		if err != nil {
			return nil, err
		}
		var shares []share
		switch {
		case n != nil:
			shares, err = s.tell(ctx, v, t, n, f.query.Get("resource_name"))
		case byService:
			n = &nodeEntry{path: project, project: project}
			shares, err = s.tellUnknown(ctx, v, t)
		}
		if err != nil && byService || err != nil && !isForbidden(err) {
			return nil, err
		}
		for _, one := range shares {
			if f.allowsResource(one.resource) {
				found = append(found, newLimitBody(t, n, one.resource, one.amount, one.why))
			}
		}
	}
	return found, checkDistinct(found)
}

func isForbidden(err error) bool { return asFailure(err).Code == http.StatusForbidden }

func (s *server) tellUnknown(ctx context.Context, v *view, t *treeEntry) ([]share, error) {
	err := s.wholeUsage(ctx, v, t, "", false, func(*quoratev1.NodeUsage) {})
	if err != nil || !t.refusesUnknown {
		return nil, err
	}
	var shares []share
	for _, r := range t.resources {
		shares = append(shares, share{r, 0, "tree " + t.name + " has no node for the project"})
	}
	return shares, nil
}

// checkDistinct is an error if two trees answer for the same resource of a service and region: a service would take the
// first one.
func checkDistinct(found []limitBody) error {
	trees := map[[3]string]string{}
	for _, l := range found {
		region := ""
		if l.Region != nil {
			region = *l.Region
		}
		key, tree := [3]string{l.Service, region, l.Resource}, strings.SplitN(l.ID, ":", 2)[0]
		if other, taken := trees[key]; taken && other != tree {
			return newFailure(http.StatusConflict, "trees %s and %s both limit %s of service %.128s: give them different "+
				"services or regions", other, tree, l.Resource, l.Service)
		}
		trees[key] = tree
	}
	return nil
}

// setLimits are the limits that are set on nodes of which the caller may read usage.
func (s *server) setLimits(ctx context.Context, v *view, f filter) ([]limitBody, error) {
	var found []limitBody
	for _, t := range f.selectTrees(v) {
		var wanted []resourceEntry
		for _, r := range t.resources {
			if f.allowsResource(r) {
				wanted = append(wanted, r)
			}
		}
		if len(wanted) == 0 || len(found) > maxListed {
			continue
		}
		err := s.eachUsage(ctx, v, &quoratev1.GetUsageRequest{Tree: t.name, Subtree: true}, func(u *quoratev1.NodeUsage) {
			n := t.byPath[u.GetNode()]
			if n == nil || len(found) > maxListed {
				return
			}
			limits := map[string]*quoratev1.Limit{}
			for _, r := range u.GetResources() {
				limits[r.GetResource()] = r.GetLimit()
			}
			for _, r := range wanted {
				if limit := limits[r.name]; limit != nil {
					value, why := setLimit(limit)
					found = append(found, newLimitBody(t, n, r, value, why))
				}
			}
		})
		if err != nil && !isHidden(err) {
			return nil, err
		}
	}
	return found, nil
}

type limitPlace struct {
	tree     *treeEntry
	node     *nodeEntry
	resource resourceEntry
	limit    *quoratev1.Limit
}

// findLimit returns a limit only if it is set and the caller may read it.
func (s *server) findLimit(ctx context.Context, v *view, id string) (limitPlace, error) {
	missing := newFailure(http.StatusNotFound, "Could not find limit for %.256s.", id)
	parts, ok := splitID(id, 3)
	if !ok {
		return limitPlace{}, missing
	}
	for _, t := range v.visible {
		n := t.byPath[parts[1]]
		r, known := t.resource(parts[2])
		if t.name != parts[0] || n == nil || !known {
			continue
		}
		limit, err := s.readLimit(ctx, v, t, n, r)
		if err != nil && !isForbidden(err) {
			return limitPlace{}, err
		}
		if limit != nil {
			return limitPlace{t, n, r, limit}, nil
		}
	}
	return limitPlace{}, missing
}

// readLimit returns nil if the node has no limit of its own.
func (s *server) readLimit(
	ctx context.Context, v *view, t *treeEntry, n *nodeEntry, r resourceEntry,
) (*quoratev1.Limit, error) {
	var limit *quoratev1.Limit
	err := s.wholeUsage(ctx, v, t, n.path, false, func(u *quoratev1.NodeUsage) {
		for _, one := range u.GetResources() {
			if one.GetResource() == r.name {
				limit = one.GetLimit()
			}
		}
	})
	return limit, err
}

func (s *server) showLimit(r *http.Request) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	place, err := s.findLimit(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	value, why := setLimit(place.limit)
	if why == "" {
		why = s.lastReason(r.Context(), v, place.tree.name, place.node.path, "limit "+place.resource.name)
	}
	body := newLimitBody(place.tree, place.node, place.resource, value, why)
	return http.StatusOK, map[string]any{"limit": body}, nil
}

// lastReason is the reason of the last change of a setting in the history; empty if it has none, or the caller may not
// read the history.
func (s *server) lastReason(ctx context.Context, v *view, tree, node, field string) string {
	found, err := s.trees.ListRevisions(ctx, &adminv1.ListRevisionsRequest{
		Tree: tree, Node: node, PageSize: revisionsPage, Read: atIndex(v.index),
	})
	if err != nil {
		return "" // a description is not worth an error
	}
	for _, r := range found.GetRevisions() {
		for _, change := range r.GetChanges() {
			if change.GetField() == field {
				return r.GetReason()
			}
		}
	}
	return ""
}
