package cli

import (
	"testing"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestIDsOfOtherNamespaces: what a command prints as an id is read as the same id by the next one.
func TestIDsOfOtherNamespaces(t *testing.T) {
	for _, test := range []struct{ named, namespace, want string }{
		{"", "default", "job-1"},
		{"", "account/hans", "account/hans job-1"},
		{"account/hans", "account/hans", "job-1"},
		{"account/hans", "default", "default job-1"},
	} {
		c := &Env{Namespace: test.named}
		text := c.IDText(&quoratev1.Allocation{Namespace: test.namespace, Id: "job-1"})
		if text != test.want {
			t.Errorf("--namespace %q: %s job-1 is printed as %q, want %q", test.named, test.namespace, text, test.want)
		}
		c.Namespace = ""
		namespace, id, err := c.SplitID(text)
		if err != nil || id != "job-1" || namespace != "" && namespace != test.namespace {
			t.Errorf("%q is read as %q in %q: %v", text, id, namespace, err)
		}
	}
	c := &Env{Namespace: "account/heidi"}
	for _, wrong := range []string{"account/hans job-1", " job-1", "account/hans ", "a b c"} {
		if namespace, id, err := c.SplitID(wrong); err == nil {
			t.Errorf("%q is read as %q in %q", wrong, id, namespace)
		}
	}
	withToken := &Env{Token: tokenOptions{file: "x"}}
	if text := withToken.IDText(&quoratev1.Allocation{Namespace: "default", Id: "a"}); text != "default a" {
		t.Errorf("a caller with a credential sees %q", text)
	}
}
