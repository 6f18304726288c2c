package access_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
)

func TestCallers(t *testing.T) {
	for _, c := range []access.Caller{
		access.SystemCaller(),
		{Kind: access.Anonymous, Via: "boskos", Request: "r-1"},
		{Kind: access.AccountCaller, User: "account/ci", Groups: []string{"a", "b"}, Credential: [16]byte{1}},
		{Kind: access.External, User: "corp/ann", Groups: []string{"corp/dev", "corp/sre"}},
		{Kind: access.External, User: "frontend/boskos"},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	groups := make([]string, access.MaxGroups+1)
	for i := range groups {
		groups[i] = fmt.Sprintf("corp/%03d", i)
	}
	for name, test := range map[string]struct {
		caller      access.Caller
		field, text string
	}{
		"zero":                    {access.Caller{}, "kind", "0 is not a kind of caller"},
		"system with a user":      {access.Caller{Kind: access.System, User: "corp/ann"}, "user", "has an identity"},
		"anonymous with a group":  {access.Caller{Kind: access.Anonymous, Groups: []string{"a"}}, "user", "has an identity"},
		"account without prefix":  {access.Caller{Kind: access.AccountCaller, User: "ci"}, "user", "not the user of an account"},
		"account of an issuer":    {access.Caller{Kind: access.AccountCaller, User: "corp/ci"}, "user", "not the user of an account"},
		"external account":        {access.Caller{Kind: access.External, User: "account/ci"}, "user", "external caller"},
		"external system":         {access.Caller{Kind: access.External, User: "system/x"}, "user", "external caller"},
		"external without a user": {access.Caller{Kind: access.External}, "user", "is not a user"},
		"foreign group":           {access.Caller{Kind: access.External, User: "corp/ann", Groups: []string{"github/x"}}, "groups[0]", "another issuer"},
		"group of accounts":       {access.Caller{Kind: access.External, User: "corp/ann", Groups: []string{"robots"}}, "groups[0]", "another issuer"},
		"issued group of account": {access.Caller{Kind: access.AccountCaller, User: "account/ci", Groups: []string{"corp/sre"}}, "groups[0]", "not a group of accounts"},
		"unsorted groups":         {access.Caller{Kind: access.External, User: "corp/ann", Groups: []string{"corp/b", "corp/a"}}, "groups[1]", "is not behind"},
		"a group twice":           {access.Caller{Kind: access.External, User: "corp/ann", Groups: []string{"corp/a", "corp/a"}}, "groups[1]", "is not behind"},
		"too many groups":         {access.Caller{Kind: access.External, User: "corp/ann", Groups: groups}, "groups", "65 groups"},
		"front end":               {access.Caller{Kind: access.Anonymous, Via: "a b"}, "via", "not a name of a front end"},
		"request":                 {access.Caller{Kind: access.Anonymous, Request: strings.Repeat("x", 129)}, "request", "is not an id"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.caller.Check(), access.Invalid, test.field, test.text) })
	}
}

// TestSystemIsNeverForgotten checks that a caller that was not filled in has no rights.
func TestSystemIsNeverForgotten(t *testing.T) {
	everyone := []access.Binding{to("viewer", "everyone", "anonymous")}
	path := access.Path{access.Compile(everyone, access.Roles{}, access.ClusterScope)}
	id := access.NewIdentity(&access.Caller{}, access.AllVerbs)
	if got := access.VerbsAt(id, 0, path); got != 0 {
		t.Errorf("the zero caller has %s", got)
	}
	c := access.SystemCaller()
	if !access.Allows(access.NewIdentity(&c, access.AllVerbs), access.SnapshotRestore, 0, access.Path{nil}) {
		t.Error("the system may not do everything")
	}
}
