package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// draftNode checks one node of a specification and puts it into the draft. Fields of refusals are relative to the node.
func (f *forest) draftNode(t *tree, spec quota.NodeSpec, i int) *quota.Error {
	if (i == 0) != (spec.Path == "") {
		return quota.Errorf(quota.Invalid, ".path", "the first node of tree %s is its root with an empty path, and no other is; got %q", t.name, quota.Clip(spec.Path))
	}
	if err := quota.CheckPath(spec.Path, ".path", f.bounds.Depth); err != nil {
		return err
	}
	if t.byPath[spec.Path] != nil {
		return quota.Errorf(quota.Invalid, ".path", "tree %s lists node %q twice", t.name, spec.Path)
	}
	if spec.Policy != "" && policies[spec.Policy] == nil {
		return quota.Errorf(quota.Invalid, ".policy", "there is no policy %q; known are %s", quota.Clip(spec.Policy), policies.Names())
	}
	if err := f.checkLabels(spec.Labels, ".labels"); err != nil {
		return err
	}
	if err := checkQueueing(spec.Queueing, ".queueing"); err != nil {
		return err
	}
	if err := f.checkAdmins(spec.Admins, ".admins"); err != nil {
		return err
	}
	n, err := t.draftLimits(&spec)
	if err != nil {
		return err
	}
	if n.rules, err = f.draftPrincipals(t, &spec, ""); err != nil {
		return err
	}
	t.byPath[spec.Path] = n
	t.governed = t.governed || len(spec.Admins) > 0
	return nil
}

// draftLimits makes the node of a specification, whose lists of limits must be right.
func (t *tree) draftLimits(spec *quota.NodeSpec) (*node, *quota.Error) {
	if err := t.checkLimits(spec.Limits, ".limits", "limit"); err != nil {
		return nil, err
	}
	if err := t.checkLimits(spec.Defaults, ".defaults", "default"); err != nil {
		return nil, err
	}
	if err := t.checkLimits(spec.Borrow, ".borrow", "bound of borrowing"); err != nil {
		return nil, err
	}
	if err := t.checkLimits(spec.Lend, ".lend", "bound of lending"); err != nil {
		return nil, err
	}
	n := t.blank(spec)
	for _, s := range spec.Limits {
		n.limits[t.resource(s.Resource).index] = s.Limit
	}
	return n, nil
}

// blank is a node without limits, identity and usage that stands nowhere yet.
func (t *tree) blank(spec *quota.NodeSpec) *node {
	n := len(t.resources)
	amounts := make([]quota.Amount, 2*n)
	made := &node{
		address: &address{t.name, spec.Path}, tree: t, spec: spec, limits: make([]quota.Limit, n), own: amounts[:n:n], subtree: amounts[n:],
	}
	made.borrow, made.lend = made.spread(nil), made.spread(nil)
	return made
}

// checkLimits refuses a list of limits that cannot be.
func (t *tree) checkLimits(set []quota.ResourceLimit, field, what string) *quota.Error {
	for i, s := range set {
		if i > 0 && set[i-1].Resource >= s.Resource {
			return quota.Errorf(quota.Invalid, field, "resource %s is not in order, or limited twice", s.Resource)
		}
		if _, err := t.checkLimit(s, field, what, quota.Invalid); err != nil {
			return err
		}
		if s.Limit.Kind == quota.Unset {
			return quota.Errorf(quota.Invalid, field, "the %s of %s is unset; leave it out", what, s.Resource)
		}
	}
	return nil
}

// checkLimit refuses a limit that cannot be; unknown is the kind of refusal for a resource that the tree does not have.
func (t *tree) checkLimit(s quota.ResourceLimit, field, what string, unknown quota.Kind) (*resource, *quota.Error) {
	r := t.resource(s.Resource)
	switch {
	case r == nil:
		return nil, quota.Errorf(unknown, field, "tree %s registers no resource %q; it has %s", t.name, quota.Clip(s.Resource), t.resourceNames())
	case s.Limit.Kind > quota.Unlimited:
		return nil, quota.Errorf(quota.Invalid, field, "the %s of %s is neither an amount nor unlimited nor unset", what, s.Resource)
	case s.Limit.Kind != quota.Limited && s.Limit.Amount != 0:
		return nil, quota.Errorf(quota.Invalid, field, "the %s of %s is %s and still names the amount %d; it is one or the other", what, s.Resource, s.Limit, s.Limit.Amount)
	case s.Limit.Kind == quota.Limited && (s.Limit.Amount < 0 || s.Limit.Amount > quota.MaxAmount):
		return nil, quota.Errorf(quota.Invalid, field, "the %s of %s is %d; 0 to %d are allowed", what, s.Resource, s.Limit.Amount, quota.MaxAmount)
	}
	return r, nil
}

func (f *forest) checkAdmins(admins []string, field string) *quota.Error {
	if len(admins) > f.bounds.Admins {
		return quota.Errorf(quota.Invalid, field, "there are %d admins; at most %d are allowed", len(admins), f.bounds.Admins)
	}
	for i, a := range admins {
		switch {
		case a == "" || !quota.IsVisible(a, quota.MaxActor):
			return quota.Errorf(quota.Invalid, fmt.Sprintf("%s[%d]", field, i), "an admin is an actor of 1 to %d visible ASCII characters without spaces, got %q", quota.MaxActor, quota.Clip(a))
		case i > 0 && admins[i-1] >= a:
			return quota.Errorf(quota.Invalid, fmt.Sprintf("%s[%d]", field, i), "admin %s is not in order, or there twice", a)
		}
	}
	return nil
}
