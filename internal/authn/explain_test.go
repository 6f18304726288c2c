package authn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/authn/authntest"
)

// TestExplain explains a token that fails several rules: each of them is named, with what the token has.
func TestExplain(t *testing.T) {
	t.Parallel()
	i := authntest.New(testURL)
	v := newTestVerifier(t, i)
	explain := func(raw string) (failed, all string) {
		t.Helper()
		findings, err := v.Explain(t.Context(), "ci", raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			all += fmt.Sprintf("%t %s: %s\n", f.Holds, f.Rule, f.Detail)
			if !f.Holds {
				failed += f.Rule + ","
			}
		}
		return failed, all
	}
	if failed, all := explain(i.Sign(goodClaims(i, nil))); failed != "" || strings.Count(all, "\n") != 13 {
		t.Errorf("a good token fails %q:\n%s", failed, all)
	}
	bad := goodClaims(i, map[string]any{"aud": "other", "exp": 5, "org": "44", "env": "test", "sub": "a b"})
	failed, all := explain(i.Sign(bad))
	if failed != "audience,exp,max-age,require org,user sub,group ci/deploy,group ci/all," {
		t.Errorf("failed are %s\n%s", failed, all)
	}
	for _, want := range []string{
		`true signature: kid "key-1-ES256"`, `the token has aud "other"`, "exp 5 (1970-01-01T00:00:05Z)",
		`the claim has none of the allowed values; the token has "44", allowed is ["42","43"]`,
		`false group ci/deploy: env: the claim has none of the allowed values; the token has "test", allowed is ["prod"]`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	foreign := authntest.New("https://other.example.org")
	if failed, all := explain(foreign.Sign(goodClaims(foreign, nil))); failed != "issuer,signature," {
		t.Errorf("a foreign token fails %s:\n%s", failed, all)
	}
	if failed, _ := explain("not a token"); failed != "format," {
		t.Errorf("a text fails %s", failed)
	}
	long := goodClaims(i, map[string]any{"org": strings.Repeat("é", 1000)})
	if _, all := explain(i.Sign(long)); len(all) > 2000 || !strings.Contains(all, "…") {
		t.Errorf("a long claim is shown in %d bytes", len(all))
	}
	if _, err := v.Explain(t.Context(), "other", "x"); err == nil {
		t.Error("an issuer that is not configured is explained")
	}
}
