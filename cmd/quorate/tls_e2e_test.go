package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/pki"
)

func makeCerts(t *testing.T) pki.Folder {
	t.Helper()
	certs := pki.Folder(filepath.Join(t.TempDir(), "certs"))
	if end := runCommand(t, "tls", "create", string(certs), "--nodes", "n1,n2,n3"); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	return certs
}

// TestTLSCreateKeeps: with --exists-ok a second run changes nothing, and one after an interrupted run says what is
// missing.
func TestTLSCreateKeeps(t *testing.T) {
	t.Parallel()
	certs := makeCerts(t)
	init := func(nodes string) outcome {
		return runCommand(t, "tls", "create", string(certs), "--nodes", nodes, "--exists-ok")
	}
	before, err := os.ReadFile(certs.CA())
	if err != nil {
		t.Fatal(err)
	}
	if end := init("n1,n2=10.0.0.2,n3"); end.code != 0 || !strings.Contains(end.stderr, "kept") {
		t.Errorf("again: %+v", end)
	}
	if after, err := os.ReadFile(certs.CA()); err != nil || string(after) != string(before) {
		t.Errorf("the authority changed: %v", err)
	}
	if end := init("n1,n2,n3,n4"); end.code != 1 || !strings.Contains(end.stderr, "n4.crt") {
		t.Errorf("with another node: %+v", end)
	}
	certs = pki.Folder(filepath.Join(t.TempDir(), "new"))
	if end := init("n1"); end.code != 0 || !certs.HasAuthority() {
		t.Errorf("in a new folder: %+v", end)
	}
}

func (f *serverFlags) withTLS(certs pki.Folder) {
	f.more = append(append([]string{}, f.more...), "--tls-ca", certs.CA(), "--tls-cert", certs.Cert(f.id), "--tls-key",
		certs.Key(f.id),
		"--tls-client-auth", "require", "--gossip-keys-file", certs.GossipKeys())
}

// clientTLSFlags are the flags of a command that presents a client certificate.
func clientTLSFlags(certs pki.Folder, server, name string) []string {
	return []string{
		"--server", server, "--tls-ca", certs.CA(), "--tls-cert", certs.Cert(name), "--tls-key",
		certs.Key(name),
	}
}

