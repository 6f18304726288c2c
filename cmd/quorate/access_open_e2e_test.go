package main_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNoClusterIsOpenByAccident: a new server on all addresses refuses calls until bootstrap, which guards the cluster.
// What was decided for its folder stays, and insecure-open serves everyone.
func TestNoClusterIsOpenByAccident(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("secret"), []byte(strings.Repeat("s", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	certs := in("certs")
	if end := runCommand(t, "tls", "create", certs, "--nodes", "n1=127.0.0.1"); end.code != 0 {
		t.Fatalf("tls create: %+v", end)
	}
	start := func(dataDir string, more ...string) (serverFlags, *process) {
		f := singleServer(t, append(more, "--tls-ca", filepath.Join(certs, "ca.crt"),
			"--tls-cert", filepath.Join(certs, "n1.crt"), "--tls-key", filepath.Join(certs, "n1.key"))...)
		f.dir = dataDir
		_, port, err := net.SplitHostPort(f.http)
		if err != nil {
			t.Fatal(err)
		}
		f.more = append(f.more, "--advertise-http-addr", f.http)
		f.http = "0.0.0.0:" + port
		p := startProcess(t, f.commandLine()...)
		f.http = "127.0.0.1:" + port
		return f, p
	}
	steps := func(f serverFlags, steps ...step) {
		t.Helper()
		for i := range steps {
			steps[i].args += " --server https://" + f.http + " --tls-ca " + filepath.Join(certs, "ca.crt")
		}
		playSteps(t, f, steps)
	}
	awaitStatus := func(f serverFlags) {
		t.Helper()
		awaitCondition(t, "the server has no leader", func() bool {
			end := runCommand(t, "status", "--server", "https://"+f.http, "--tls-ca", filepath.Join(certs, "ca.crt"))
			return end.code == 0 && strings.Contains(end.stdout, "n1")
		})
	}
	manifest := "apply -f " + manifestFile(t, "trees: {lab: {resources: {cores: {unit: count}}, limits: {cores: 9}}}")

	f, p := start(in("new"), "--bootstrap-secret-file", in("secret"))
	awaitStatus(f)
	steps(f, step{manifest, 3, "quorate token create"}, step{"tree list", 3, "insecure-open"},
		step{"access whoami", 0, "open"})
	p.stopCleanly(t)
	f, p = start(in("new"), "--bootstrap-secret-file", in("secret")) // the folder is not new any more
	awaitStatus(f)
	steps(f, step{"tree list", 3, "does not serve an open cluster"},
		step{"token create --secret-file " + in("secret") + " --out " + in("root"), 0, ""},
		step{"access whoami --token-file " + in("root"), 0, "guarded"},
		step{manifest + " --token-file " + in("root"), 0, "applied"}, step{"tree list", 0, ""},
		step{manifest, 1, "there is no"})
	p.stopCleanly(t)

	f, p = start(in("open"), "--insecure-open")
	awaitStatus(f)
	steps(f, step{manifest, 0, "applied"})
	p.stopCleanly(t)

	// A folder of an earlier version has no note.
	if err := os.Remove(filepath.Join(in("open"), "access.json")); err != nil {
		t.Fatal(err)
	}
	f, p = start(in("open"))
	awaitStatus(f)
	steps(f, step{"tree list", 0, "lab"})
	if said := p.stderr.String(); !strings.Contains(said, "set insecure-open") {
		t.Errorf("the server does not warn: %s", said)
	}
	p.stopCleanly(t)
}

// TestDevGuarded: it prints a token of an administrator of a guarded cluster.
func TestDevGuarded(t *testing.T) {
	t.Parallel()
	p := startCommandIn(t, t.TempDir(), "server", "dev", "--http-addr", "127.0.0.1:0", "--guarded")
	const mark = "export QUORATE_TOKEN="
	for deadline := time.Now().Add(patience); !strings.Contains(p.stdout.String(), "quorate usage cern\n"); {
		if time.Now().After(deadline) || !p.isRunning() {
			t.Fatal("server dev prints no token")
		}
		time.Sleep(20 * time.Millisecond)
	}
	said := p.stdout.String()
	if strings.Index(said, mark) > strings.Index(said, "quorate apply") {
		t.Errorf("the first command is refused without the token, which is printed after it:\n%s", said)
	}
	after := func(mark string) string {
		_, rest, _ := strings.Cut(said, mark)
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	url := after("QUORATE_SERVER=")
	for token, want := range map[string]int{
		"": http.StatusOK, after(mark): http.StatusOK, "qrt_x": http.StatusUnauthorized,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/quorate.v1.TreeService/ListTrees",
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("with the token %q the server answers %d, want %d", token, answer.StatusCode, want)
		}
	}
}
