package conformance

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/compat/keystone/rest"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/servertest/inprocess"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// treeCalls are the calls that the front end requires.
type treeCalls struct {
	quoratev1connect.TreeServiceClient
	adminv1connect.ConfigurationServiceClient
}

func callsOf(c *client.Client) rest.Trees { return treeCalls{c.Trees, c.Configuration} }

func startServer(t *testing.T) (*client.Client, string) {
	t.Helper()
	url := inprocess.Start(t, func(s *server.Settings) { s.FrontEnds = []string{"keystone"} })
	// A busy machine needs long for a tree of 10,000 nodes under the race detector.
	cluster, err := client.New([]string{url},
		client.WithAttemptTimeout(2*time.Minute), client.WithPatience(4*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return cluster, url
}

func apply(t *testing.T, cluster *client.Client, text string) {
	t.Helper()
	parsed, err := cluster.Configuration.ParseManifest(t.Context(), &adminv1.ParseManifestRequest{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.GetProblems()) > 0 {
		t.Fatal(parsed.GetProblems())
	}
	r := parsed.GetRequest()
	r.Reason = "a test"
	if _, err := cluster.Trees.ApplyTrees(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "any")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// TestExchanges plays the requests of the files in testdata, each against a server of its own, and compares the
// answers. A request is a line "> METHOD PATH BODY", its answer the line "< STATUS BODY" after it; other lines are
// comments, or with "!" begin a command for the ledger. Those of oslo.limit and openstackclient were recorded from
// these clients.
func TestExchanges(t *testing.T) {
	files, err := filepath.Glob("testdata/*.http")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	manifest, err := os.ReadFile("testdata/trees.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			cluster, url := startServer(t)
			apply(t, cluster, string(manifest))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			played := play(t, cluster, url, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(played), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(text), played); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func play(t *testing.T, cluster *client.Client, url, text string) string {
	t.Helper()
	var played strings.Builder
	for line := range strings.Lines(text) {
		request, isRequest := strings.CutPrefix(strings.TrimSpace(line), "> ")
		switch {
		case isRequest:
			parts := append(strings.SplitN(request, " ", 3), "")
			status, body := call(t, parts[0], url+parts[1], parts[2])
			fmt.Fprintf(&played, "%s< %d %s\n", line, status, body)
		case strings.HasPrefix(line, "! hold "):
			cordonNode(t, cluster, strings.TrimSpace(strings.TrimPrefix(line, "! hold ")))
			played.WriteString(line)
		case !strings.HasPrefix(line, "< "):
			played.WriteString(line)
		}
	}
	return played.String()
}

func cordonNode(t *testing.T, cluster *client.Client, place string) {
	t.Helper()
	tree, node, _ := strings.Cut(place, ":")
	_, err := cluster.Cordons.CordonNode(t.Context(), &adminv1.CordonNodeRequest{Tree: tree, Node: node, Reason: "repair"})
	if err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, trees rest.Trees) string {
	t.Helper()
	served := httptest.NewServer(rest.NewHandler(trees, rest.Options{}))
	t.Cleanup(served.Close)
	return served.URL
}
