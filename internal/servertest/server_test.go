package servertest

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestClusterLosesItsLeader lets a cluster of three elect another leader, and starts the first one again with its data.
func TestClusterLosesItsLeader(t *testing.T) {
	t.Setenv("QUORATE_SERVER", "http://127.0.0.1:1") // must reach neither servers nor commands
	t.Setenv("QUORATE_SERVER_HTTP_ADDR", "nonsense")
	c := StartCluster(t, Settings{Patience: patience})
	first, others := c.Leader(t)
	if len(others) != 2 || slices.Contains(others, first) {
		t.Fatalf("%s leads %v", first.ID, others)
	}
	first.Kill()
	if second, _ := c.Leader(t); second == first {
		t.Errorf("%s leads after its end", first.ID)
	}
	others[0].Run(t, "account", "list") // by one that runs
	first.Restart(t)
	var list struct{ Members []struct{ Reachable bool } }
	if err := json.Unmarshal([]byte(first.Run(t, "member", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Members) != 3 {
		t.Errorf("the restarted server knows %v", list.Members)
	}
	out, err := c.Try(t, "nonsense")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || out != "" || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("an unknown command prints %q and ends with %v", out, err)
	}
}

// TestEncryptedServer starts a server that requires certificates of callers.
func TestEncryptedServer(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "certs")
	(&Client{Patience: patience}).Run(t, "tls", "create", folder, "--nodes", "n1", "--cluster-name", "secured")
	c := StartCluster(t, Settings{
		Size: 1, Certificates: folder, ClientAuth: true, Patience: patience,
		Each: func(i int, s *Server) {
			if i != 0 || s.ID != "n1" {
				t.Errorf("server %d is %s", i, s.ID)
			}
			s.Args = append(s.Args, "--cluster-name", "secured")
		},
	})
	s := c.Servers[0]
	if leader, others := c.Leader(t); leader != s || len(others) > 0 || !strings.HasPrefix(s.URL(), "https://") {
		t.Errorf("%s at %s leads, others are %v", leader.ID, s.URL(), others)
	}
	if out := c.Run(t, "status", "-o", "json"); !strings.Contains(out, `"secured"`) {
		t.Errorf("status prints %s", out)
	}
	unknown := s.Client
	unknown.Cert, unknown.Key = "", ""
	if out, err := unknown.Try(t, "status", "--timeout", "5s"); err == nil {
		t.Errorf("a caller without a certificate is answered %s", out)
	}
}

// TestServerThatEndsEarly wants the wait to end at once, with what the server said.
func TestServerThatEndsEarly(t *testing.T) {
	s := Server{ID: "n1", Args: []string{"server", "run", "--no-such-flag"}, ReadyURL: "http://127.0.0.1:1/readyz"}
	s.URLs, s.Patience = []string{"http://127.0.0.1:1"}, time.Hour
	r := record(t, func(inner *recorder) {
		s.Start(t)
		s.AwaitReady(inner)
	})
	for _, want := range []string{"n1 ended before it was ready", "exit status", "no-such-flag"} {
		if !strings.Contains(r.said.String(), want) {
			t.Errorf("the test says %s, want %q", r.said.String(), want)
		}
	}
}

// TestCommandThatRunsTooLong gives a command no time.
func TestCommandThatRunsTooLong(t *testing.T) {
	file := Quorate.Path(t)
	c := Client{URLs: []string{"http://127.0.0.1:1"}, Patience: time.Nanosecond}
	if _, err := c.runFile(file, []string{"status"}); err == nil || !strings.Contains(err.Error(), "after 1ns") {
		t.Errorf("it ends with %v", err)
	}
	r := record(t, func(inner *recorder) { c.Run(inner, "status") })
	if !r.failed || !strings.Contains(r.said.String(), "quorate status") {
		t.Errorf("failed %v: %s", r.failed, r.said.String())
	}
}

func TestEnvironmentOfCommands(t *testing.T) {
	t.Setenv("QUORATE_TOKEN", "of the machine")
	t.Setenv("SERVERTEST_OTHER", "kept")
	c := Client{URLs: []string{"http://a", "http://b"}, Token: "own", CA: "ca.crt"}
	var got []string
	for _, variable := range c.Environment() {
		if strings.HasPrefix(variable, "QUORATE_") || strings.HasPrefix(variable, "SERVERTEST_") {
			got = append(got, variable)
		}
	}
	want := []string{
		"SERVERTEST_OTHER=kept", "QUORATE_SERVER=http://a,http://b", "QUORATE_TOKEN=own", "QUORATE_TLS_CA=ca.crt",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestProgramThatDoesNotCompile wants the output of the compiler, from every test that needs the program.
func TestProgramThatDoesNotCompile(t *testing.T) {
	p := Program{Package: "./cmd/nonexistent"}
	for range 2 {
		r := record(t, func(inner *recorder) { p.Path(inner) })
		if !r.failed || !strings.Contains(r.said.String(), "cmd/nonexistent") {
			t.Errorf("failed %v: %s", r.failed, r.said.String())
		}
	}
}

// TestGivenBinary: QUORATE_BINARY replaces the program under test and no other.
func TestGivenBinary(t *testing.T) {
	t.Setenv("QUORATE_BINARY", "bin/given")
	if file, err := Quorate.findOrBuild(); err != nil || file != filepath.Join(testFolder, "bin/given") {
		t.Errorf("%s, %v", file, err)
	}
	other := Program{Package: "./cmd/nonexistent"}
	if _, err := other.findOrBuild(); err == nil {
		t.Error("another program is replaced too")
	}
}

func TestModuleRoot(t *testing.T) {
	root, err := moduleRoot(filepath.Join(testFolder, "../../adapters/kubernetes/clustertest"))
	if want := filepath.Join(testFolder, "../.."); err != nil || root != want {
		t.Errorf("%s, %v, want %s", root, err, want)
	}
	if root, err := moduleRoot(t.TempDir()); err == nil {
		t.Errorf("a folder outside of the repository is below %s", root)
	}
}
