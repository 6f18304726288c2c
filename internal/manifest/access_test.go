package manifest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// allOfAccess is a manifest with every key of bindings and of the access section, as Format writes it.
const allOfAccess = `version: 1
access:
  token-life: 2160h
  roles:
    launcher: {description: "starts jobs for tenants", verbs: [hold, hold.as]}
    night-shift: [usage.read, holders.read, hold.operate]
  issuers:
    github:
      url: "https://token.actions.githubusercontent.com"
      audience: quorate.example.org
      user: repository_id
      claim-rules: {repository_owner_id: ["123456"]}
      groups:
        deploy: {environment: [prod], ref: [refs/heads/main, refs/heads/next]}
      max-age: 10m
    k8s:
      url: "https://kubernetes.default.svc"
      keys-file: "/etc/quorate/k8s.jwks"
      audience: quorate
      user: sub
      claim-rules: {kubernetes.io/namespace: [ci]}
      algorithms: [ES256, RS256]
    other:
      url: "https://id.example.org"
      keys-url: "https://id.example.org/keys"
      audience: quorate
      user: sub
      claim-rules: {org: [a]}
  certificates: [{name: zuul, user: zuul}, {dns: ci.example.org, user: ci}]
  bindings:
    - role: cluster-operator
      subjects: ["group corp/sre"]
    - role: night-shift
      subjects: ["user corp/ann", "account pager"]
trees:
  cern:
    resources: {cores: {unit: count}}
    bindings:
      - role: limit-admin
        subjects: ["group corp/board"]
    nodes:
      atlas:
        bindings:
          - role: broker
            subjects: ["account scheduler"]
            max-priority: 10
            unpreemptable: true
            hold-as: any
          - role: launcher
            subjects: ["account ci", everyone]
            hold-as: [corp/ann, corp/atlas]
            ends: "2027-01-01T00:00:00.5Z"
          - role: node-admin
            subjects: ["user corp/peter"]
            ends: "2027-01-01T00:00:00Z"
`

