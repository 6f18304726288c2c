package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/authn/authntest"
)

// Secrets that are planted as data.
const (
	canaryUserData = "canary-of-user-data"
	canaryClaim    = "canary-of-a-claim"
	canaryPassword = "canary-of-a-password"
	canarySecret   = "canary-of-a-bootstrap-secret-canary-of"
)

// canaries are texts that must not be in outputs, by what they are.
type canaries map[string]string

// without leaves out one text, for an output that must have it.
func (c canaries) without(name string) canaries {
	others := canaries{}
	for n, text := range c {
		if n != name {
			others[n] = text
		}
	}
	return others
}

func (c canaries) search(t *testing.T, place string, output []byte) {
	t.Helper()
	for name, secret := range c {
		if bytes.Contains(output, []byte(secret)) {
			t.Errorf("%s has %s", place, name)
		}
	}
}

// tenantReads are the reads that callers of guardedCluster try, as JSON.
var tenantReads = []struct{ method, body string }{
	{"v1.AllocationService/GetAllocation", `{"id": "secret-lease"}`},
	{"v1.AllocationService/ListAllocations", `{}`},
	{"v1.AllocationService/ListAllocations", `{"tree": "cern", "node": "atlas/physics"}`},
	{"v1.AllocationService/ListWaiting", `{}`},
	{"v1.EventService/ListEvents", `{}`},
	{"v1.AllocationService/Explain", `{"id": "secret-lease"}`},
	{"v1.AllocationService/Allocate", `{"id": "secret-lease", "claims": [{"tree": "cern", "node": "atlas/physics",
		"amounts": {"cores": 1}}]}`},
	{"v1.AllocationService/Renew", `{"id": "secret-lease", "ttlMs": 60000}`},
	{"admin.v1.ConfigurationService/GetConfiguration", `{}`},
	{"admin.v1.ConfigurationService/GetConfiguration", `{"manifest": true}`},
	{"v1.TreeService/GetTree", `{"name": "cern"}`},
	{"v1.TreeService/GetUsage", `{"tree": "cern"}`},
	{"v1.TreeService/ListPrincipals", `{"tree": "cern", "kind": "HOLDER_KIND_USER"}`},
	{"admin.v1.ConfigurationService/ListRevisions", `{}`},
	{"v1.ItemService/ListItems", `{"tree": "cern", "userData": true}`},
	{"v1beta1.ActivityService/GetActivity", `{"tree": "cern", "node": "atlas/physics"}`},
	{"v1.IdentityService/WhoAmI", `{}`},
	{"admin.v1.AccessService/ListAccounts", `{}`},
	{"admin.v1.AccessService/ListTokens", `{"account": "hans"}`},
	{"admin.v1.AccessService/ListRefusedCredentials", `{}`},
	{"admin.v1.AccessService/GetGuardReport", `{}`},
	{"admin.v1.AccessService/Bootstrap", `{"secret": "` + canarySecret + `"}`},
	{"admin.v1.AuditService/ListRecords", `{}`},
	{"admin.v1.AuditService/ListRecords", `{"source": "AUDIT_SOURCE_SERVER"}`},
	{"admin.v1.ClusterService/GetStatus", `{}`},
	{"admin.v1.ClusterService/ListMembers", `{}`},
	{"admin.v1.DebugService/GetDiagnostics", `{}`},
}

// tenantPages are pages of servers.
var tenantPages = []string{"/metrics", "/livez", "/readyz", "/version", "/ws/v1/partitions", "/", "/debug/pprof/heap"}

func callWith(t *testing.T, f serverFlags, method, path, body, authorization string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, f.baseURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	return sendRequest(t, request)
}

