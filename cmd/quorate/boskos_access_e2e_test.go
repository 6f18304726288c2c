package main_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
)

const boskosBindings = `trees:
  boskos:
    policy: open
    bindings:
      - {role: broker, subjects: ["account ci", "user frontend/boskos"], hold-as: any}
      - {role: cleaner, subjects: ["account ci", "user frontend/boskos"]}
`

// TestBoskosInAGuardedCluster: clients of Boskos present a token as their password. Those without one are refused, and
// with boskos-open they may do what is bound to the front end, on each node.
func TestBoskosInAGuardedCluster(t *testing.T) {
	t.Parallel()
	for name, isOpen := range map[string]bool{"closed": false, "open": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			urls := map[string]string{}
			list, _, tokens := guardedCluster(t, func(f serverFlags) []string {
				port := servertest.FreePorts(t, 1)[0]
				urls[f.id] = "http://" + port
				more := []string{"--front-ends", "boskos=" + port}
				if isOpen {
					more = append(more, "--boskos-open")
				}
				return more
			})
			root := " --token-file " + filepath.Join(tokens, "admin")
			token := filepath.Join(tokens, "ci")
			const file = " --from boskos -f ../../examples/boskos/boskos.yaml"
			playSteps(t, list[1], []step{
				{"account create ci" + root, 0, ""},
				{"token create ci --out " + token + root, 0, ""},
				{"account create poor" + root, 0, ""},
				{"token create poor --out " + filepath.Join(tokens, "poor") + root, 0, ""},
				{"apply" + file + root, 0, "boskos  tree"},
				{"access check hold boskos" + root, 0, ""},
			})
			bindBoskos(t, list[1], root)
			// The file of Boskos cannot have bindings, and takes none away when it is applied again.
			playSteps(t, list[1], []step{{"apply" + file + root, 0, "nothing to change"}})

			secret, err := os.ReadFile(token)
			if err != nil {
				t.Fatal(err)
			}
			poor := tokenIn(t, tokens, "poor")
			for _, f := range list {
				wantBoskos(t, urls[f.id], poor, "poor", http.StatusForbidden)
				wantBoskos(t, urls[f.id], strings.TrimSpace(string(secret)), "me", http.StatusOK)
				wantBoskos(t, urls[f.id], "quo_wrong", "me", http.StatusForbidden)
				without := http.StatusForbidden
				if isOpen {
					without = http.StatusOK
				}
				wantBoskos(t, urls[f.id], "", "other", without)
			}
			// The front end is not an identity on the port of the API.
			playSteps(t, list[1], []step{{"usage boskos", 1, "there is no tree boskos"}})
		})
	}
}

func bindBoskos(t *testing.T, f serverFlags, root string) {
	t.Helper()
	tree := runCommand(t, append(strings.Fields("manifest export boskos"+root), "--server", f.baseURL())...)
	if tree.code != 0 {
		t.Fatalf("%+v", tree)
	}
	_, resources, found := strings.Cut(tree.stdout, "    policy: open\n")
	if !found {
		t.Fatal(tree.stdout)
	}
	playSteps(t, f, []step{{"apply -f " + manifestFile(t, boskosBindings+resources) + root, 0, "binding cleaner"}})
}

func wantBoskos(t *testing.T, url, token, owner string, want int) {
	t.Helper()
	call := func(path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path+"&owner="+owner, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.SetBasicAuth("anyone", token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	got, body := call("/acquire?type=gcp-project&state=dirty&dest=busy")
	if got != want {
		t.Errorf("%s acquires at %s with a token of %d bytes: %d %s, want %d", owner, url, len(token), got, body, want)
	}
	var acquired struct{ Name string }
	if got == http.StatusOK && json.Unmarshal([]byte(body), &acquired) != nil {
		t.Errorf("%s", body)
	}
	// An update looks up who holds the item: owners see that without a right to read holders.
	if got, body := call("/update?state=busy&name=" + cmp.Or(acquired.Name, "project-1")); got != want {
		t.Errorf("%s updates %s: %d %s, want %d", owner, acquired.Name, got, body, want)
	}
	for _, dest := range []string{"busy", "testing"} { // the second call changes the state of what the first one got
		if got, body := call("/acquire?type=gcp-project&state=dirty&request_id=1&dest=" + dest); got != want {
			t.Errorf("%s acquires as %s: %d %s, want %d", owner, dest, got, body, want)
		}
	}
	for _, name := range []string{"project-1", "project-2"} {
		if got, body := call("/release?name=" + name + "&dest=dirty"); want != http.StatusOK && got != want {
			t.Errorf("%s releases: %d %s, want %d", owner, got, body, want)
		}
	}
}
