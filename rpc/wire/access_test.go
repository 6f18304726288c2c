package wire

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/access/accesstest"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
)

// TestBindingsRoundTrip: what was read and is shown is read again as the same, in any order.
func TestBindingsRoundTrip(t *testing.T) {
	roles, refused := access.NewRoles(accesstest.CustomRoles())
	if refused != nil {
		t.Fatal(refused)
	}
	verify.Check(t, func(t *rapid.T) {
		want := access.CanonicalBindings(accesstest.Bindings(t, 5, roles, access.NodeScope))
		shown := rapid.Permutation(FromBindings(want)).Draw(t, "order")
		encoded, err := proto.Marshal(&quoratev1.AccessSection{Bindings: shown})
		if err != nil {
			t.Fatal(err)
		}
		var sent quoratev1.AccessSection
		if err := proto.Unmarshal(encoded, &sent); err != nil {
			t.Fatal(err)
		}
		got, err := ToBindings("bindings", sent.GetBindings())
		if err != nil || !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
	})
}

// drawSection is a section that a book takes.
func drawSection(t *rapid.T) access.Section {
	roles, refused := access.NewRoles(accesstest.CustomRoles())
	if refused != nil {
		t.Fatal(refused)
	}
	s := access.Section{
		Roles: accesstest.CustomRoles(), Bindings: accesstest.Bindings(t, 5, roles, access.ClusterScope),
		TokenLife: rapid.Int64Range(0, access.MaxTokenLife).Draw(t, "life"),
	}
	claims := func() []access.ClaimRule {
		return []access.ClaimRule{{
			Claim: "repo", Values: rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3"}), 1, 4).Draw(t, "values"),
		}}
	}
	for _, name := range []string{"github", "k8s"}[:rapid.IntRange(0, 2).Draw(t, "issuers")] {
		s.Issuers = append(s.Issuers, access.Issuer{
			Name: name, URL: "https://" + name, Audience: "quorate", User: "sub", Require: claims(),
			Groups:     []access.GroupRule{{Group: "deploy", Match: claims()}},
			Algorithms: rapid.SliceOf(rapid.SampledFrom(access.SignatureAlgorithms())).Draw(t, "algorithms"),
			MaxAge:     rapid.Int64Range(0, access.LongestMaxAge).Draw(t, "age"),
		})
	}
	if rapid.Bool().Draw(t, "certificates") {
		s.Certificates = []access.CertificateRule{{Name: "zuul", User: "zuul"}, {DNS: "ci.example.org", User: "ci"}}
	}
	return s
}

func TestSectionRoundTrip(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		want := drawSection(t).Canonical()
		got, err := ToSection("access", FromSection(want))
		if err != nil {
			t.Fatal(err)
		}
		if before, after := bookOf(t, want), bookOf(t, got); !reflect.DeepEqual(before, after) {
			t.Fatalf("got %+v\nwant %+v", after, before)
		}
	})
	got, err := ToSection("access", FromSection(access.Section{}))
	if err != nil || !reflect.DeepEqual(got, access.Section{}) {
		t.Errorf("an empty section is %+v, %v", got, err)
	}
}

func bookOf(t *rapid.T, s access.Section) access.Section {
	book, err := access.Load(access.State{Section: s})
	if err != nil {
		t.Fatal(err)
	}
	return book.Section()
}