// TestPlantedSecrets plants tokens, JWTs, user data and a bootstrap secret, and searches for them in all that other
// callers can read, and in logs, audit files, diagnostics, metrics, exports, backups and data folders.
func TestPlantedSecrets(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t, func(f serverFlags) []string {
		return []string{"--audit-file", auditFile(f), "--log-level", "debug"}
	})
	secrets, jwt := plantSecrets(t, list, tokens)
	as := func(name string) string { return "Bearer " + tokenIn(t, tokens, name) }
	var callers sync.WaitGroup
	for caller, authorization := range map[string]string{
		"no one": "", "heidi": as("heidi"), "carl": as("carl"), "anna": as("anna"), "ops": as("ops"),
		"a job": "Bearer " + jwt,
	} {
		callers.Go(func() { searchReads(t, list, caller, authorization, secrets) })
	}
	callers.Go(func() { searchOwnersReads(t, list, as("hans"), secrets) })
	callers.Wait()
	searchOperatorOutputs(t, list, filepath.Join(tokens, "admin"), secrets)
	for i, p := range processes {
		p.stopCleanly(t)
		secrets.search(t, "the log of "+list[i].id, []byte(p.stdout.String()+p.stderr.String()))
		searchFile(t, auditFile(list[i]), secrets)
		err := filepath.WalkDir(list[i].dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				searchFile(t, path, secrets.without("user data")) // the log is where it is kept
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// searchReads searches all that a caller can read.
func searchReads(t *testing.T, list []serverFlags, caller, authorization string, secrets canaries) {
	t.Helper()
	for i, read := range tenantReads {
		_, answer := callWith(t, list[i%3], http.MethodPost, "/quorate."+read.method, read.body, authorization)
		secrets.search(t, read.method+" of "+caller, []byte(answer))
	}
	for _, page := range tenantPages {
		_, answer := callWith(t, list[2], http.MethodGet, page, "", authorization)
		secrets.search(t, page+" of "+caller, []byte(answer))
	}
	secrets.search(t, "a watch of "+caller, watchOnce(t, list[1], authorization))
}

// searchOwnersReads searches what the owner of the lease can read. The data is in answers about the lease, and nowhere
// else.
func searchOwnersReads(t *testing.T, list []serverFlags, authorization string, secrets canaries) {
	t.Helper()
	for i, read := range tenantReads {
		_, answer := callWith(t, list[i%3], http.MethodPost, "/quorate."+read.method, read.body, authorization)
		if read.method == "v1.AllocationService/GetAllocation" && !strings.Contains(answer, canaryUserData) {
			t.Errorf("the owner cannot read the data of the lease: %s", answer)
		}
		hidden := secrets
		if strings.Contains(read.body, "secret-lease") {
			hidden = secrets.without("user data")
		}
		hidden.search(t, read.method+" of the owner", []byte(answer))
	}
	secrets.search(t, "a watch of the owner", watchOnce(t, list[1], authorization))
}

// plantSecrets presents all kinds of credentials, good and bad, at all servers, and makes a lease with data.
func plantSecrets(t *testing.T, list []serverFlags, tokens string) (secrets canaries, jwt string) {
	t.Helper()
	secrets = canaries{
		"user data": canaryUserData, "a claim": canaryClaim, "a password": canaryPassword, "a bootstrap secret": canarySecret, "the bootstrap secret": strings.Repeat("s", 30),
	}
	files, err := filepath.Glob(filepath.Join(tokens, "*"))
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if filepath.Base(file) != "secret" {
			secrets["the token of "+filepath.Base(file)] = strings.Split(tokenIn(t, tokens, filepath.Base(file)), "_")[2][:20]
		}
	}
	issuer := authntest.Start(t)
	section := strings.Replace(guardedTree, "access:\n", `access:
  issuers:
    ci: {url: "`+issuer.URL+`", audience: quorate, user: sub, claim-rules: {team: [a]}}
`, 1)
	claims := issuer.Claims("quorate", map[string]any{"team": "a", "email": canaryClaim})
	jwt = issuer.Sign(claims)
	secrets["a JWT"] = strings.Split(jwt, ".")[2][:30]
	secrets["the payload of a JWT"] = strings.Split(jwt, ".")[1][:60]
	forged := issuer.Sign(issuer.Claims("other", map[string]any{"email": canaryClaim}))
	secrets["a refused JWT"] = strings.Split(forged, ".")[2][:30]
	at := " --at cern:atlas/physics --amount cores=1 --token-file "
	playSteps(t, list[0], []step{
		{"apply -f " + manifestFile(t, section) + " --token-file " + filepath.Join(tokens, "admin"), 0, "issuer ci"},
		{
			"allocate --id secret-lease --ttl 1h --data password=" + canaryUserData + at + filepath.Join(tokens, "hans"), 0,
			"granted",
		},
	})
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("hans:"+canaryPassword))
	secrets["a header with a password"] = strings.TrimPrefix(basic, "Basic ")
	for _, f := range list {
		for i, authorization := range []string{
			"Bearer " + jwt, "Bearer " + forged, "Bearer qrt_" + canaryPassword, basic, "Digest " + canaryPassword,
		} {
			status, answer := callWith(t, f, http.MethodPost, "/quorate.admin.v1.AccessService/ListAccounts", `{}`, authorization)
			if want := map[bool]int{true: http.StatusForbidden, false: http.StatusUnauthorized}[i == 0]; status != want {
				t.Errorf("%d. credential at %s: %d %s", i+1, f.id, status, answer)
			}
			secrets.search(t, "a refusal", []byte(answer))
		}
	}
	return secrets, jwt
}

