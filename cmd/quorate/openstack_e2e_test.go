package main_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/verify"
)

// The interpreter that has Debian's modules; another one may come first in the path.
const debianPython = "/usr/bin/python3"

// needOpenStack skips a test on machines without the programs that it runs.
func needOpenStack(t *testing.T, programs ...string) {
	t.Helper()
	verify.Only(t) // compat/keystone/conformance sends the same requests without the programs
	for _, program := range append([]string{"openstack", debianPython}, programs...) {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v; \"make openstack\" installs it", err)
		}
	}
	if out, err := exec.Command(debianPython, "-c", "import oslo_limit").CombinedOutput(); err != nil {
		t.Skipf("oslo.limit is missing: %v\n%s\"make openstack\" installs it", err, out)
	}
}

// openstackTree is a service whose projects give to each other.
const openstackTree = `trees:
  glance:
    policy: strict
    labels: {keystone/service-type: image, keystone/endpoint: 5f2a8d}
    resources: {image_count_total: {unit: count}}
    limits: {image_count_total: 100}
    nodes:
      science:
        limits: {image_count_total: 20}
        nodes:
          atlas: {labels: {keystone/name: ATLAS}, limits: {image_count_total: 3}}
          cms: {limits: {image_count_total: 10}}
`

type enforcer struct {
	requests io.Writer
	answers  *bufio.Scanner
}

// startEnforcer starts oslo.limit with the configuration of a service that asks one server, with more lines in it.
func startEnforcer(t *testing.T, url string, more ...string) *enforcer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "service.conf")
	text := "[oslo_limit]\nauth_type = admin_token\nendpoint = " + url +
		"/keystone/v3\ntoken = any\nendpoint_id = 5f2a8d\ntimeout = 30\n" + strings.Join(more, "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(debianPython, "../../examples/openstack/enforce.py", file)
	requests, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, answered := io.Pipe()
	command.Stdout = answered
	startCommand(t, command)
	t.Cleanup(func() {
		_ = requests.Close() // ends the process
		_ = answers.Close()
	})
	return &enforcer{requests, bufio.NewScanner(answers)}
}

// ask returns what oslo.limit says of a request: ok, over and the limit, or failed and the kind of error.
func (e *enforcer) ask(t *testing.T, project string, used, delta int) string {
	t.Helper()
	if _, err := fmt.Fprintln(e.requests, project, "image_count_total", used, delta); err != nil {
		t.Fatal(err)
	}
	if !e.answers.Scan() {
		t.Fatal("oslo.limit has ended")
	}
	return e.answers.Text()
}

func openstack(t *testing.T, f serverFlags, args string) outcome {
	t.Helper()
	command := exec.Command("openstack", strings.Fields(args)...)
	command.Env = []string{
		"OS_AUTH_TYPE=admin_token", "OS_TOKEN=any", "OS_ENDPOINT=" + f.baseURL() + "/keystone/v3",
		"OS_IDENTITY_API_VERSION=3",
	}
	return startCommand(t, command).awaitEnd(t)
}

// TestOpenStackOverACluster: oslo.limit and openstackclient, unchanged, at three servers whose leader is killed. What
// oslo.limit allows and refuses is right before, meanwhile and after; while it gets no answer it allows nothing.
func TestOpenStackOverACluster(t *testing.T) {
	needOpenStack(t)
	t.Parallel()
	nodes := threeServers(t)
	var servers []*process
	for i := range nodes {
		nodes[i].more = append(nodes[i].more, "--front-ends", "keystone")
		servers = append(servers, startProcess(t, nodes[i].commandLine()...))
	}
	for i := range nodes {
		awaitReady(t, servers[i], nodes[i])
	}
	playSteps(t, nodes[0], []step{{"apply -f " + manifestFile(t, openstackTree), 0, "applied"}})
	leader := leaderIndex(t, nodes)
	atLeader, atOther := startEnforcer(t, nodes[leader].baseURL()), startEnforcer(t, nodes[(leader+1)%3].baseURL())
	for _, e := range []*enforcer{atLeader, atOther} {
		for _, c := range []struct {
			project     string
			used, delta int
			want        string
		}{
			{"atlas", 2, 1, "ok"},
			{"atlas", 3, 1, "over 3"},
			{"cms", 0, 10, "ok"},
			{"cms", 0, 11, "over 10"},
			{"science", 6, 1, "ok"},
			{"science", 7, 1, "over 7"},
			{"stranger", 0, 1, "over 0"},
		} {
			if got := e.ask(t, c.project, c.used, c.delta); got != c.want {
				t.Errorf("%s with %d asks for %d: %s, want %s", c.project, c.used, c.delta, got, c.want)
			}
		}
	}

	if err := servers[leader].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-servers[leader].ended
	if got := atLeader.ask(t, "atlas", 0, 1); !strings.HasPrefix(got, "failed ") {
		t.Errorf("a service whose server is dead says: %s", got)
	}
	answered := map[string]int{}
	for begin := time.Now(); answered["ok"] < 20; {
		if time.Since(begin) > patience {
			t.Fatalf("after %v: %v", patience, answered)
		}
		for _, c := range []struct {
			used int
			want string
		}{{2, "ok"}, {3, "over 3"}} {
			got := atOther.ask(t, "atlas", c.used, 1)
			if got != c.want && !strings.HasPrefix(got, "failed ") {
				t.Fatalf("atlas with %d asks for one more: %s, want %s", c.used, got, c.want)
			}
			answered[got]++
		}
	}
	t.Logf("answers since the leader was killed: %v", answered)
	setLimits(t, nodes[(leader+2)%3], atOther)
}

