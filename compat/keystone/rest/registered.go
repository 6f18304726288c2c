package rest

import (
	"context"
	"net/http"
	"slices"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// registeredBody shows a resource of a tree with the default of its root.
type registeredBody struct {
	ID          string  `json:"id"`
	Service     string  `json:"service_id"`
	Region      *string `json:"region_id"`
	Resource    string  `json:"resource_name"`
	Default     int64   `json:"default_limit"`
	Description *string `json:"description"`
	Links       links   `json:"links"`
}

func newRegisteredBody(t *treeEntry, r resourceEntry, byDefault int64, description string) registeredBody {
	id := registeredID(t.name, r.name)
	return registeredBody{
		id, t.service, orNull(r.region), r.keystoneName, byDefault, orNull(description), linkTo("registered_limits", id),
	}
}

// defaultOf is what a project without a limit of its own is told, where that does not depend on its node: the default
// of the root, and else what the policy makes of an unset limit.
func (t *treeEntry) defaultOf(r resourceEntry) int64 {
	limit, set := t.defaults[r.name]
	if !set {
		limit = t.unset
	}
	amount, limited := amountOf(limit)
	if !limited {
		return maxTold
	}
	return min(amount, maxTold)
}

func (s *server) listRegistered(r *http.Request) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	f := filter{r.URL.Query()}
	var found []registeredBody
	for _, t := range f.selectTrees(v) {
		for _, resource := range t.resources {
			if f.allowsResource(resource) {
				found = append(found, newRegisteredBody(t, resource, t.defaultOf(resource), ""))
			}
		}
	}
	return http.StatusOK, listBody("registered_limits", found), nil
}

func findRegistered(v *view, id string) (*treeEntry, resourceEntry, error) {
	if parts, ok := splitID(id, 2); ok {
		for _, t := range v.visible {
			if r, known := t.resource(parts[1]); known && t.name == parts[0] {
				return t, r, nil
			}
		}
	}
	return nil, resourceEntry{}, newFailure(http.StatusNotFound, "Could not find registered limit for %.256s.", id)
}

