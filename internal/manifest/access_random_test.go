package manifest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// TestEveryAccessSectionIsReadBack: what a book accepts is written so that it is read back, and written so again.
func TestEveryAccessSectionIsReadBack(t *testing.T) { rapid.Check(t, checkAccessRoundTrip) }

func FuzzAccess(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkAccessRoundTrip)) }

func checkAccessRoundTrip(t *rapid.T) {
	section := sections().Draw(t, "section")
	roles, err := section.Check()
	drawn := &Manifest{Access: sectionMessage(section)}
	if err == nil {
		drawn.Trees = []*quoratev1.Tree{{
			Name: "t", Resources: []*quoratev1.Resource{{Name: "cores", Unit: count}},
			Bindings: bindingLists(access.NodeScope, roles).Draw(t, "bindings"),
		}}
	}
	text, failed := Format(drawn)
	if (failed == nil) != (err == nil) {
		t.Fatalf("Format says %v, but the section is %v", failed, err)
	}
	if failed != nil {
		return
	}
	got, failed := Parse("f", text)
	if failed != nil {
		t.Fatal(failed)
	}
	want := sectionMessage(section.Canonical())
	if diff := cmp.Diff(want, got.Access, protocmp.Transform()); diff != "" {
		t.Fatalf("%s\n(-written +read):\n%s", text, diff)
	}
	assertSameManifest(t, got)
}

func assertSameManifest(t failer, m *Manifest) {
	t.Helper()
	first, err := Format(m)
	if err != nil {
		t.Fatalf("Format: %v", err)
	}
	again, err := Parse("again", first)
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, first)
	}
	if diff := cmp.Diff(m.Access, again.Access, protocmp.Transform()); diff != "" {
		t.Fatalf("the access section (-first +second):\n%s", diff)
	}
	if second, err := Format(again); err != nil || string(second) != string(first) {
		t.Fatalf("written again (%v):\n%s", err, cmp.Diff(string(first), string(second)))
	}
}

// canonicalMessages are bindings in the order of Parse.
func canonicalMessages(messages []*quoratev1.Binding) []*quoratev1.Binding {
	bindings, err := bindingsOf(messages)
	if err != nil {
		panic(err)
	}
	return bindingMessages(access.CanonicalBindings(bindings))
}

// bindingLists draws lists of valid bindings in any order, some of them given twice.
func bindingLists(scope access.Scope, roles access.Roles) *rapid.Generator[[]*quoratev1.Binding] {
	return rapid.Custom(func(t *rapid.T) []*quoratev1.Binding {
		list := rapid.SliceOfN(bindings(roles), 0, 4).Filter(func(list []access.Binding) bool {
			return access.CheckBindings(list, roles, scope) == nil
		}).Draw(t, "bindings")
		return bindingMessages(list)
	})
}

func bindings(roles access.Roles) *rapid.Generator[access.Binding] {
	return rapid.Custom(func(t *rapid.T) access.Binding {
		known := slices.Concat(access.BuiltinRoles(), roles.Custom())
		role := rapid.SampledFrom(known).Draw(t, "role")
		b := access.Binding{
			Role:  role.Name,
			To:    rapid.SliceOfN(subjects(), 1, 3).Draw(t, "to"),
			Until: rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 253402300799999)).Draw(t, "until"),
		}
		if role.Verbs.Has(access.Hold) && role.Name != access.RoleRoot {
			b.MaxPriority = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(t, "max-priority")
			b.Unpreemptable = rapid.Bool().Draw(t, "unpreemptable")
		}
		if role.Verbs.Has(access.HoldAs) && role.Name != access.RoleRoot {
			b.HoldAs.Any = rapid.Bool().Draw(t, "any")
			if !b.HoldAs.Any {
				b.HoldAs.Names = rapid.SliceOfN(subjectNames(), 0, 3).Draw(t, "hold-as")
			}
		}
		return b
	})
}