// TestOpenStackOverTLS: oslo.limit asks a server with a certificate of the cluster's own authority, which cafile names,
// and gets no number from one that it cannot verify.
func TestOpenStackOverTLS(t *testing.T) {
	needOpenStack(t)
	t.Parallel()
	certs, foreign := makeCerts(t), makeCerts(t)
	f := singleServer(t, "--front-ends", "keystone")
	f.more = append(f.more, "--tls-ca", certs.CA(), "--tls-cert", certs.Cert(f.id), "--tls-key", certs.Key(f.id))
	startProcess(t, f.commandLine()...)
	url, flags := "https://"+f.http, []string{"--server", "https://" + f.http, "--tls-ca", certs.CA()}
	awaitCondition(t, "the server does not answer", func() bool {
		return runCommand(t, append([]string{"status"}, flags...)...).code == 0
	})
	apply := append([]string{"apply", "-f", manifestFile(t, openstackTree)}, flags...)
	if end := runCommand(t, apply...); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	verified := startEnforcer(t, url, "cafile = "+certs.CA())
	if got := verified.ask(t, "atlas", 2, 1) + ", " + verified.ask(t, "atlas", 3, 1); got != "ok, over 3" {
		t.Error(got)
	}
	for _, authority := range []string{"", "cafile = " + foreign.CA()} {
		if got := startEnforcer(t, url, authority).ask(t, "atlas", 0, 1); !strings.HasPrefix(got, "failed ") {
			t.Errorf("with %q: %s", authority, got)
		}
	}
}

// TestOpenStackPage runs the commands of docs/with-openstack.md, those of openstackclient and oslo.limit too.
func TestOpenStackPage(t *testing.T) {
	needOpenStack(t)
	t.Parallel()
	playPageInFolder(t, "docs/with-openstack.md", "--front-ends", "keystone")
}

func leaderIndex(t *testing.T, nodes []serverFlags) int {
	t.Helper()
	found := regexp.MustCompile(`"leaderId": "n([1-3])"`).FindStringSubmatch(
		runCommand(t, "status", "-o", "json", "--server", nodes[0].baseURL()).stdout)
	if found == nil {
		t.Fatal("no server leads")
	}
	return int(found[1][0] - '1')
}

// setLimits changes limits at one server as people do, and sees that a service that asks another one follows at once.
func setLimits(t *testing.T, f serverFlags, e *enforcer) {
	t.Helper()
	const id = "glance:science~atlas:image_count_total"
	if end := openstack(t, f, "limit set --resource-limit 11 --description ticket-7 "+id); end.code == 0 ||
		!strings.Contains(end.stderr, "add up to 21, more than its limit of 20") || !strings.Contains(end.stderr, "403") {
		t.Errorf("a breach of the policy: %+v", end)
	}
	for _, command := range []string{
		"limit set --resource-limit 5 --description ticket-8 " + id,
		"limit list --project ATLAS --service image -f value",
		"limit show " + id,
	} {
		if end := openstack(t, f, command); end.code != 0 || !strings.Contains(end.stdout, "5") {
			t.Errorf("%s: %+v", command, end)
		}
	}
	if got := e.ask(t, "atlas", 4, 1) + ", " + e.ask(t, "science", 5, 1); got != "ok, over 5" {
		t.Errorf("after the change: %s", got)
	}
	for _, c := range []struct {
		command string
		code    int
	}{
		{"limit delete " + id, 0},
		{"limit delete " + id, 1},
		{"limit create --project ATLAS --service image --resource-limit 1 image_count_total", 0},
		{"limit create --project ATLAS --service image --resource-limit 1 image_count_total", 1},
		{"limit create --project nobody --service image --resource-limit 1 image_count_total", 1},
	} {
		if end := openstack(t, f, c.command); end.code != c.code {
			t.Errorf("%s: %+v", c.command, end)
		}
	}
	if got := e.ask(t, "atlas", 0, 1) + ", " + e.ask(t, "atlas", 1, 1); got != "ok, over 1" {
		t.Errorf("after the limit was deleted and set again: %s", got)
	}
	playSteps(t, f, []step{{"revision list", 0, "keystone: ticket-8"}})
}