// TestAccessFields checks that a refusal names the field as the caller wrote it.
func TestAccessFields(t *testing.T) {
	good := &quoratev1.Binding{Role: "viewer", Subjects: subjectsOf("user github/1")}
	bindings := func(b *quoratev1.Binding) func() error {
		return func() error {
			_, err := ToBindings("trees[0].nodes[3].bindings", []*quoratev1.Binding{good, b})
			return err
		}
	}
	section := func(s *quoratev1.AccessSection) func() error {
		return func() error {
			_, err := ToSection("access", s)
			return err
		}
	}
	const second = "trees[0].nodes[3].bindings[1]"
	issuer := &quoratev1.Issuer{
		Name: "b", Url: "https://b", Audience: "q", User: "sub",
		ClaimRules: []*quoratev1.ClaimRule{{Claim: "x", Values: []string{"1"}}},
	}
	other := proto.CloneOf(issuer)
	other.Name, other.Url, other.KeysUrl = "a", "https://a", "ftp://a"
	for name, c := range map[string]struct {
		call        func() error
		field, says string
	}{
		"no subject": {bindings(&quoratev1.Binding{Role: "viewer"}), second + ".subjects", "0 subjects"},
		"unknown subject": {
			bindings(&quoratev1.Binding{Role: "viewer", Subjects: subjectsOf("everyone", "me")}),
			second + ".subjects[1]", "not a kind of subject",
		},
		"role of the cluster": {
			bindings(&quoratev1.Binding{Role: "cluster-operator", Subjects: subjectsOf("everyone")}), second + ".role",
			"no verb that is asked at a node",
		},
		"priority of a viewer": {
			bindings(&quoratev1.Binding{Role: "viewer", Subjects: subjectsOf("everyone"), MaxPriority: 1}),
			second + ".max_priority", "has no hold",
		},
		"any and names": {
			bindings(&quoratev1.Binding{
				Role: "broker", Subjects: subjectsOf("everyone"), HoldAs: &quoratev1.HoldAs{Any: true, Names: []string{"x"}},
			}),
			second + ".hold_as", "has 1 names",
		},
		"end before 1970": {
			bindings(&quoratev1.Binding{
				Role: "viewer", Subjects: subjectsOf("everyone"), EndsAt: timestamppb.New(time.Unix(-1, 0)),
			}),
			second + ".ends_at", "not a time after 1970",
		},
		"end beyond all years": {
			bindings(&quoratev1.Binding{
				Role: "viewer", Subjects: subjectsOf("everyone"), EndsAt: &timestamppb.Timestamp{Seconds: math.MaxInt64},
			}),
			second + ".ends_at", "not a time after 1970",
		},
		"too many": {
			func() error {
				_, err := ToBindings("bindings", make([]*quoratev1.Binding, access.MaxBindings+1))
				return err
			},
			"bindings", "at most 100",
		},
		"too many subjects": {
			bindings(&quoratev1.Binding{Role: "viewer", Subjects: make([]*quoratev1.Subject, access.MaxSubjects+1)}),
			second + ".subjects",
			"101 subjects",
		},
		"verb": {
			section(&quoratev1.AccessSection{Roles: []*quoratev1.AccessRole{{Name: "r", Verbs: []string{"hold", "hodl"}}}}),
			"access.roles[0].verbs[1]", `"hodl" is not a verb`,
		},
		"issuer behind another": {
			section(&quoratev1.AccessSection{Issuers: []*quoratev1.Issuer{issuer, other}}),
			"access.issuers[1].keys_url", "not a URL of keys",
		},
		"role that does not exist": {
			section(&quoratev1.AccessSection{
				Bindings: []*quoratev1.Binding{good, {Role: "a", Subjects: subjectsOf("everyone")}},
			}),
			"access.bindings[1].role", `"a" is not a role`,
		},
		"life of tokens": {
			section(&quoratev1.AccessSection{TokenLifeMs: access.MaxTokenLife + 1}), "access.token_life_ms", "400 days",
		},
		"age": {
			section(&quoratev1.AccessSection{Issuers: []*quoratev1.Issuer{{MaxAgeMs: access.LongestMaxAge + 1}}}),
			"access.issuers[0].max_age_ms", "is not allowed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			var refused *quota.Error
			if !errors.As(err, &refused) || refused.Field != c.field || !strings.Contains(refused.Text, c.says) {
				t.Errorf("got %v, want field %q and %q", err, c.field, c.says)
			}
		})
	}
}