// watchOnce reads a watch from the beginning up to its first heartbeat.
func watchOnce(t *testing.T, f serverFlags, authorization string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := quoratev1connect.NewEventServiceClient(headerClient{http2, authorization}, f.baseURL()).
		WatchEvents(ctx, &quoratev1.WatchEventsRequest{AfterIndex: 1})
	if err != nil {
		return []byte(err.Error())
	}
	defer stream.Close() //nolint:errcheck // reading only
	var all []byte
	for stream.Receive() {
		text, err := protojson.Marshal(stream.Msg())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
		if stream.Msg().GetChange().GetAllocation() == nil {
			return all
		}
	}
	return fmt.Append(all, stream.Err())
}

type headerClient struct {
	*http.Client

	authorization string
}

// Do makes a call.
func (c headerClient) Do(r *http.Request) (*http.Response, error) {
	if c.authorization != "" {
		r.Header.Set("Authorization", c.authorization)
	}
	return c.Client.Do(r)
}

// searchOperatorOutputs searches what administrators read and keep.
func searchOperatorOutputs(t *testing.T, list []serverFlags, root string, secrets canaries) {
	t.Helper()
	dir := t.TempDir()
	bundle, backup := filepath.Join(dir, "bundle.tar.gz"), filepath.Join(dir, "state.backup")
	for _, command := range []string{
		"manifest export", "audit list -o json", "audit list --denied -o json", "revision list -o json",
		"account list -o json", "token list hans -o json", "access status -o json", "allocation list -o json",
		"event list -o json", "lease list -o json",
		"status -o json", "member list -o json", "cluster dump " + bundle, "snapshot create " + backup,
	} {
		end := runCommand(t, append(strings.Fields(command), "--server", list[0].baseURL(), "--token-file", root)...)
		if end.code != 0 {
			t.Errorf("%s: %+v", command, end)
		}
		secrets.search(t, command, []byte(end.stdout+end.stderr))
	}
	text, err := os.ReadFile(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		_, metrics := callWith(t, f, http.MethodGet, "/metrics", "", "Bearer "+strings.TrimSpace(string(text)))
		if !strings.Contains(metrics, "quorate_") {
			t.Errorf("no metrics: %s", metrics)
		}
		secrets.search(t, "the metrics of "+f.id, []byte(metrics))
	}
	searchFile(t, backup, secrets.without("user data")) // a backup has it, see docs/security.md
	searchBundle(t, bundle, secrets)
}

func searchFile(t *testing.T, path string, secrets canaries) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	secrets.search(t, path, text)
}

// searchBundle searches the files in a bundle of diagnostics, and what is compressed in them.
func searchBundle(t *testing.T, path string, secrets canaries) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // reading only
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for archive := tar.NewReader(unpacked); ; files++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		secrets.search(t, "the diagnostics "+header.Name, content)
		if inner, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
			content, _ = io.ReadAll(inner)
			secrets.search(t, "the diagnostics "+header.Name+", uncompressed,", content)
		}
	}
	if files < 10 {
		t.Errorf("the bundle has %d files", files)
	}
}