func tlsConfig(t *testing.T, files pki.Files) *tls.Config {
	t.Helper()
	config, err := pki.ClientConfig(files, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// certificateSerial is empty if the address presents no certificate.
func certificateSerial(t *testing.T, address string, files pki.Files) string {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", address, tlsConfig(t, files))
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// TestThreeEncryptedServers: all connections are encrypted, callers without a valid certificate are refused, and
// certificates are renewed while calls run.
func TestThreeEncryptedServers(t *testing.T) {
	t.Parallel()
	certs, foreign := makeCerts(t), makeCerts(t)
	flags := threeServers(t)
	servers := map[string]*process{}
	var urls []string
	for i := range flags {
		flags[i].withTLS(certs)
		servers[flags[i].id] = startProcess(t, flags[i].commandLine()...)
		urls = append(urls, "https://"+flags[i].http)
	}
	all := strings.Join(urls, ",")
	awaitCondition(t, "three members do not answer", func() bool {
		end := runCommand(t, append([]string{"status"}, clientTLSFlags(certs, all, "client")...)...)
		return end.code == 0 && strings.Count(end.stdout, " yes ") == 3 &&
			!strings.Contains(end.stdout, "does not answer") && !strings.Contains(end.stdout, "none")
	})
	if end := runCommand(
		t, append([]string{"apply", "-f", "../../examples/cern.yaml"},
			clientTLSFlags(certs, all, "client")...)...); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	strangersStayOutside(t, flags[0], servers["n1"], certs, foreign)
	calls := keepCalling(t, urls, certs)
	for _, f := range flags {
		renewCertificate(t, f, servers[f.id], certs)
	}
	calls()
	var page string
	for _, name := range append(withCertificates, "quorate_member_unreachable_seconds") {
		awaitCondition(t, "a server with certificates does not tell "+name, func() bool {
			_, page = getShowing(t, "https://"+flags[0].http+"/metrics", certs.Files("client"))
			return strings.Contains(page, "\n"+name+"{")
		})
	}
	checkMetricRules(t, page)
	servers["n1"].stopCleanly(t)
}

func getShowing(t *testing.T, url string, files pki.Files) (status int, body string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: tlsConfig(t, files), DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

func strangersStayOutside(t *testing.T, f serverFlags, server *process, certs, foreign pki.Folder) {
	t.Helper()
	url := "https://" + f.http
	for name, tc := range map[string]struct {
		args []string
		says string
		code int
	}{
		"plain text":          {[]string{"--server", "http://" + f.http}, "the server uses TLS: use https://", 6},
		"no certificate":      {[]string{"--server", url, "--tls-ca", certs.CA()}, "requires a client certificate", 4},
		"a foreign authority": {clientTLSFlags(foreign, url, "client"), "is not trusted here", 6},
		"a foreign client": {
			[]string{
				"--server", url, "--tls-ca", certs.CA(), "--tls-cert", foreign.Cert("client"), "--tls-key",
				foreign.Key("client"),
			}, "certificate", 4,
		},
		"a key without a cert": {[]string{"--server", url, "--tls-key", certs.Key("client")}, "belong together", 2},
	} {
		if end := runCommand(t, append([]string{"status"}, tc.args...)...); end.code != tc.code ||
			!strings.Contains(end.stderr, tc.says) {
			t.Errorf("%s: %+v", name, end)
		}
	}
	// The raft port accepts neither client certificates nor plain text.
	for name, dial := range map[string]func() (net.Conn, error){
		"a client": func() (net.Conn, error) { return tls.Dial("tcp", f.raft, tlsConfig(t, certs.Files("client"))) },
		"plain text": func() (net.Conn, error) {
			c, err := net.Dial("tcp", f.raft)
			if err != nil {
				return nil, err
			}
			_, err = c.Write(make([]byte, 64))
			return c, err
		},
	} {
		c, err := dial()
		if err != nil {
			continue // it was already refused
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, err = io.ReadAll(c)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("raft lets %s in", name)
		}
		_ = c.Close()
	}
	awaitCondition(t, "nothing was said of strangers", func() bool {
		return strings.Contains(server.stderr.String(), "refused a connection to the raft port")
	})
}

func keepCalling(t *testing.T, urls []string, certs pki.Folder) (stop func()) {
	t.Helper()
	c, err := client.New(urls, client.WithTLS(tlsConfig(t, certs.Files("client"))), client.WithPatience(2*patience))
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var calling sync.WaitGroup
	calling.Go(func() {
		for i := 0; !ended.Load(); i++ {
			r := oneClaim(fmt.Sprintf("call-%d", i), 1)
			r.Claims[0].Tree, r.Claims[0].Node, r.TtlMs = "cern", "atlas/operations/web", 1000
			if _, err := c.Allocations.Allocate(t.Context(), r); err != nil {
				if _, denied := client.DecisionOf(err); !denied && t.Context().Err() == nil {
					t.Errorf("call %d: %v", i, err)
					return
				}
			}
		}
	})
	t.Cleanup(func() { ended.Store(true); calling.Wait() })
	return func() { ended.Store(true); calling.Wait() }
}

// renewCertificate replaces a server's certificate and waits until both ports present the new one.
func renewCertificate(t *testing.T, f serverFlags, server *process, certs pki.Folder) {
	t.Helper()
	fresh := pki.Folder(t.TempDir())
	if end := runCommand(t, "tls", "create", string(certs), "--nodes", f.id, "--out", string(fresh)); end.code != 0 {
		t.Fatalf("%+v", end)
	}
	list, err := pki.Inspect(fresh.Cert(f.id))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{fresh.Cert(f.id): certs.Cert(f.id), fresh.Key(f.id): certs.Key(f.id)} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	server.sendSignal(t, syscall.SIGHUP)
	for address, shows := range map[string]pki.Files{f.http: certs.Files("client"), f.raft: certs.Files("client")} {
		awaitCondition(t, f.id+" does not show its new certificate",
			func() bool { return certificateSerial(t, address, shows) == list[0].SerialNumber.String() })
	}
}

// addressFlag sets an address, by its key or by the front end that it is for.
func addressFlag(address, value string) []string {
	if address == "boskos" {
		return []string{"--front-ends", "boskos=" + value}
	}
	return []string{"--" + address, value}
}

// TestServersOfOtherMachinesAreNotServedInPlainText: plain text on addresses other than loopback needs an explicit
// flag.
func TestServersOfOtherMachinesAreNotServedInPlainText(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	check := func(more ...string) outcome {
		return runCommand(t, append([]string{"server", "run", "--check", "--id", "n1", "--data-dir", data}, more...)...)
	}
	keys := makeCerts(t).GossipKeys()
	for _, address := range []string{"http-addr", "raft-addr", "pprof-addr", "gossip-addr", "boskos"} {
		for _, value := range []string{"0.0.0.0:7101", ":7101", "10.0.0.1:7101", "[::]:7101", "example.org:7101"} {
			end := check(addressFlag(address, value)...)
			what, way := address, "set insecure"
			switch address {
			case "gossip-addr":
				way = "set gossip-keys-file"
			case "boskos":
				what = "the address of boskos in front-ends"
			}
			if end.code != 2 || !strings.Contains(end.stderr, what+" is ") || !strings.Contains(end.stderr, way) {
				t.Errorf("%s %s: %+v", address, value, end)
			}
		}
		for _, more := range [][]string{
			addressFlag(address, "localhost:7101"),
			addressFlag(address, "[::1]:7101"),
			append(addressFlag(address, "10.0.0.1:7101"), "--insecure", "--gossip-keys-file", keys),
		} {
			if end := check(more...); end.code != 0 {
				t.Errorf("%v: %+v", more, end)
			}
		}
	}
	if end := check("--metrics-addr", "10.0.0.1:7401"); end.code != 0 { // it is for plain text
		t.Errorf("metrics for other machines: %+v", end)
	}
	if end := check("--metrics-addr", "10.0.0.1"); end.code != 2 || !strings.Contains(end.stderr, "metrics-addr is ") {
		t.Errorf("no port for metrics: %+v", end)
	}
	certs := makeCerts(t)
	f := serverFlags{id: "n1"}
	f.withTLS(certs)
	if end := check(append(f.more, "--http-addr", "10.0.0.1:7101", "--raft-addr", "10.0.0.1:7201", "--gossip-addr",
		"10.0.0.1:7301")...); end.code != 0 {
		t.Errorf("with certificates and keys: %+v", end)
	}
	for says, more := range map[string][]string{
		"tls-key is missing": {"--tls-ca", certs.CA(), "--tls-cert", certs.Cert("n1")},
		"and this is node n1": {
			"--tls-ca", certs.CA(), "--tls-cert", certs.Cert("n2"), "--tls-key",
			certs.Key("n2"),
		},
		"allowed are none":     {"--tls-client-auth", "maybe"},
		"line 1 is not base64": {"--gossip-keys-file", certs.Cert("n1")},
		"that of client": {
			"--tls-ca", certs.CA(), "--tls-cert", certs.Cert("client"), "--tls-key",
			certs.Key("client"),
		},
		"would send what it does not hear": {"--gossip-keys-file", keys, "--gossip-verify-outgoing=false"},
		"or leave them true":               {"--gossip-verify-incoming=false"},
		"head -c 32 /dev/urandom | base64": {"--gossip-addr", "10.0.0.1:7301", "--insecure"},
	} {
		if end := check(more...); end.code != 2 || !strings.Contains(end.stderr, says) {
			t.Errorf("%v: %+v", more, end)
		}
	}
}

// TestCertificatesOfTheCommandLine checks the names and uses in the certificates that "quorate tls create" makes.
func TestCertificatesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	certs := makeCerts(t)
	if end := runCommand(t, "tls", "create", string(certs), "--nodes", "n1"); end.code != 1 ||
		!strings.Contains(end.stderr, "is not overwritten") {
		t.Errorf("%+v", end)
	}
	if end := runCommand(t, "tls", "create", string(certs), "--nodes", "n4", "--hosts", "10.0.0.4,n4.test", "--days",
		"30"); end.code != 0 {
		t.Errorf("%+v", end)
	}
	if end := runCommand(t, "tls", "create", string(certs), "--client", "ops"); end.code != 0 {
		t.Errorf("%+v", end)
	}
	for name, says := range map[string]string{
		"n4":  "node n4 of cluster quorate\nhosts    n4 n4.test 10.0.0.4\n",
		"ops": "client ops of cluster quorate\n", "ca": "authority\n",
	} {
		if end := runCommand(t, "tls", "show", certs.Cert(name)); end.code != 0 ||
			!strings.Contains(end.stdout, says) || !strings.Contains(end.stdout, "days left") {
			t.Errorf("%s: %+v", name, end)
		}
	}
	list, err := pki.Inspect(certs.Cert("ops"))
	if err != nil || len(list[0].ExtKeyUsage) != 1 || list[0].ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		t.Errorf("the client's certificate is for %v, %v", list, err)
	}
}