func TestAccessSectionAndBindings(t *testing.T) {
	got, err := Parse("f", []byte(allOfAccess))
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, values ...string) *quoratev1.ClaimRule {
		return &quoratev1.ClaimRule{Claim: name, Values: values}
	}
	newYear := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	want := &Manifest{
		Access: &quoratev1.AccessSection{
			TokenLifeMs: 90 * 24 * 3600 * 1000,
			Roles: []*quoratev1.AccessRole{
				{Name: "launcher", Description: "starts jobs for tenants", Verbs: []string{"hold", "hold.as"}},
				{Name: "night-shift", Verbs: []string{"usage.read", "holders.read", "hold.operate"}},
			},
			Issuers: []*quoratev1.Issuer{
				{
					Name: "github", Url: "https://token.actions.githubusercontent.com", Audience: "quorate.example.org",
					User: "repository_id", ClaimRules: []*quoratev1.ClaimRule{claim("repository_owner_id", "123456")},
					Groups: []*quoratev1.GroupRule{{Group: "deploy", ClaimRules: []*quoratev1.ClaimRule{
						claim("environment", "prod"), claim("ref", "refs/heads/main", "refs/heads/next"),
					}}},
					MaxAgeMs: 600_000,
				},
				{
					Name: "k8s", Url: "https://kubernetes.default.svc", KeysFile: "/etc/quorate/k8s.jwks",
					Audience: "quorate", User: "sub", Algorithms: []string{"ES256", "RS256"},
					ClaimRules: []*quoratev1.ClaimRule{claim("kubernetes.io/namespace", "ci")},
				},
				{
					Name: "other", Url: "https://id.example.org", KeysUrl: "https://id.example.org/keys",
					Audience: "quorate", User: "sub", ClaimRules: []*quoratev1.ClaimRule{claim("org", "a")},
				},
			},
			Certificates: []*quoratev1.CertificateRule{
				{Dns: "ci.example.org", User: "ci"}, {Name: "zuul", User: "zuul"},
			},
			Bindings: []*quoratev1.Binding{
				{Role: "cluster-operator", Subjects: subjectsOf("group corp/sre")},
				{Role: "night-shift", Subjects: subjectsOf("user corp/ann", "account pager")},
			},
		},
		Trees: []*quoratev1.Tree{{
			Name: "cern", Resources: []*quoratev1.Resource{{Name: "cores", Unit: count}},
			Bindings: []*quoratev1.Binding{{Role: "limit-admin", Subjects: subjectsOf("group corp/board")}},
			Nodes: []*quoratev1.Node{{Path: "atlas", Bindings: []*quoratev1.Binding{
				{
					Role: "broker", Subjects: subjectsOf("account scheduler"), MaxPriority: 10, Unpreemptable: true,
					HoldAs: &quoratev1.HoldAs{Any: true},
				},
				{
					Role: "launcher", Subjects: subjectsOf("account ci", "everyone"),
					HoldAs: &quoratev1.HoldAs{Names: []string{"corp/ann", "corp/atlas"}},
					EndsAt: timestamppb.New(newYear.Add(500 * time.Millisecond)),
				},
				{Role: "node-admin", Subjects: subjectsOf("user corp/peter"), EndsAt: timestamppb.New(newYear)},
			}}},
		}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	text, err := Format(got)
	if err != nil {
		t.Fatal(err)
	}
	// Certificates by DNS come first, because they have no name.
	wantText := strings.Replace(allOfAccess, "{name: zuul, user: zuul}, {dns: ci.example.org, user: ci}",
		"{dns: ci.example.org, user: ci}, {name: zuul, user: zuul}", 1)
	if diff := cmp.Diff(wantText, string(text)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

// TestAccessInAnyOrder: the order of roles, issuers, bindings, subjects, names and claims does not matter.
func TestAccessInAnyOrder(t *testing.T) {
	const text = `trees:
  t:
    bindings:
      - {subjects: ["account b", "user x/y", "account a"], role: viewer}
      - {role: broker, subjects: [everyone], hold-as: [b, a]}
    resources: {cores: {unit: count}}
access:
  issuers:
    b: {url: "https://b", audience: q, user: sub, claim-rules: {y: [b, a], x: [c]}}
    a: {url: "https://a", audience: q, user: sub, claim-rules: {x: [c]}, algorithms: [RS256, ES256]}
  roles: {b: [hold, usage.read], a: [config.read]}
`
	const want = `version: 1
access:
  roles: {a: [config.read], b: [usage.read, hold]}
  issuers:
    a:
      url: "https://a"
      audience: q
      user: sub
      claim-rules: {x: [c]}
      algorithms: [ES256, RS256]
    b:
      url: "https://b"
      audience: q
      user: sub
      claim-rules: {x: [c], "y": [a, b]}
trees:
  t:
    resources: {cores: {unit: count}}
    bindings:
      - role: broker
        subjects: [everyone]
        hold-as: [a, b]
      - role: viewer
        subjects: ["user x/y", "account a", "account b"]
`
	m, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Format(m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEmptyAccessSectionIsOne(t *testing.T) {
	m, err := Parse("f", []byte("access: {}\n"))
	if err != nil || m.Access == nil || m.Trees != nil {
		t.Fatalf("%+v, %v", m, err)
	}
	if text, err := Format(m); err != nil || string(text) != "version: 1\naccess: {}\n" {
		t.Errorf("written: %q, %v", text, err)
	}
	if m, err = Parse("f", []byte("trees: {}\n")); err != nil || m.Access != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestParseSaysWhatIsWrongWithBindings(t *testing.T) {
	for text, want := range map[string]string{
		"{subjects: [everyone]}": `f:4:16: binding 1 of tree "t" has no "role": write {role: viewer, subjects: ["group corp/users"]}`,
		"{role: viewer}":         `f:4:16: binding 1 of tree "t" has no "subjects"`,
		"{role: viewer, subjects: [everyone], from: x}": `f:4:53: binding 1 of tree "t" has no key "from"; allowed are ends, hold-as, ` +
			"max-priority, role, subjects, unpreemptable",
		"viewer":                              `f:4:16: binding 1 of tree "t" is a map of ends, hold-as`,
		"{role: [], subjects: [everyone]}":    `f:4:23: the role of binding 1 of tree "t" must be a name of at most 63 bytes`,
		"{role: 'a b', subjects: [everyone]}": `f:4:23: binding 1 of tree "t", role: "a b" is not a name of a role; a name has 1 to 63`,
		"{role: viewer, subjects: []}":        `f:4:41: binding 1 of tree "t", subjects: there are 0 subjects; 1 to 100 are allowed`,
		"{role: viewer, subjects: everyone}":  "f:4:41: subjects is a list",
		"{role: viewer, subjects: [{}]}":      `f:4:42: binding 1 of tree "t", subjects: a subject is a text, such as "user corp/ann", not a map`,
		"{role: viewer, subjects: [user ann]}": `f:4:42: binding 1 of tree "t", subjects: "ann" is not a user ISSUER/NAME; ` +
			"a name has 1 to 256 visible ASCII characters without *",
		"{role: viewer, subjects: [everyone, ann]}":                                  `f:4:52: binding 1 of tree "t", subjects: "ann" is not a subject; write "user ISSUER/NAME"`,
		"{role: viewer, subjects: [group a/*]}":                                      `f:4:42: binding 1 of tree "t", subjects: "a/*" is not a group`,
		"{role: viewer, subjects: [account a, account a]}":                           `f:4:53: binding 1 of tree "t", subjects: "account a" is given twice; the first is in line 4`,
		"{role: holder, subjects: [everyone, anonymous]}":                            `f:4:52: binding 1 of tree "t", subjects: role holder gives anonymous callers hold limits.request`,
		"{role: node-admin, subjects: [everyone]}":                                   `f:4:46: binding 1 of tree "t", subjects: role node-admin gives everyone bindings.grant; name users`,
		"{role: cluster-operator, subjects: [everyone]}":                             `f:4:23: binding 1 of tree "t", role: role cluster-operator has no verb that is asked at a node`,
		"{role: viewer, subjects: [everyone], max-priority: 1}":                      `f:4:67: binding 1 of tree "t", max-priority: role viewer has no hold`,
		"{role: holder, subjects: [everyone], max-priority: 1.5}":                    `f:4:67: max-priority of binding 1 of tree "t" is a whole number of 64 bits, such as 10, not "1.5"`,
		"{role: holder, subjects: [everyone], max-priority: 07}":                     `not "07"`,
		"{role: holder, subjects: [everyone], max-priority: {}}":                     "not a map",
		"{role: holder, subjects: [everyone], max-priority: 9223372036854775808}":    `not "9223372036854775808"`,
		"{role: holder, subjects: [everyone], unpreemptable: 'yes'}":                 `f:4:68: unpreemptable of binding 1 of tree "t" is true or false, not "yes"`,
		"{role: holder, subjects: [everyone], hold-as: any}":                         `f:4:62: binding 1 of tree "t", hold-as: role holder has no hold.as`,
		"{role: broker, subjects: [everyone], hold-as: all}":                         `f:4:62: hold-as of binding 1 of tree "t" is the word any, or a list of users and groups, not "all"`,
		"{role: broker, subjects: [everyone], hold-as: []}":                          "or a list of users and groups, not an empty list",
		"{role: broker, subjects: [everyone], hold-as: [a*]}":                        `f:4:62: binding 1 of tree "t", hold-as: "a*" is not a user or group`,
		"{role: broker, subjects: [everyone], hold-as: [a, a]}":                      `f:4:66: hold-as of binding 1 of tree "t": "a" is given twice`,
		"{role: viewer, subjects: [everyone], ends: 2027-01-01}":                     `f:4:59: ends of binding 1 of tree "t" is a time in quotes, such as "2027-01-01T00:00:00Z", not "2027-01-01"`,
		"{role: viewer, subjects: [everyone], ends: '1970-01-01T00:00:00Z'}":         `f:4:59: ends of binding 1 of tree "t" is before 1970`,
		"{role: viewer, subjects: [everyone], ends: '2027-01-01T00:00:00.0001Z'}":    `f:4:59: ends of binding 1 of tree "t" is not a whole number of milliseconds`,
		"{role: viewer, subjects: [everyone]}, {subjects: [everyone], role: viewer}": `f:4:54: binding 2 of tree "t" is given twice`,
		"{role: viewer, subjects: [" + numbered("account a%d, ", 101) + "]}":         "f:4:41: subjects has 101 entries; 100 are allowed",
		"{role: broker, subjects: [everyone], hold-as: [" + numbered("a%d, ", 101) + "]}": "f:4:62: hold-as has 101 entries; 100 are " +
			"allowed",

		strings.Repeat("{role: viewer}, ", 101): "f:4:15: bindings has 101 entries; 100 are",
	} {
		file := "trees:\n  t:\n    resources: {cores: {unit: count}}\n    bindings: [" + text + "]\n"
		m, err := Parse("f", []byte(file))
		if err == nil || m != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func numbered(format string, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// TestRolesOfBindings: a role that is not built in may be defined on the server, unless the manifest says which are.
func TestRolesOfBindings(t *testing.T) {
	tree := func(binding string) string {
		return "trees: {t: {resources: {cores: {unit: count}}, bindings: [" + binding + "]}}\n"
	}
	const all = "{role: custom, subjects: [everyone, anonymous], hold-as: any, max-priority: 3}"
	for _, test := range []struct{ text, want string }{
		{tree(all), ""},
		{tree("{role: custom, subjects: [user a]}"), `subjects: "a" is not a user ISSUER/NAME`},
		{"access: {}\n" + tree(all), `"custom" is not a role; allowed are viewer`},
		{"access: {roles: {custom: [usage.read]}}\n" + tree(all), `max-priority: role custom has no hold`},
		{"access: {roles: {custom: [usage.read]}}\n" + tree("{role: custom, subjects: [anonymous]}"), ""},
		{
			tree("{role: custom, subjects: [anonymous]}") + "access: {roles: {custom: [hold]}}\n",
			"gives anonymous callers hold",
		},
		{"access: {bindings: [{role: custom, subjects: [everyone]}]}\n", `"custom" is not a role`},
	} {
		_, err := Parse("f", []byte(test.text))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
	}
	// One mistake in a role is one problem: its bindings are not wrong too.
	_, err := Parse("f", []byte("access: {roles: {custom: [hodl]}, bindings: [{role: custom, subjects: [everyone]}]}\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("a role with a mistake: %v", err)
	}
}

func TestParseSaysWhatIsWrongWithTheAccessSection(t *testing.T) {
	const issuer = "url: 'https://i', audience: q, user: sub, claim-rules: {o: [a]}"
	for text, want := range map[string]string{
		"[]":                  "f:1:9: access is a map of bindings, certificates, issuers, roles, token-life, not a list",
		"{users: {}}":         `f:1:10: access has no key "users"; allowed are bindings, certificates`,
		"{token-life: 9601h}": `token-life of access: "9601h" is too long: the maximum is 9600h`,
		"{token-life: -1h}":   "f:1:22: token-life of access: \"-1h\" is not positive",

		"{roles: {viewer: [hold]}}":                    `f:1:18: role "viewer", name: viewer is a built-in role`,
		"{roles: {'a b': [hold]}}":                     `f:1:18: role "a b", name: "a b" is not a name of a role`,
		"{roles: {a: []}}":                             `f:1:21: role "a", verbs: role a has no verbs; name at least one verb`,
		"{roles: {a: {}}}":                             `f:1:18: role "a", verbs: role a has no verbs`,
		"{roles: {a: hold}}":                           `f:1:21: role "a" is a map of description, verbs, not "hold"`,
		"{roles: {a: [hold, hodl]}}":                   `f:1:28: role "a", verbs: "hodl" is not a verb; allowed are usage.read`,
		"{roles: {a: [hold, hold]}}":                   `f:1:28: verbs of role "a": "hold" is given twice`,
		"{roles: {a: [hold.as]}}":                      `f:1:21: role "a", verbs: role a has hold.as without hold; add hold or leave`,
		`{roles: {a: {description: "\t", verbs: []}}}`: `role "a", verbs: role a has no verbs`,
		`{roles: {a: {description: "\t", verbs: [hold]}}}`: `f:1:35: role "a", description: the text has the control ` +
			"character 0x09",
		"{roles: {" + numbered("r%d: [hold], ", 65) + "}}": "f:1:17: roles has 65 entries; 64 are allowed",

		"{issuers: {a: {}}}":                            `f:1:20: issuer "a", url: "" is not the URL of an issuer`,
		"{issuers: {cert: {" + issuer + "}}}":           `f:1:20: issuer "cert", name: "cert" is reserved`,
		"{issuers: {a: {" + issuer + ", x: y}}}":        `issuer "a" has no key "x"; allowed are algorithms`,
		"{issuers: {a: {url: 'http://i.example.org'}}}": `f:1:29: issuer "a", url: "http://i.example.org" is not the URL`,
		"{issuers: {a: {" + issuer + ", algorithms: [ES256, none]}}}": `f:1:109: issuer "a", algorithms: "none" is not allowed; ` +
			"allowed are ES256, EdDSA, PS256, RS256",
		"{issuers: {a: {" + issuer + ", keys-url: 'https://k', keys-file: /k}}}": `f:1:123: issuer "a", keys-file: the issuer has ` +
			"keys-url and keys-file",
		"{issuers: {a: {" + issuer + ", max-age: 25h}}}":             `max-age of issuer "a": "25h" is too long: the maximum is 24h`,
		"{issuers: {a: {url: 'https://i', audience: q, user: sub}}}": `issuer "a", claim-rules: issuer a lets in everyone whom it serves`,
		"{issuers: {a: {" + issuer + ", groups: {g: {}}}}}":          `f:1:98: issuer "a", groups: group g has no rule`,
		"{issuers: {a: {" + issuer + ", groups: {g: {a.b: [], c: [d]}}}}}": `f:1:107: issuer "a", groups: the claim has 0 values; 1 ` +
			"to 64 are allowed",
		"{issuers: {a: {" + issuer + ", groups: {g: {aud: [q]}}}}}":                           `issuer "a", groups: "aud" is not a claim; name a claim other than aud`,
		"{issuers: {a: {" + issuer + ", groups: {g: {c: x}}}}}":                               "f:1:105: c is a list, not \"x\"",
		"{issuers: {a: {" + issuer + ", groups: {g: {c: [" + numbered("v%d, ", 65) + "]}}}}}": "c has 65 entries; 64 are allowed",
		"{issuers: {a: {" + issuer + ", groups: {g: {" + numbered("c%d: [v], ", 17) + "}}}}}": "groups has 17 entries; 16 are allowed",
		"{issuers: {a: {" + issuer + ", groups: {" + numbered("g%d: {c: [v]}, ", 65) + "}}}}": "groups has 65 entries; 64 are allowed",
		"{issuers: {" + numbered("i%d: {}, ", 17) + "}}":                                      "issuers has 17 entries; 16 are allowed",
		"{issuers: {b: {" + issuer + "}, a: {" + issuer + "}}}": `f:1:90: access, issuers: issuer a has the URL and the ` +
			"audience of b",

		"{certificates: [{user: a}]}":            `f:1:25: certificate 1, name: a certificate is chosen by name or by dns`,
		"{certificates: [{name: a, user: a b}]}": `f:1:41: certificate 1, user: "a b" is not a name of a user`,
		"{certificates: [{name: a}]}":            `f:1:25: certificate 1, user: "" is not a name of a user`,
		"{certificates: [a]}":                    `f:1:25: certificate 1 is a map of dns, name, user, not "a"`,
		"{certificates: [{name: a, user: a}, {name: a, user: b}]}": `f:1:45: access, certificates: "a" is the certificate of a ` +
			"and of b",
		"{certificates: [{name: a, user: a}, {name: a, user: a}]}":           "f:1:45: certificate 2 is given twice; the first is in line 1",
		"{certificates: [" + numbered("{name: c%d, user: u}, ", 1001) + "]}": "certificates has 1001 entries; 1000 are allowed",

		"{bindings: [{role: root, subjects: [everyone]}]}":                       `f:1:45: binding 1 of access, subjects: role root gives everyone`,
		"{bindings: [{role: root, subjects: [account a], unpreemptable: true}]}": "unpreemptable: role root has no ceilings; leave it out",
	} {
		m, err := Parse("f", []byte("access: "+text+"\n"))
		if err == nil || m != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// TestManifestsOfThePage: what the documentation shows as a manifest is one.
func TestManifestsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "\n```yaml\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("the page has %d manifests", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if _, err := Parse("f", []byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func TestFormatRefusesAccess(t *testing.T) {
	binding := func(change func(*quoratev1.Binding)) *quoratev1.AccessSection {
		b := &quoratev1.Binding{Role: "broker", Subjects: subjectsOf("account a")}
		change(b)
		return &quoratev1.AccessSection{Bindings: []*quoratev1.Binding{b}}
	}
	for want, section := range map[string]*quoratev1.AccessSection{
		`binding 1: "me" is not a user`: binding(func(b *quoratev1.Binding) {
			b.Subjects[0] = &quoratev1.Subject{Kind: quoratev1.SubjectKind_SUBJECT_KIND_USER, Name: "me"}
		}),
		"binding 1: 0 is not a kind": binding(func(b *quoratev1.Binding) { b.Subjects[0] = &quoratev1.Subject{Kind: 256} }),
		`has no "subjects"`:          binding(func(b *quoratev1.Binding) { b.Subjects = nil }),
		"ends is not a whole number of milliseconds after 1970": binding(func(b *quoratev1.Binding) {
			b.EndsAt = &timestamppb.Timestamp{Nanos: 1_000_001, Seconds: 1}
		}),
		"binding 1: ends is not": binding(func(b *quoratev1.Binding) { b.EndsAt = &timestamppb.Timestamp{} }),
		"ends is not a": binding(func(b *quoratev1.Binding) {
			b.EndsAt = &timestamppb.Timestamp{Seconds: 1 << 40}
		}),
		"hold_as says any and has names": binding(func(b *quoratev1.Binding) {
			b.HoldAs = &quoratev1.HoldAs{Any: true, Names: []string{"a"}}
		}),
		`role "a": verbs[0]: "hodl" is not a verb`: {Roles: []*quoratev1.AccessRole{{Name: "a", Verbs: []string{"hodl"}}}},
		`"a" is given twice`: {Roles: []*quoratev1.AccessRole{
			{Name: "a", Verbs: []string{"hold"}}, {Name: "a", Verbs: []string{"usage.read"}},
		}},
		"is too long": {TokenLifeMs: access.MaxTokenLife + 1},
	} {
		text, err := Format(&Manifest{Access: section})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Format answers %q, %v; want an error that says %q", text, err, want)
		}
	}
}

// subjectsOf are the subjects with these texts; what is not one has no kind.
func subjectsOf(texts ...string) []*quoratev1.Subject {
	var subjects []*quoratev1.Subject
	for _, text := range texts {
		subject, _ := access.ParseSubject(text)
		subjects = append(subjects, SubjectMessage(subject))
	}
	return subjects
}
