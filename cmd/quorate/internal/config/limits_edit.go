package config

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

// limitEdit is what "limit set" changes at one node.
type limitEdit struct {
	holder       holderName
	limits       map[string]*quoratev1.Limit
	applications *quoratev1.Limit // unset and unlimited remove the limit
}

// needsText is true for limits that the call SetLimits does not have. They are set by applying the text of the subtree.
func (e *limitEdit) needsText() bool { return e.holder.kind != noHolder || e.applications != nil }

// maxEdits bounds how often a change is tried because the subtree has changed since it was read. Every conflict is the
// success of another change, so that conflicts end by themselves unless changes never do.
const maxEdits = 5

// setByText reads the text of the subtree, edits the limits in it, and applies it on the condition that no later
// revision has changed the subtree. The condition makes the change atomic, and the server asks for the rights that the
// difference needs, so that no call of its own is needed for these limits.
func (o *limitsSetOptions) setByText(
	ctx context.Context, quorate *client.Client, at cli.Place, edit *limitEdit,
) (changeAnswer, error) {
	for attempt := 1; ; attempt++ {
		request, note, err := o.editedText(ctx, quorate, at, edit)
		if err != nil {
			return nil, err
		}
		answer, err := quorate.Trees.ApplyTrees(ctx, request)
		problem, _ := client.ProblemOf(err)
		switch {
		case err == nil:
			if note != "" {
				o.Messagef("%s", note)
			}
			return answer, nil
		case problem.GetReason() != "REVISION_MISMATCH" || o.expected.value != nil:
			return nil, err
		case attempt == maxEdits:
			return nil, fmt.Errorf("%s has changed during each of %d attempts; try again: %w", at, maxEdits, err)
		}
	}
}

// editedText is the request that applies the edited text of the subtree, and a note for people.
func (o *limitsSetOptions) editedText(
	ctx context.Context, quorate *client.Client, at cli.Place, edit *limitEdit,
) (*quoratev1.ApplyTreesRequest, string, error) {
	response, err := quorate.Configuration.GetConfiguration(ctx,
		&adminv1.GetConfigurationRequest{Tree: at.Tree, Node: at.Node})
	if err != nil {
		return nil, "", err
	}
	if len(response.GetTrees()) != 1 {
		return nil, "", fmt.Errorf("the server answered %d trees for %s instead of one", len(response.GetTrees()), at)
	}
	text := response.GetTrees()[0]
	note, err := edit.edit(text, at, o.Units)
	if err != nil {
		return nil, "", err
	}
	request := &quoratev1.ApplyTreesRequest{
		Subtree: &quoratev1.SubtreeText{Tree: at.Tree, Node: at.Node, Text: text}, DryRun: o.dryRun,
		ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
	}
	if request.ExpectedRevision == nil {
		request.ExpectedRevision = new(response.GetRevision())
	}
	return request, note, nil
}

// nodeLimits are the fields of a node in a text. Those of the root are in the tree itself.
type nodeLimits struct {
	limits, defaults *map[string]*quoratev1.Limit
	applications     **quoratev1.Limit
	principals       *[]*quoratev1.PrincipalLimit
}

// limitsAt finds the limits of a node in the text of its subtree.
func limitsAt(text *quoratev1.Tree, at cli.Place) (nodeLimits, error) {
	if at.Node == "" {
		return nodeLimits{&text.Limits, &text.Defaults, &text.Applications, &text.Principals}, nil
	}
	for _, n := range text.GetNodes() {
		if n.GetPath() == at.Node {
			return nodeLimits{&n.Limits, &n.Defaults, &n.Applications, &n.Principals}, nil
		}
	}
	return nodeLimits{}, fmt.Errorf("the text of %s that the server answered lacks its node", at)
}

func (e *limitEdit) edit(text *quoratev1.Tree, at cli.Place, units cli.Units) (note string, err error) {
	n, err := limitsAt(text, at)
	if err != nil {
		return "", err
	}
	e.registerResources(text, units)
	if e.holder.kind != noHolder {
		*n.principals, note, err = e.editPrincipals(*n.principals)
		return note, err
	}
	if e.applications != nil {
		*n.applications = boundOrNil(e.applications)
	}
	for resource, limit := range e.limits {
		if *n.limits == nil {
			*n.limits = map[string]*quoratev1.Limit{}
		}
		if (*n.limits)[resource] = limit; limit.GetUnset() {
			delete(*n.limits, resource)
		}
	}
	return "", nil
}

