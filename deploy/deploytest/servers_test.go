package deploytest_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
)

// patience is the timeout of a single step on a busy machine.
const patience = 4 * time.Minute

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// clusterName differs from the default, so that the default is not what makes the queries work.
const clusterName = "watched"

// watchedTree has what the dashboards show: several nodes, an advisory limit, items and leases.
const watchedTree = `trees:
  lab:
    policy: open
    leases: {max-ttl: 1h}
    resources:
      cores: {unit: count}
      machine: {items: {names: [m1, m2, m3]}}
    limits: {cores: 100}
    nodes:
      physics: {limits: {cores: 10}}
      queue: {limits: {cores: 1}}
      advised: {limits: {cores: advisory:1}}
`

// watched are three real servers with certificates, of which all but the metrics is encrypted.
type watched struct {
	*servertest.Cluster

	metrics []string
	client  *http.Client
}

func startWatched(t *testing.T) *watched {
	t.Helper()
	dir := t.TempDir()
	certs, secrets := filepath.Join(dir, "certs"), filepath.Join(dir, "secrets")
	bootstrap := filepath.Join(certs, "bootstrap.secret")
	(&servertest.Client{Patience: patience}).Run(t, "tls", "create", certs, "--nodes", "n1,n2,n3", "--cluster-name",
		clusterName)
	writeFile(t, filepath.Join(secrets, "pager"), "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	w := &watched{metrics: servertest.FreePorts(t, 3)}
	w.Cluster = servertest.StartCluster(t, servertest.Settings{
		Certificates: certs, Patience: patience, Args: []string{
			"--cluster-name", clusterName, "--log-level", "error", "--bootstrap-secret-file", bootstrap,
			"--metrics-nodes", "lab,lab:*", "--backup-dir", filepath.Join(dir, "backups"), "--backup-every", "2s",
			"--snapshot-every", "50", "--snapshot-check", "1s", "--snapshot-trail", "50",
			"--webhook-hosts", "http://127.0.0.1:*", "--webhook-secrets-dir", secrets,
		},
		Each: func(i int, s *servertest.Server) {
			s.Args = append(s.Args, "--metrics-addr", w.metrics[i])
			s.ReadyURL = "http://" + w.metrics[i] + "/readyz"
		},
	})
	w.client = &http.Client{Transport: &http.Transport{TLSClientConfig: w.TLS(t), MaxIdleConnsPerHost: 8}}
	manifest := filepath.Join(dir, "lab.yaml")
	writeFile(t, manifest, watchedTree)
	w.Run(t, "apply", "-f", manifest)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	w.Run(t, "webhook", "set", "pager", receiver.URL, "--secret", "pager")
	admin := filepath.Join(dir, "admin.token")
	w.Run(t, "token", "create", "--secret-file", bootstrap, "--out", admin)
	w.Run(t, "access", "set", "watching", "--token-file", admin)
	return w
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