func TestAccountsTokensAndRefusalsRoundTrip(t *testing.T) {
	a := access.Account{Name: "ci", Description: "builds", Groups: []string{"a", "b"}, Disabled: true}
	shown := FromAccount(a)
	shown.Groups = []string{"b", "a", "b"}
	if got := ToAccount(shown); !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v, want %+v", got, a)
	}
	now := time.UnixMilli(1_800_000_000_000)
	soon := now.UnixMilli() + 1
	refused := []access.Refused{
		{RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "github/1"}, IssuedBefore: 5, Until: soon},
		{
			RefusedKey: access.RefusedKey{Kind: access.RefusedJTI, Issuer: "k8s", Name: "j"},
			Until:      now.UnixMilli() + access.MaxRefusalSpan, Reason: "leaked",
		},
		{RefusedKey: access.RefusedKey{Kind: access.RefusedToken, Name: access.TokenID{1}.String()}, Until: soon},
		{RefusedKey: access.RefusedKey{Kind: access.RefusedCertificate, Name: "00"}, Until: soon},
	}
	for _, want := range refused {
		if got, err := ToRefused("refused", FromRefused(want), now); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for _, until := range []int64{0, now.UnixMilli(), now.UnixMilli() + access.MaxRefusalSpan + 1} {
		bad := refused[0]
		bad.Until = until
		var invalid *quota.Error
		_, err := ToRefused("refused", FromRefused(bad), now)
		if !errors.As(err, &invalid) || invalid.Field != "refused.ends_at" {
			t.Errorf("until %d: %v", until, err)
		}
	}
	token := access.Token{
		ID: access.TokenID{1, 2}, Account: "ci", Hash: [32]byte{7}, Created: 1, Ends: 2, Description: "d",
		Ceiling: access.SetOf(access.UsageRead, access.Hold), Revoked: 9,
	}
	got := FromToken(token)
	want := &adminv1.Token{
		Id: token.ID.String(), Account: "ci", Description: "d", Verbs: []string{"usage.read", "hold"},
		CreatedAt: timestamppb.New(time.UnixMilli(1)), EndsAt: timestamppb.New(time.UnixMilli(2)), Revoked: true,
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if ceiling, err := ToCeiling(got.GetVerbs()); err != nil || ceiling != token.Ceiling {
		t.Errorf("the ceiling is %v, %v", ceiling, err)
	}
	token.Ceiling = access.AllVerbs
	if ceiling, err := ToCeiling(FromToken(token).GetVerbs()); err != nil || ceiling != access.AllVerbs {
		t.Errorf("no ceiling is %v, %v", ceiling, err)
	}
}

// TestTokenIDsAreThoseOfTokens: an operator looks for the id that stands in a token that was found.
func TestTokenIDsAreThoseOfTokens(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		var id [8]byte
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "id"))
		text := authn.TokenID(id).String()
		if got := access.TokenID(id).String(); got != text {
			t.Fatalf("package access writes %s, authn writes %s", got, text)
		}
		if got, err := ToTokenID("id", text); err != nil || got != access.TokenID(id) {
			t.Fatalf("%s is read as %v, %v", text, got, err)
		}
	})
}

func TestAccessModes(t *testing.T) {
	for mode := access.Open; mode <= access.Guarded; mode++ {
		if got, err := ToAccessMode("mode", FromAccessMode(mode)); err != nil || got != mode {
			t.Errorf("%s is %v, %v", mode, got, err)
		}
	}
	if _, err := ToAccessMode("mode", 0); err == nil {
		t.Error("no mode is one")
	}
}

// subjectsOf are the subjects with these texts; what is not one has no kind.
func subjectsOf(texts ...string) []*quoratev1.Subject {
	var subjects []*quoratev1.Subject
	for _, text := range texts {
		subject, _ := access.ParseSubject(text)
		subjects = append(subjects, manifest.SubjectMessage(subject))
	}
	return subjects
}
