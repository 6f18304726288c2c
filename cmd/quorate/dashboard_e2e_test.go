package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func plainPage(t *testing.T, f serverFlags, token string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.baseURL()+"/ui/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/plain")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return sendRequest(t, request)
}

// TestThePlainPage: it has the numbers that the command line shows, and there is none without the dashboard.
func TestThePlainPage(t *testing.T) {
	t.Parallel()
	f := singleServer(t, "--backup-dir", t.TempDir())
	server := startServer(t, f)
	playSteps(t, f, []step{
		{"apply -f " + manifestFile(t, "trees: {lab: {resources: {cores: {unit: milli}}, limits: {cores: 9}}}"), 0, ""},
		{"allocate --id a --at lab --amount cores=8500m", 0, "granted"},
	})
	var text string
	awaitCondition(t, "the page shows no backup", func() bool {
		_, text = plainPage(t, f, "")
		return regexp.MustCompile(`(?m)^n1 .* -  +\d{4}-\d\d-\d\dT[0-9:]+Z$`).MatchString(text)
	})
	for _, want := range []string{
		"Quorate cluster ", "From node n1, index ", "revision 1, up to date", "1 of 1 voters are healthy", "n1      leader",
		"lab   cores     8500m  9      500m      nearly full",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	playSteps(t, f, []step{{"usage lab", 0, "8500m"}, {"member list -o json", 0, `"lastBackupAt": "20`}})
	if status, html := httpGet(t, f.baseURL()+"/ui/plain"); status != http.StatusOK ||
		!strings.Contains(html, "<bdi>8500m</bdi>") || strings.Contains(html, "<script") {
		t.Errorf("%d\n%s", status, html)
	}
	server.stopCleanly(t)
	f.more = append(f.more, "--ui", "off")
	startServer(t, f)
	if status, text := plainPage(t, f, ""); status != http.StatusNotFound {
		t.Errorf("without a dashboard: %d %s", status, text)
	}
}

func checkGuardedPlainPage(t *testing.T, f serverFlags, tokens string) {
	t.Helper()
	for _, token := range []string{"", "wrong"} {
		if status, text := plainPage(t, f, token); status != http.StatusUnauthorized || !strings.Contains(text, "token") {
			t.Errorf("with the token %q: %d %s", token, status, text)
		}
	}
	// The files of the dashboard are the same for everyone, and have nothing that needs a credential.
	checkDashboard(t, f, "read")
	for name, want := range map[string]struct{ contains, lacks string }{
		"ops":  {contains: "survives the loss of 1 more", lacks: "cern:atlas"},
		"anna": {contains: "cern:atlas/physics", lacks: "term"},
		"carl": {contains: "cern:cms", lacks: "cern:atlas"},
	} {
		token, err := os.ReadFile(filepath.Join(tokens, name))
		if err != nil {
			t.Fatal(err)
		}
		awaitCondition(t, name+" is not shown "+want.contains, func() bool { // the leader may change
			status, text := plainPage(t, f, strings.TrimSpace(string(token)))
			if status != http.StatusOK || strings.Contains(text, want.lacks) {
				t.Fatalf("%s: %d, wanted %q without %q:\n%s", name, status, want.contains, want.lacks, text)
			}
			return strings.Contains(text, want.contains)
		})
	}
}
