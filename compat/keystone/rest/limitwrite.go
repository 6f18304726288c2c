package rest

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

const (
	// maxCreated bounds the limits of one call; SetLimits allows as many.
	maxCreated = 64
	// maxReason bounds a description, which is the reason of the change.
	maxReason = 1024
	// writeAttempts is how often a change is tried that needs the configuration to be what was read.
	writeAttempts = 5
)

type newLimit struct {
	Project     *string `json:"project_id"`
	Domain      *string `json:"domain_id"`
	Service     string  `json:"service_id"`
	Region      *string `json:"region_id"`
	Resource    string  `json:"resource_name"`
	Limit       *int64  `json:"resource_limit"`
	Description *string `json:"description"`
}

type change struct{ actor, reason, requestID string }

// newChange checks the description. The id lets the server that lost an answer repeat the change.
func (s *server) newChange(ctx context.Context, description *string) (change, error) {
	reason := textOf(description)
	if len(reason) > maxReason {
		return change{}, badRequest("Invalid input for field 'description': it has %d bytes; up to %d are kept as the "+
			"reason of the change", len(reason), maxReason)
	}
	actor := s.options.Caller(ctx)
	if actor == "" {
		actor = "keystone"
	}
	return change{actor, reason, "keystone-" + rand.Text()}, nil
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func parseLimit(field string, value *int64) (*quoratev1.Limit, error) {
	switch {
	case value == nil:
		return nil, badRequest("'%s' is a required property", field)
	case *value < unlimited || *value > maxTold:
		return nil, badRequest("Invalid input for field '%s': %d is not in the range %d to %d", field, *value, unlimited,
			maxTold)
	case *value == unlimited:
		return compat.NoLimit(), nil
	}
	return compat.AtMost(*value), nil
}

// createLimits sets limits that are not set: of one project and service, in one step.
func (s *server) createLimits(r *http.Request) (int, any, error) {
	wanted, err := decodeBody[[]newLimit](r, "limits")
	if err != nil {
		return 0, nil, err
	}
	if len(wanted) == 0 || len(wanted) > maxCreated {
		return 0, nil, badRequest("limits has %d elements; allowed are 1 to %d", len(wanted), maxCreated)
	}
	made, err := s.newChange(r.Context(), wanted[0].Description)
	if err != nil {
		return 0, nil, err
	}
	for attempt := 1; ; attempt++ {
		bodies, err := s.tryCreate(r.Context(), wanted, made)
		if err == nil {
			return http.StatusCreated, map[string]any{"limits": bodies}, nil
		}
		if !hasReason(err, "REVISION_MISMATCH") || attempt == writeAttempts {
			return 0, nil, err
		}
		made.requestID = "keystone-" + rand.Text()
	}
}

func (s *server) tryCreate(ctx context.Context, wanted []newLimit, made change) ([]limitBody, error) {
	v, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	request := &quoratev1.SetLimitsRequest{
		Limits: map[string]*quoratev1.Limit{}, ExpectedRevision: &v.revision, Actor: made.actor, Reason: made.reason,
		RequestId: made.requestID,
	}
	var bodies []limitBody
	for i, w := range wanted {
		limit, err := parseLimit("resource_limit", w.Limit)
		if err != nil {
			return nil, err
		}
		place, err := s.findNewPlace(ctx, v, w)
		if err != nil {
			return nil, err
		}
		if i > 0 && (place.tree.name != request.GetTree() || place.node.path != request.GetNode() ||
			textOf(w.Description) != made.reason) {
			return nil, badRequest("the limits of one call must have the same project, service and description")
		}
		request.Tree, request.Node = place.tree.name, place.node.path
		if request.GetLimits()[place.resource.name] != nil {
			return nil, conflict(w)
		}
		request.Limits[place.resource.name] = limit
		bodies = append(bodies, newLimitBody(place.tree, place.node, place.resource, *w.Limit, made.reason))
	}
	if _, err := s.trees.SetLimits(ctx, request); err != nil {
		return nil, explainRefusal(err, made)
	}
	return bodies, nil
}

func conflict(w newLimit) error {
	return newFailure(http.StatusConflict, "Conflict occurred attempting to store limit - Duplicate entry found with "+
		"resource_name %.255s and project_id %.128s.", w.Resource, textOf(w.Project))
}

// findNewPlace checks that no limit is set there.
func (s *server) findNewPlace(ctx context.Context, v *view, w newLimit) (limitPlace, error) {
	switch {
	case w.Service == "":
		return limitPlace{}, badRequest("'service_id' is a required property")
	case w.Resource == "":
		return limitPlace{}, badRequest("'resource_name' is a required property")
	case textOf(w.Domain) != "":
		return limitPlace{}, badRequest("domain_id cannot be given: each node is a project, domains too; give project_id")
	case textOf(w.Project) == "":
		return limitPlace{}, badRequest("'project_id' is a required property")
	}
	for _, t := range v.visible {
		resource, registered := t.findResource(textOf(w.Region), w.Resource)
		if t.service != w.Service || !registered {
			continue
		}
		n, err := t.findProject(*w.Project)
		if err != nil {
			return limitPlace{}, err
		}
		if n == nil {
			return limitPlace{}, notFound("project", *w.Project)
		}
		limit, err := s.readLimit(ctx, v, t, n, resource)
		if err == nil && limit != nil {
			err = conflict(w)
		}
		return limitPlace{t, n, resource, limit}, err
	}
	return limitPlace{}, newFailure(http.StatusForbidden,
		"Unable to create a limit that has no corresponding registered limit.")
}

type limitUpdate struct {
	Limit       *int64  `json:"resource_limit"`
	Description *string `json:"description"`
}

func (s *server) updateLimit(r *http.Request) (int, any, error) {
	update, err := decodeBody[limitUpdate](r, "limit")
	if err != nil {
		return 0, nil, err
	}
	if update.Limit == nil {
		return 0, nil, badRequest("'resource_limit' is a required property: a description is the reason of a change, and " +
			"cannot change alone")
	}
	limit, err := parseLimit("resource_limit", update.Limit)
	if err != nil {
		return 0, nil, err
	}
	place, made, err := s.writeLimit(r, limit, update.Description)
	if err != nil {
		return 0, nil, err
	}
	body := newLimitBody(place.tree, place.node, place.resource, *update.Limit, made.reason)
	return http.StatusOK, map[string]any{"limit": body}, nil
}

func (s *server) deleteLimit(r *http.Request) (int, any, error) {
	unset := &quoratev1.Limit{Value: &quoratev1.Limit_Unset{Unset: true}}
	if _, _, err := s.writeLimit(r, unset, nil); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}

func (s *server) writeLimit(r *http.Request, limit *quoratev1.Limit, description *string) (limitPlace, change, error) {
	ctx := r.Context()
	made, err := s.newChange(ctx, description)
	if err != nil {
		return limitPlace{}, change{}, err
	}
	v, err := s.look(ctx)
	if err != nil {
		return limitPlace{}, change{}, err
	}
	place, err := s.findLimit(ctx, v, r.PathValue("id"))
	if err != nil {
		return limitPlace{}, change{}, err
	}
	_, err = s.trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
		Tree: place.tree.name, Node: place.node.path, Actor: made.actor, Reason: made.reason, RequestId: made.requestID,
		Limits: map[string]*quoratev1.Limit{place.resource.name: limit},
	})
	if err != nil {
		return limitPlace{}, change{}, explainRefusal(err, made)
	}
	return place, made, nil
}

// explainRefusal adds how a reason is given, if a change was refused for want of one.
func explainRefusal(err error, made change) error {
	if connect.CodeOf(err) == connect.CodeFailedPrecondition || connect.CodeOf(err) == connect.CodeInvalidArgument {
		if f := asFailure(err); made.reason == "" && strings.Contains(f.Message, "reason") {
			return newFailure(f.Code, "%s (the description is the reason; a deletion has none)", f.Message)
		}
	}
	return err
}
