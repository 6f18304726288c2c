package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

func (d *testServer) treeBindings(t *testing.T) {
	t.Helper()
	spec := quota.TreeSpec{Name: "guarded", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}}
	bind := func(role, account string) []access.Binding {
		return []access.Binding{{Role: role, To: []access.Subject{{Kind: access.AccountSubject, Name: account}}}}
	}
	spec.Nodes = []quota.NodeSpec{
		{Policy: "strict", Bindings: bind("viewer", "ops")},
		{Path: "physics", Bindings: bind("node-admin", "plain")},
		{Path: "physics/higgs"},
	}
	outcomes, _ := d.node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	if outcomes[0].Refused != nil {
		t.Fatal(outcomes[0].Refused)
	}
}

func TestWhoAmIAndCanI(t *testing.T) {
	d := accessNode(t, access.Guarded)
	d.treeBindings(t)
	me, err := d.accessAs(byToken(operatorToken)).WhoAmI(t.Context(), &quoratev1.WhoAmIRequest{})
	if err != nil || me.GetUser() != "account/ops" || me.GetKind() != "account" || me.GetEndsAt() == nil ||
		me.GetMode() != quoratev1.AccessMode_ACCESS_MODE_GUARDED ||
		!slices.Contains(me.GetClusterVerbs(), "cluster.operate") ||
		slices.Contains(me.GetClusterVerbs(), "access.read") || me.GetRead().GetServedBy() != "n1" {
		t.Errorf("ops is %v, %v", me, err)
	}
	me, err = d.accessAs("").WhoAmI(t.Context(), &quoratev1.WhoAmIRequest{})
	if err != nil || me.GetKind() != "anonymous" || me.GetUser() != "" || len(me.GetClusterVerbs()) > 0 {
		t.Errorf("anonymous is %v, %v", me, err)
	}
	_, err = d.accessAs(byToken(access.TokenID{9})).WhoAmI(t.Context(), &quoratev1.WhoAmIRequest{})
	wantRefused(t, err, connect.CodeUnauthenticated, "", "is not known")

	ask := func(verb, place string) *quoratev1.AccessQuestion {
		tree, node, _ := strings.Cut(place, ":")
		return &quoratev1.AccessQuestion{Verb: verb, Tree: tree, Node: node}
	}
	questions := []*quoratev1.AccessQuestion{
		ask("limits.set", "guarded:physics/higgs"), ask("limits.set", "guarded:"), ask("usage.read", "guarded:physics"),
		ask("usage.read", "guarded:nowhere"), ask("usage.read", "nowhere:"), ask("cluster.read", ""),
		ask("cluster.read", ":physics"),
		{Verb: "cluster.read"},
	}
	for name, c := range map[string]struct {
		caller as
		want   []bool
	}{
		"plain":     {byToken(plainToken), []bool{true, false, true, false, false, false, false, false}},
		"ops":       {byToken(operatorToken), []bool{false, false, true, false, false, true, false, true}},
		"admin":     {admin, []bool{true, true, true, false, false, true, false, true}},
		"anonymous": {"", make([]bool, 8)},
	} {
		answer, err := d.accessAs(c.caller).CanI(t.Context(), &quoratev1.CanIRequest{Questions: questions})
		if err != nil || !slices.Equal(answer.GetAllowed(), c.want) {
			t.Errorf("%s can %v, %v, want %v", name, answer.GetAllowed(), err, c.want)
		}
	}
	_, err = d.accessAs("").CanI(t.Context(), &quoratev1.CanIRequest{Questions: append(questions[:1:1], ask("fly", ""))})
	wantRefused(t, err, connect.CodeInvalidArgument, "questions[1].verb", "not a verb")
}

func TestWhoCan(t *testing.T) {
	d := accessNode(t, access.Guarded)
	d.treeBindings(t)
	whoCan := func(a as, verb, place string) (string, error) {
		tree, node, _ := strings.Cut(place, ":")
		answer, err := d.accessAs(a).WhoCan(t.Context(),
			&adminv1.WhoCanRequest{Verb: verb, Tree: tree, Node: node})
		var list []string
		for _, b := range answer.GetBindings() {
			list = append(list, fmt.Sprintf("%s:%s %s", b.GetTree(), b.GetNode(),
				strings.Join(manifest.SubjectTexts(b.GetBinding().GetSubjects()), ",")))
		}
		return strings.Join(list, "; "), err
	}
	plain := byToken(plainToken)
	for _, c := range []struct {
		caller            as
		verb, place, want string
	}{
		{
			admin, "usage.read", "guarded:physics/higgs",
			"guarded:physics account plain; guarded: account ops; : account admin",
		},
		{admin, "limits.set", "guarded:physics", "guarded:physics account plain; : account admin"},
		{admin, "limits.set", "guarded:", ": account admin"},
		{admin, "cluster.operate", "", ": account ops; : account admin"},
		{plain, "usage.read", "guarded:physics/higgs", "guarded:physics account plain; guarded: account ops"},
	} {
		if got, err := whoCan(c.caller, c.verb, c.place); err != nil || got != c.want {
			t.Errorf("%s at %q: %s, %v, want %s", c.verb, c.place, got, err, c.want)
		}
	}
	_, err := whoCan(admin, "hold", "guarded:nowhere")
	wantRefused(t, err, connect.CodeNotFound, "node", "no node")
	// Who may not see has the same answer for places that exist and that do not.
	_, exists := whoCan(plain, "hold", "guarded:")
	wantRefused(t, exists, connect.CodePermissionDenied, "", "bindings.grant")
	if _, none := whoCan(plain, "hold", "guarded:nowhere"); none == nil || none.Error() != exists.Error() {
		t.Errorf("a place that exists is refused by %v, another by %v", exists, none)
	}
	_, err = whoCan("", "hold", "guarded:physics")
	wantRefused(t, err, connect.CodeUnauthenticated, "", "access.read")
	_, err = whoCan(plain, "hold", "")
	wantRefused(t, err, connect.CodePermissionDenied, "", "access.read on the cluster")
}