// registerResources adds the resources of the new limits to the text, which has only those that it names.
func (e *limitEdit) registerResources(text *quoratev1.Tree, units cli.Units) {
	for _, name := range slices.Sorted(maps.Keys(e.limits)) {
		if !slices.ContainsFunc(text.GetResources(), func(r *quoratev1.Resource) bool { return r.GetName() == name }) {
			text.Resources = append(text.GetResources(),
				&quoratev1.Resource{Name: name, Unit: units[text.GetName()][name]})
		}
	}
}

func (e *limitEdit) editPrincipals(entries []*quoratev1.PrincipalLimit) ([]*quoratev1.PrincipalLimit, string, error) {
	own, wildcard := e.holder.find(entries), e.holder.wildcard().find(entries)
	if !own.isFound() && e.onlyRemoves() {
		return entries, "", nil // there is nothing of its own to remove
	}
	entry, note := e.startingEntry(entries, own, wildcard)
	e.setLimits(entry)
	switch isEmpty := len(entry.GetLimits()) == 0 && entry.GetApplications() == nil; {
	case !isEmpty && own.isFound():
		return e.holder.replace(entries, own, entry), "", nil
	case !isEmpty:
		return e.holder.insert(entries, entry), note, nil
	case wildcard.isFound() && wildcard != own && !e.onlyRemoves():
		return nil, "", cli.Usagef("%s would have no limit of its own, so those of %s would apply to it: "+
			"set at least one limit, or write unset instead of unlimited if that is wanted", e.holder, e.holder.wildcard())
	case !own.isFound():
		return entries, "", nil
	}
	if wildcard.isFound() && wildcard != own {
		note = fmt.Sprintf("note: %s is not named here any more, so the limits of %s apply to it", e.holder,
			e.holder.wildcard())
	}
	return e.holder.replace(entries, own, nil), note, nil
}

// startingEntry is what applies to the user or group before the change: its own entry, or a copy of that of the
// wildcard, which it leaves when it gets one of its own. Otherwise a change of one limit would remove all others.
func (e *limitEdit) startingEntry(
	entries []*quoratev1.PrincipalLimit, own, wildcard namePosition,
) (entry *quoratev1.PrincipalLimit, note string) {
	switch {
	case own.isFound():
		return proto.CloneOf(entries[own.entry]), ""
	case !wildcard.isFound():
		return &quoratev1.PrincipalLimit{}, ""
	}
	entry = proto.CloneOf(entries[wildcard.entry])
	entry.Description = ""
	isKept := entry.GetApplications() != nil && e.applications == nil
	for resource := range entry.GetLimits() {
		isKept = isKept || e.limits[resource] == nil
	}
	if isKept {
		note = fmt.Sprintf("note: %s is named here now and starts with the other limits of %s", e.holder,
			e.holder.wildcard())
	}
	return entry, note
}

// setLimits changes an entry. A limit that is absent is none.
func (e *limitEdit) setLimits(own *quoratev1.PrincipalLimit) {
	if e.applications != nil {
		own.Applications = boundOrNil(e.applications)
	}
	for resource, limit := range e.limits {
		if boundOrNil(limit) == nil {
			delete(own.GetLimits(), resource)
			continue
		}
		if own.Limits == nil {
			own.Limits = map[string]*quoratev1.Limit{}
		}
		own.Limits[resource] = limit
	}
}

// onlyRemoves is true if every limit is removed, and none is unlimited on purpose.
func (e *limitEdit) onlyRemoves() bool {
	for _, limit := range e.limits {
		if !limit.GetUnset() {
			return false
		}
	}
	return boundOrNil(e.applications) == nil
}

// boundOrNil is nil for every limit that is not an amount.
func boundOrNil(limit *quoratev1.Limit) *quoratev1.Limit {
	if _, isLimited := manifest.Bound(limit); !isLimited {
		return nil
	}
	return limit
}
