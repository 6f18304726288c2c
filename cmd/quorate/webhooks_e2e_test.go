package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// hookSecret is the secret of the receivers of these tests.
var hookSecret = []byte("0123456789abcdef0123456789abcdef")

// secretsFolder has the secret "pager", and "cern.atlas" for administrators of nodes.
func secretsFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "whsec_" + base64.StdEncoding.EncodeToString(hookSecret) + "\n"
	for _, name := range []string{"pager", "cern.atlas"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type hookReceiver struct {
	*httptest.Server

	mu sync.Mutex
	// first are the ids in the order in which they first came, bodies has what came with each.
	first  []string
	bodies map[string]string
	calls  int
	again  int
	away   bool
	wrong  []string
}

func newHookReceiver(t *testing.T) *hookReceiver {
	t.Helper()
	r := &hookReceiver{bodies: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// setAway makes the receiver refuse everything, or take deliveries again.
func (r *hookReceiver) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// ServeHTTP answers every fifth delivery with an error, half of these after it has taken the event.
func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	id := q.Header.Get("Webhook-Id")
	mac := hmac.New(sha256.New, hookSecret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, q.Header.Get("Webhook-Timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil ||
		q.Header.Get("Webhook-Signature") != want || q.Method != http.MethodPost {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s: signature %s, want %s", q.Method, id,
			q.Header.Get("Webhook-Signature"), want))
	}
	if r.calls++; r.calls%10 == 3 || r.away {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if known, isKnown := r.bodies[id]; !isKnown {
		r.first = append(r.first, id)
		r.bodies[id] = string(body)
	} else if r.again++; known != string(body) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s came with %s and with %s", id, known, body))
	}
	if r.calls%10 == 7 {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// received are the types and allocations of deliveries, each once, in the order of their first arrival.
func (r *hookReceiver) received(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, id := range r.first {
		var body struct {
			Type string
			Data struct {
				Change struct{ Allocation struct{ ID string } }
			}
		}
		if err := json.Unmarshal([]byte(r.bodies[id]), &body); err != nil {
			t.Fatalf("%s: %v", r.bodies[id], err)
		}
		list = append(list, strings.TrimPrefix(body.Type, "allocation.")+" "+body.Data.Change.Allocation.ID)
	}
	return list
}

// TestWebhooksOverFailovers: a receiver that fails now and then gets every event over several crashes of the leader,
// the first time in order, signed, and with the same id and body when it comes again.
func TestWebhooksOverFailovers(t *testing.T) {
	t.Parallel()
	receiver, secrets := newHookReceiver(t), secretsFolder(t)
	c := &boskosCluster{flags: threeServers(t)}
	var urls []string
	for i := range c.flags {
		c.flags[i].more = append(slices.Clone(c.flags[i].more), "--webhook-hosts", "http://127.0.0.1:*",
			"--webhook-secrets-dir", secrets)
		urls = append(urls, c.flags[i].baseURL())
		c.servers = append(c.servers, startProcess(t, c.flags[i].commandLine()...))
	}
	for i, f := range c.flags {
		awaitReady(t, c.servers[i], f)
	}
	c.flags[0].applyTree(t)
	playSteps(t, c.flags[1], []step{
		{"webhook set pager " + receiver.URL + "/hook --secret pager", 0, "webhook pager is active"},
	})
	quorate, err := client.New(urls)
	if err != nil || t.Failed() {
		t.Fatal(err)
	}
	var want []string
	for round := range 4 {
		receiver.setAway(round%2 == 1) // what a leader could not deliver is left to the next one
		for i := range 25 {
			id := fmt.Sprintf("job-%d-%d", round, i)
			if _, err := quorate.Allocations.Allocate(t.Context(), oneClaim(id, 1)); err != nil {
				t.Fatal(err)
			}
			if _, err := quorate.Allocations.Release(t.Context(), &quoratev1.ReleaseRequest{Id: id}); err != nil {
				t.Fatal(err)
			}
			want = append(want, "granted "+id, "ended "+id)
		}
		if round < 3 {
			leader := c.leader(t)
			c.stop(t, leader, syscall.SIGKILL)
			c.restart(t, leader)
			awaitReady(t, c.servers[leader], c.flags[leader])
		}
	}
	receiver.setAway(false)
	awaitCondition(t, "not all events were delivered", func() bool { return len(receiver.received(t)) >= len(want) })
	if got := receiver.received(t); !slices.Equal(got, want) {
		t.Errorf("received\n%q, want\n%q", got, want)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if len(receiver.wrong) > 0 || receiver.again == 0 {
		t.Errorf("wrong deliveries: %q; %d came again", receiver.wrong, receiver.again)
	}
}

// TestWebhookThatCannotDeliver: hosts that are not allowed, a name that means the own machine, a redirect, a receiver
// that is away until the webhook is dead, and how it is resumed.
func TestWebhookThatCannotDeliver(t *testing.T) {
	t.Parallel()
	receiver := newHookReceiver(t)
	redirect := httptest.NewServer(http.RedirectHandler(receiver.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirect.Close)
	local := strings.Replace(receiver.URL, "127.0.0.1", "localhost", 1)
	f := singleServer(t, "--webhook-hosts", "http://127.0.0.1:*,http://localhost:*,*.example.org", "--webhook-secrets-dir",
		secretsFolder(t))
	startServer(t, f)
	f.applyTree(t)
	playSteps(t, f, []step{
		{"webhook set a https://example.com/x --secret pager", 2, "webhook-hosts of this server does not allow"},
		{"webhook set a https://example.org/x --secret pager", 2, "webhook-hosts of this server does not allow"},
		{"webhook set a http://hooks.example.org/x --secret pager", 2, "webhook-hosts of this server does not allow"},
		{"webhook set a https://user@hooks.example.org/x --secret pager", 2, "without a user"},
		{"webhook set a https://hooks.example.org/x --secret ../pager", 2, "not the name of a secret"},
		{"webhook set a https://hooks.example.org/x --secret pager --event allocation.lost", 2, "there is no type"},
		{"webhook set a https://hooks.example.org/x", 2, "--secret is missing"},
		{"webhook set local " + local + " --secret pager --retry-for 1s", 0, "webhook local is active"},
		{"webhook set unsigned " + receiver.URL + " --secret other --retry-for 1s", 0, "webhook unsigned is active"},
		{"webhook set moved " + redirect.URL + " --secret pager --retry-for 1s --at t:a", 0, "webhook moved is active"},
		{"webhook set idle " + receiver.URL + " --secret pager --retry-for 1s --at t:z", 0, "webhook idle is active"},
	})
	if t.Failed() {
		t.FailNow()
	}
	f.allocateEach(t, "one")
	awaitCondition(t, "the webhooks are not dead", func() bool {
		return strings.Count(runCommand(t, "webhook", "list", "--server", f.baseURL()).stdout, "dead") == 3
	})
	_, metrics := httpGet(t, f.baseURL()+"/metrics")
	for _, says := range []string{`quorate_webhook_dead{cluster="quorate",webhook="local"} 1`, `webhook="idle"} 0`} {
		if !strings.Contains(metrics, says) {
			t.Errorf("the metrics lack %s", says)
		}
	}
	if n := len(receiver.received(t)); n != 0 {
		t.Errorf("%d events were delivered", n)
	}
	playSteps(t, f, []step{
		{"webhook list", 0, "a URL with exactly this address"},
		{"webhook list", 0, "the secret other cannot be read on this server: no such file or directory"},
		{"webhook list", 0, "the receiver answered 307 Temporary Redirect"},
		{"event list --kind webhook-dead", 0, "webhook-dead  moved"},
		{"webhook set moved " + receiver.URL + " --secret pager --at t:a", 0, "webhook moved is dead"},
		{"webhook resume local --from-now", 0, "webhook local is active"},
		{"webhook resume moved --after nothing", 2, "is not a position"},
		{"webhook resume moved --after 9999999", 2, "the log ends at index"},
		{"webhook resume moved", 0, "webhook moved is active"},
		{"webhook delete unsigned", 0, "webhook unsigned is removed"},
		{"webhook delete unsigned", 1, "there is no webhook"},
	})
	awaitCondition(t, "the resumed webhook delivers nothing", func() bool {
		return slices.Equal(receiver.received(t), []string{"granted one"})
	})
}

// TestWebhookOfANode: the administrator of a node has its events delivered, and no others; nothing any more when she
// has lost her rights. Others neither see nor change the webhook.
func TestWebhookOfANode(t *testing.T) {
	t.Parallel()
	receiver, secrets := newHookReceiver(t), secretsFolder(t)
	list, _, tokens := guardedCluster(t, func(serverFlags) []string {
		return []string{"--webhook-hosts", "http://127.0.0.1:*", "--webhook-secrets-dir", secrets}
	})
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	set := "webhook set atlas " + receiver.URL + " --event allocation.granted --at cern:"
	playSteps(t, list[0], []step{
		{as("hans", set+"atlas/physics --secret cern.atlas"), 4, "lacks the right bindings.grant at cern:atlas/physics"},
		{as("anna", set+"cms --secret cern.atlas"), 1, "there is no node cern:cms"},
		{as("anna", set+"atlas --secret pager"), 2, `begins with "cern."`},
		{as("anna", "webhook set all "+receiver.URL+" --secret cern.atlas"), 4, "access.manage at the cluster"},
		{as("anna", set+"atlas --secret cern.atlas"), 0, "webhook atlas is active"},
		{as("anna", "webhook list"), 0, "account/anna"},
		{as("anna", "webhook list"), 0, receiver.URL},
		{as("admin", "webhook list"), 0, "account/anna"},
		{as("carl", "webhook delete atlas"), 1, "or account/carl may not see it"},
		{as("hans", "allocate --id one --at cern:atlas/physics --amount cores=1"), 0, "granted"},
		{as("admin", "allocate --id cms --at cern:cms --amount cores=1"), 0, "granted"},
		{as("heidi", "allocate --id two --at cern:atlas/physics --amount cores=1"), 0, "granted"},
	})
	awaitCondition(t, "the events of the node were not delivered", func() bool {
		return slices.Equal(receiver.received(t), []string{"granted one", "granted two"})
	})
	got := runCommand(t, strings.Fields(as("carl", "webhook list --server "+list[1].baseURL()))...)
	if got.code != 0 || strings.Contains(got.stdout, "atlas") {
		t.Errorf("carl sees %+v", got)
	}
	playSteps(t, list[1], []step{
		{as("admin", "account set anna --disable"), 0, ""},
		{as("hans", "allocate --id three --at cern:atlas/physics --amount cores=1"), 0, "granted"},
		{as("admin", "webhook set last "+receiver.URL+" --secret pager --event allocation.granted"), 0, "is active"},
		{as("hans", "allocate --id four --at cern:atlas/physics --amount cores=1"), 0, "granted"},
	})
	awaitCondition(t, "the webhook of the cluster delivers nothing", func() bool {
		return slices.Contains(receiver.received(t), "granted four")
	})
	awaitCondition(t, "the webhook of the node does not go on", func() bool {
		for line := range strings.Lines(runCommand(t, strings.Fields(as("admin", "webhook list --server "+
			list[1].baseURL()))...).stdout) {
			if fields := strings.Fields(line); len(fields) > 5 && fields[0] == "atlas" {
				return fields[5] == "0"
			}
		}
		return false
	})
	if got := receiver.received(t); slices.Contains(got, "granted three") {
		t.Errorf("without rights anna was told %q", got)
	}
}
