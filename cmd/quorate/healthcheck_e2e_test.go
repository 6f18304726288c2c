package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func checkHealth(t *testing.T, environment []string, code int, says string, args ...string) {
	t.Helper()
	end := startWithEnv(t, environment, append([]string{"server", "probe"}, args...)...).awaitEnd(t)
	said := end.stdout + end.stderr
	if end.code != code || strings.Count(said, "\n") != 1 || !strings.Contains(said, says) {
		t.Errorf("server probe %v with %v: %+v, want exit code %d and one line with %q", args, environment, end, code, says)
	}
}

func writeConfiguration(t *testing.T, f serverFlags, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "quorate.yaml")
	text := fmt.Sprintf("id: %s\ndata-dir: %s\nhttp-addr: %s\nraft-addr: %s\ngossip-addr: %s\n%s", f.id, f.dir, f.http,
		f.raft, f.gossip, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHealthcheck: the configuration of a server is enough to ask it, and one answer decides.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	file := writeConfiguration(t, f, "")
	checkHealth(t, nil, 1, f.baseURL()+" does not answer", "--config", file)
	server := startProcess(t, "server", "run", "--config", file)
	awaitReady(t, server, f)
	checkHealth(t, nil, 0, f.baseURL()+" is ready", "--config", file)
	checkHealth(t, []string{"QUORATE_SERVER_CONFIG=" + file}, 0, " is ready")
	checkHealth(t, []string{"QUORATE_SERVER_HTTP_ADDR=" + f.http}, 0, " is ready")
	checkHealth(t, nil, 0, "live\n", "--config", file, "--live", "--jq", ".state")
	checkHealth(t, nil, 0, " is ready", "--server", f.http)
	checkHealth(t, nil, 1, "name exactly one server", "--server", f.http+","+f.http)
	checkHealth(t, nil, 1, "not both", "--server", f.http, "--config", file)
	checkHealth(t, nil, 1, "reading the configuration", "--config", file+".missing")
	server.stopCleanly(t)
	checkHealth(t, nil, 1, "does not answer", "--config", file, "--live")
}

// TestHealthcheckOfAServerWithoutACluster: a server that waits for others is live and not ready, and says why.
func TestHealthcheckOfAServerWithoutACluster(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	file := writeConfiguration(t, f, "bootstrap-expect: 0\n")
	startProcess(t, "server", "run", "--config", file)
	awaitCondition(t, "the server does not live", func() bool {
		return runCommand(t, "server", "probe", "--config", file, "--live").code == 0
	})
	checkHealth(t, nil, 1, "is not ready: ", "--config", file)
}

// TestHealthcheckWithCertificates: a server that requires certificates accepts that of its own node, which need not
// name the address that is asked, and another node in its place is refused.
func TestHealthcheckWithCertificates(t *testing.T) {
	t.Parallel()
	certs := makeCerts(t)
	f := singleServer(t)
	_, port, err := net.SplitHostPort(f.http)
	if err != nil {
		t.Fatal(err)
	}
	f.http = ":" + port
	settings := func(node string) string {
		return fmt.Sprintf("advertise-http-addr: 127.0.0.1:%s\ntls-ca: %s\ntls-cert: %s\ntls-key: %s\n"+
			"tls-client-auth: require\ngossip-keys-file: %s\n", port, certs.CA(), certs.Cert(node), certs.Key(node),
			certs.GossipKeys())
	}
	file := writeConfiguration(t, f, settings("n1"))
	startProcess(t, "server", "run", "--config", file)
	awaitCondition(t, "the server is not ready", func() bool {
		return runCommand(t, "server", "probe", "--config", file).code == 0
	})
	checkHealth(t, nil, 0, "https://127.0.0.1:"+port+" is ready", "--config", file)
	other := f
	other.id = "n2"
	checkHealth(t, nil, 1, "node n2 was called", "--config", writeConfiguration(t, other, settings("n2")))
	checkHealth(t, nil, 1, "tls-cert", "--config", writeConfiguration(t, other, settings("n1")))
	url := "https://localhost:" + port
	checkHealth(t, nil, 0, " is ready", clientTLSFlags(certs, url, "client")...)
	checkHealth(t, nil, 1, "certificate", "--server", url, "--tls-ca", certs.CA())
}