func subjectNames() *rapid.Generator[string] { return rapid.StringMatching(`[!-)+-~]{1,30}|any`) }

func subjects() *rapid.Generator[access.Subject] {
	return rapid.Custom(func(t *rapid.T) access.Subject {
		kind := rapid.SampledFrom([]access.SubjectKind{access.User, access.Group, access.AccountSubject}).Draw(t, "kind")
		short := rapid.StringMatching(nodeName().String()).Draw(t, "name")
		if kind != access.AccountSubject {
			short += "/" + subjectNames().Draw(t, "second")
		}
		return access.Subject{Kind: kind, Name: short}
	})
}

// sections draws access sections, a few of which a book refuses.
func sections() *rapid.Generator[access.Section] {
	return rapid.Custom(func(t *rapid.T) access.Section {
		s := access.Section{
			Roles: rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) access.Role {
				return access.Role{
					Name:        rapid.StringMatching(nodeName().String()).Draw(t, "name"),
					Description: rapid.StringMatching(`|[ -~]{1,40}`).Draw(t, "description"),
					Verbs:       access.Verbs(rapid.Uint64Range(0, uint64(access.AllVerbs)).Draw(t, "verbs")),
				}
			}), 0, 2, func(r access.Role) string { return r.Name }).Draw(t, "roles"),
			Issuers: rapid.SliceOfNDistinct(issuers(), 0, 2, func(i access.Issuer) string { return i.Name }).
				Draw(t, "issuers"),
			Certificates: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access.CertificateRule {
				c := access.CertificateRule{User: rapid.SampledFrom([]string{"a", "b", "no"}).Draw(t, "user")}
				name := rapid.SampledFrom([]string{"", "x", "y.example.org"}).Draw(t, "name")
				if rapid.Bool().Draw(t, "dns") {
					c.DNS = name
				} else {
					c.Name = name
				}
				return c
			}), 0, 2).Draw(t, "certificates"),
			TokenLife: rapid.Int64Range(0, access.MaxTokenLife).Draw(t, "token-life"),
		}
		if roles, err := access.NewRoles(s.Roles); err == nil {
			s.Bindings = rapid.SliceOfN(bindings(roles), 0, 2).Draw(t, "bindings")
		}
		return s
	})
}

func issuers() *rapid.Generator[access.Issuer] {
	claims := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) access.ClaimRule {
		visible := rapid.StringMatching(`[!-)+-~]{1,20}`)
		return access.ClaimRule{
			Claim: visible.Draw(t, "claim"), Values: rapid.SliceOfN(visible, 1, 3).Draw(t, "values"),
		}
	}), 1, 3, func(r access.ClaimRule) string { return r.Claim })
	return rapid.Custom(func(t *rapid.T) access.Issuer {
		i := access.Issuer{
			Name:       rapid.StringMatching(nodeName().String()).Draw(t, "name"),
			URL:        rapid.StringMatching(`https://[a-z]{1,3}(/[a-z:'"#]{0,2})?`).Draw(t, "url"),
			Audience:   rapid.StringMatching(`[!-~]{1,5}`).Draw(t, "audience"),
			User:       rapid.StringMatching(`[!-~]{1,5}`).Draw(t, "user"),
			Require:    claims.Draw(t, "require"),
			Algorithms: rapid.SliceOfDistinct(rapid.SampledFrom(access.SignatureAlgorithms()), rapid.ID).Draw(t, "algorithms"),
			MaxAge:     rapid.Int64Range(0, access.LongestMaxAge).Draw(t, "max-age"),
		}
		if rapid.Bool().Draw(t, "keys") {
			i.KeysFile = rapid.StringMatching(`/[!-~]{1,9}`).Draw(t, "keys-file")
		}
		for range rapid.IntRange(0, 2).Draw(t, "groups") {
			i.Groups = append(i.Groups, access.GroupRule{
				Group: subjectNames().Draw(t, "group"), Match: claims.Draw(t, "when"),
			})
		}
		return i
	})
}
