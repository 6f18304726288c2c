package access_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

// TestBuiltinRoles repeats the table of DESIGN.md. A role must not change without a new feature level.
func TestBuiltinRoles(t *testing.T) {
	want := map[string]string{
		"viewer":           "usage.read config.read",
		"holder":           "usage.read config.read hold limits.request",
		"broker":           "usage.read config.read hold hold.as limits.request",
		"cleaner":          "usage.read config.read items.clean items.reset",
		"operator":         "usage.read config.read holders.read data.read hold hold.as hold.force hold.operate items.clean items.reset limits.request",
		"limit-admin":      "usage.read config.read holders.read limits.request limits.set",
		"node-admin":       "usage.read config.read holders.read limits.request limits.set nodes.manage policy.set nodes.cordon bindings.grant",
		"auditor":          "usage.read config.read history.read access.read audit.read",
		"cluster-operator": "cluster.read cluster.operate cluster.debug metrics.read history.read snapshot.save",
		"security-admin":   "bindings.grant history.read access.read access.manage audit.read",
		"root":             access.AllVerbs.String(),
	}
	for _, r := range access.BuiltinRoles() {
		if r.Verbs.String() != want[r.Name] {
			t.Errorf("%s has %s, want %s", r.Name, r.Verbs, want[r.Name])
		}
		custom := access.Role{Name: "copy", Verbs: r.Verbs}
		if _, err := access.NewRoles([]access.Role{custom}); err != nil {
			t.Errorf("the verbs of %s contradict each other: %v", r.Name, err)
		}
		if found, ok := (access.Roles{}).Find(r.Name); !ok || found.Verbs != r.Verbs {
			t.Errorf("%s is not found", r.Name)
		}
	}
	if n := len(access.BuiltinRoles()); n != len(want) {
		t.Errorf("there are %d roles, want %d", n, len(want))
	}
}

func TestCustomRoles(t *testing.T) {
	hold := access.SetOf(access.Hold)
	roles, err := access.NewRoles([]access.Role{{Name: "b", Verbs: hold}, {Name: "a", Verbs: hold, Description: "text"}})
	if err != nil || roles.Custom()[0].Name != "a" {
		t.Fatalf("roles %v, %v", roles.Custom(), err)
	}
	if r, found := roles.Find("a"); !found || r.Description != "text" {
		t.Errorf("role a is %v, %v", r, found)
	}
	if _, found := roles.Find("c"); found {
		t.Error("role c was found")
	}
	tests := map[string]struct {
		role        access.Role
		field, text string
	}{
		"empty name":     {access.Role{Verbs: hold}, "roles[0].name", "not a name of a role"},
		"blank in name":  {access.Role{Name: "a b", Verbs: hold}, "roles[0].name", "not a name of a role"},
		"built-in name":  {access.Role{Name: "root", Verbs: hold}, "roles[0].name", "root is a built-in role"},
		"no verbs":       {access.Role{Name: "a"}, "roles[0].verbs", "has no verbs"},
		"unknown bits":   {access.Role{Name: "a", Verbs: 1 << 50}, "roles[0].verbs", "are not verbs"},
		"contradiction":  {access.Role{Name: "a", Verbs: access.SetOf(access.HoldForce)}, "roles[0].verbs", "hold.force without hold"},
		"data alone":     {access.Role{Name: "a", Verbs: access.SetOf(access.DataRead)}, "roles[0].verbs", "data.read without holders.read"},
		"manage alone":   {access.Role{Name: "a", Verbs: access.SetOf(access.AccessManage)}, "roles[0].verbs", "access.manage without access.read"},
		"long text":      {access.Role{Name: "a", Verbs: hold, Description: strings.Repeat("x", 1025)}, "roles[0].description", "1025 bytes"},
		"escape in text": {access.Role{Name: "a", Verbs: hold, Description: "\x1b[2J"}, "roles[0].description", "control character"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := access.NewRoles([]access.Role{test.role})
			refused(t, err, access.Invalid, test.field, test.text)
		})
	}
	_, err = access.NewRoles([]access.Role{{Name: "a", Verbs: hold}, {Name: "a", Verbs: hold}})
	refused(t, err, access.Invalid, "roles", "role a is given twice")
	_, err = access.NewRoles(make([]access.Role, access.MaxRoles+1))
	refused(t, err, access.Full, "roles", "at most 64")
}
