package scenarios

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

type secured struct{ *servertest.Server }

func startSecured(t *testing.T) secured {
	t.Helper()
	certs := filepath.Join(t.TempDir(), "certs")
	(&servertest.Client{Patience: patience}).Run(t, "tls", "create", certs, "--nodes", "n1")
	c := servertest.StartCluster(t, servertest.Settings{
		Size: 1, Certificates: certs, ClientAuth: true, Patience: patience,
	})
	c.Run(t, "apply", "-f", "lab.yaml")
	return secured{c.Servers[0]}
}

// environment names the certificates as the command line and the examples read them.
func (s secured) environment(withCertificate bool) []string {
	env := []string{"QUORATE_TLS_CA=" + s.CA, "QUORATE_CURL=--cacert " + s.CA}
	if withCertificate {
		env = []string{
			"QUORATE_TLS_CA=" + s.CA, "QUORATE_TLS_CERT=" + s.Cert, "QUORATE_TLS_KEY=" + s.Key,
			"QUORATE_CURL=--cacert " + s.CA + " --cert " + s.Cert + " --key " + s.Key,
		}
	}
	return env
}

// testTLS runs an example with the right certificates, without any, and without one of its own.
func testTLS(t *testing.T, s secured, required, unknown string, command ...string) {
	t.Helper()
	command = append(command, s.URL(), "lab:physics", "cores=4")
	if out, status := runIn(t, ".", s.environment(true), command...); status != 0 || !strings.Contains(out, "released") {
		t.Errorf("%v ends with status %d:\n%s", command, status, out)
	}
	if out, status := runIn(t, ".", nil, command...); status == 0 || !strings.Contains(out, unknown) {
		t.Errorf("without an authority %v ends with status %d, want %q:\n%s", command, status, unknown, out)
	}
	if required == "" { // the client cannot tell it from a connection that breaks, and tries again
		return
	}
	if out, status := runIn(t, ".", s.environment(false), command...); status == 0 || !strings.Contains(out, required) {
		t.Errorf("without a certificate %v ends with status %d, want %q:\n%s", command, status, required, out)
	}
}

func TestPythonTLS(t *testing.T) {
	verify.Only(t) // five seconds
	requireTools(t, "python3")
	testTLS(t, startSecured(t), "the server requires a client certificate: name one with its key",
		"name the authority of the cluster (ca)", pythonExample.command...)
}

func TestTypeScriptTLS(t *testing.T) {
	requireTypeScript(t)
	testTLS(t, startSecured(t), "CERTIFICATE_REQUIRED", "certificate", "node", typescript+"/.build/example.js")
}

func TestCurlTLS(t *testing.T) {
	verify.Only(t) // ten seconds
	requireTools(t, "curl", "jq")
	testTLS(t, startSecured(t), "", "TLS failed: curl ends with status 60", curl+"/example.sh")
}