func (s *server) showRegistered(r *http.Request) (int, any, error) {
	v, err := s.look(r.Context())
	if err != nil {
		return 0, nil, err
	}
	t, resource, err := findRegistered(v, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	why := s.lastReason(r.Context(), v, t.name, "", "default "+resource.name)
	return http.StatusOK, map[string]any{
		"registered_limit": newRegisteredBody(t, resource, t.defaultOf(resource), why),
	}, nil
}

type newRegistered struct {
	Service     string  `json:"service_id"`
	Region      *string `json:"region_id"`
	Resource    string  `json:"resource_name"`
	Default     *int64  `json:"default_limit"`
	Description *string `json:"description"`
}

func (s *server) createRegistered(r *http.Request) (int, any, error) {
	wanted, err := decodeBody[[]newRegistered](r, "registered_limits")
	if err != nil {
		return 0, nil, err
	}
	if len(wanted) != 1 {
		return 0, nil, badRequest("registered_limits has %d elements; allowed is 1", len(wanted))
	}
	w := wanted[0]
	limit, err := parseLimit("default_limit", w.Default)
	if err != nil {
		return 0, nil, err
	}
	var body registeredBody
	err = s.changeTree(r.Context(), w.Description, func(v *view) (string, func(*quoratev1.Tree) error, error) {
		t, resource, err := newResource(v, w)
		if err != nil {
			return "", nil, err
		}
		body = newRegisteredBody(t, resource, *w.Default, textOf(w.Description))
		return t.name, func(tree *quoratev1.Tree) error {
			tree.Resources = append(tree.Resources,
				&quoratev1.Resource{Name: resource.name, Unit: quoratev1.Unit_UNIT_COUNT})
			setDefault(tree, resource.name, limit)
			return nil
		}, nil
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, map[string]any{"registered_limits": []registeredBody{body}}, nil
}

// newResource refuses a resource that another tree of the service has.
func newResource(v *view, w newRegistered) (*treeEntry, resourceEntry, error) {
	region := textOf(w.Region)
	var chosen *treeEntry
	for _, t := range v.visible {
		if t.service != w.Service {
			continue
		}
		if _, taken := t.findResource(region, w.Resource); taken {
			return nil, resourceEntry{}, newFailure(http.StatusConflict, "Conflict occurred attempting to store "+
				"registered_limit - Duplicate entry found with resource_name %.255s.", w.Resource)
		}
		if chosen == nil || t.region == region {
			chosen = t
		}
	}
	inName := region
	switch {
	case chosen == nil:
		return nil, resourceEntry{}, notFound("service", w.Service)
	case chosen.region == region:
		inName = ""
	case region == "":
		return nil, resourceEntry{}, badRequest("'region_id' is a required property: resources of service %.128s that have "+
			"no other region are of region %s", w.Service, chosen.region)
	}
	name, err := encodeResource(inName, w.Resource)
	if err != nil {
		return nil, resourceEntry{}, badRequest("Invalid input: %v", err)
	}
	return chosen, resourceEntry{name, w.Resource, region}, nil
}

func setDefault(tree *quoratev1.Tree, resource string, limit *quoratev1.Limit) {
	if tree.GetDefaults() == nil {
		tree.Defaults = map[string]*quoratev1.Limit{}
	}
	tree.Defaults[resource] = limit
}

type registeredUpdate struct {
	Default     *int64  `json:"default_limit"`
	Description *string `json:"description"`
}

func (s *server) updateRegistered(r *http.Request) (int, any, error) {
	update, err := decodeBody[registeredUpdate](r, "registered_limit")
	if err != nil {
		return 0, nil, err
	}
	limit, err := parseLimit("default_limit", update.Default)
	if err != nil {
		return 0, nil, err
	}
	var body registeredBody
	err = s.changeTree(r.Context(), update.Description, func(v *view) (string, func(*quoratev1.Tree) error, error) {
		t, resource, err := findRegistered(v, r.PathValue("id"))
		if err != nil {
			return "", nil, err
		}
		body = newRegisteredBody(t, resource, *update.Default, textOf(update.Description))
		return t.name, func(tree *quoratev1.Tree) error {
			setDefault(tree, resource.name, limit)
			return nil
		}, nil
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"registered_limit": body}, nil
}

// deleteRegistered removes a resource from its tree, unless a node has a limit for it or holds some of it.
func (s *server) deleteRegistered(r *http.Request) (int, any, error) {
	err := s.changeTree(r.Context(), nil, func(v *view) (string, func(*quoratev1.Tree) error, error) {
		t, resource, err := findRegistered(v, r.PathValue("id"))
		if err != nil {
			return "", nil, err
		}
		return t.name, func(tree *quoratev1.Tree) error { return removeResource(tree, resource.name) }, nil
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}

func removeResource(tree *quoratev1.Tree, name string) error {
	for _, n := range tree.GetNodes() {
		if n.GetLimits()[name] != nil {
			return newFailure(http.StatusForbidden, "Unable to update or delete registered limit %s because there are "+
				"project limits associated with it.", registeredID(tree.GetName(), name))
		}
		delete(n.GetDefaults(), name)
	}
	if len(tree.GetResources()) == 1 {
		return newFailure(http.StatusForbidden, "%s: %s is the last resource of tree %s, which must have one", mayNot,
			name, tree.GetName())
	}
	delete(tree.GetDefaults(), name)
	delete(tree.GetLimits(), name)
	tree.Resources = slices.DeleteFunc(tree.GetResources(), func(r *quoratev1.Resource) bool {
		return r.GetName() == name
	})
	return nil
}

// changeTree changes a tree as it is at one revision, and again if another change came between.
func (s *server) changeTree(
	ctx context.Context, description *string, plan func(*view) (string, func(*quoratev1.Tree) error, error),
) error {
	for attempt := 1; ; attempt++ {
		made, err := s.newChange(ctx, description)
		if err != nil {
			return err
		}
		v, err := s.look(ctx)
		if err != nil {
			return err
		}
		name, edit, err := plan(v)
		if err != nil {
			return err
		}
		err = s.tryChangeTree(ctx, v, name, edit, made)
		if !hasReason(err, "REVISION_MISMATCH") || attempt == writeAttempts {
			return err
		}
	}
}

func (s *server) tryChangeTree(
	ctx context.Context, v *view, name string, edit func(*quoratev1.Tree) error, made change,
) error {
	found, err := s.trees.GetConfiguration(ctx, &adminv1.GetConfigurationRequest{Tree: name, Read: atIndex(v.index)})
	if err != nil {
		return err
	}
	if len(found.GetTrees()) != 1 {
		return notFound("service", name)
	}
	tree := found.GetTrees()[0]
	if err := edit(tree); err != nil {
		return err
	}
	if problems := compat.Bounds(found.GetTrees()); len(problems) > 0 {
		return newFailure(http.StatusForbidden, "%s: %v", mayNot, problems)
	}
	revision := found.GetRevision()
	_, err = s.trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
		Subtree: &quoratev1.SubtreeText{Tree: name, Text: tree}, ExpectedRevision: &revision, Actor: made.actor,
		Reason: made.reason, RequestId: made.requestID,
	})
	if err != nil {
		return explainRefusal(err, made)
	}
	return nil
}
