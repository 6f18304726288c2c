package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeystoneInAGuardedCluster: callers of the front end of Keystone present an API token as X-Auth-Token, and read
// and write what its rights allow, on each node.
func TestKeystoneInAGuardedCluster(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t, func(serverFlags) []string { return []string{"--front-ends", "keystone"} })
	tokenOf := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(tokens, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	const (
		limitOf = "limits?service_id=cern&resource_name=cores&project_id="
		physics = "limits/cern:atlas~physics:cores"
		denied  = "You are not authorized to perform the requested action"
	)
	for i, f := range list {
		lower := fmt.Sprintf(`{"limit": {"resource_limit": %d, "description": "ticket %d"}}`, 39-i, i)
		for _, c := range []struct {
			caller, method, path, body string
			status                     int
			want                       string
		}{
			{"", "GET", "", "", 200, `"version"`},
			{"", "GET", "limits", "", 401, "The request you have made requires authentication."},
			{"", "POST", "auth/tokens", "{}", 401, "set auth_type to admin_token"},
			{"wrong", "GET", "limits", "", 401, "The request you have made requires authentication."},
			{"hans", "GET", limitOf + "physics", "", 200, fmt.Sprintf(`"resource_limit":%d,`, 40-i)},
			{"hans", "GET", limitOf + "atlas", "", 403, denied + ": the token lacks the right usage.read at cern:atlas"},
			{"hans", "GET", limitOf + "cms", "", 403, denied},
			{"hans", "GET", limitOf + "stranger", "", 403, denied},
			{"hans", "GET", "limits?project_id=cms", "", 200, `{"limits":[],`},
			{"hans", "GET", "projects/physics", "", 200, `"parent_id":"atlas"`},
			{"hans", "GET", "projects/cms", "", 404, "Could not find project: cms."},
			{"hans", "GET", "projects?name=cms", "", 200, `"projects":[]`},
			{"hans", "PATCH", physics, lower, 403, denied + ": account/hans may not change"},
			{"carl", "PATCH", physics, lower, 404, "Could not find limit for"},
			{"carl", "DELETE", "limits/cern:cms:cores", "", 403, denied},
			{"anna", "PATCH", physics, lower, 200, `"description":"ticket `},
			{"anna", "GET", limitOf + "atlas", "", 200, fmt.Sprintf("limit 60 less %d of its children", 39-i)},
			{"ops", "GET", "services", "", 200, `"services":[]`},
			{"admin", "GET", limitOf + "cms", "", 200, `"resource_limit":40,`},
			{"admin", "GET", limitOf + "stranger", "", 200, `"resource_limit":0,`},
		} {
			token := c.caller
			if token != "" && token != "wrong" {
				token = tokenOf(c.caller)
			}
			status, body := callKeystone(t, f, token, c.method, c.path, c.body)
			if status != c.status || !strings.Contains(body, c.want) || token != "" && strings.Contains(body, token) {
				t.Errorf("%s: %s %s of %q: %d %s, want %d %s", f.id, c.method, c.path, c.caller, status, body, c.status, c.want)
			}
		}
		status, body := callKeystone(t, f, tokenOf("hans"), "GET", "projects", "")
		if status != http.StatusOK || strings.Contains(body, `"cms"`) || !strings.Contains(body, `"physics"`) {
			t.Errorf("%s: hans sees %d %s", f.id, status, body)
		}
	}
	playSteps(t, list[1], []step{
		{"revision list --limit 1 --token-file " + filepath.Join(tokens, "admin"), 0, "account/anna: ticket 2"},
	})
}

// callKeystone sends no token if it is empty.
func callKeystone(t *testing.T, f serverFlags, token, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.baseURL()+"/keystone/v3/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
