package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/rpc/procedures"
)

// listSeed makes two records or more in every list.
var listSeed = []struct {
	method string
	bodies []string
	status int // 0 for 200
}{
	{"AccessService/CreateAccount", []string{`{"account": {"name": "anna"}}`, `{"account": {"name": "hans"}}`}, 0},
	{"AccessService/CreateToken", []string{`{"account": "hans"}`, `{"account": "hans"}`, `{"account": "hans"}`}, 0},
	{"AccessService/RefuseCredential", []string{
		`{"refused": {"kind": "REFUSED_KIND_USER", "name": "account/anna", "endsAt": "TOMORROW"}}`,
		`{"refused": {"kind": "REFUSED_KIND_JTI", "issuer": "x", "name": "7", "endsAt": "TOMORROW"}}`,
		`{"refused": {"kind": "REFUSED_KIND_JTI", "issuer": "y", "name": "6", "endsAt": "TOMORROW"}}`,
	}, 0},
	{"TreeService/ApplyTrees", []string{
		`{"trees": [{"name": "other", "resources": [{"name": "cores", "unit": "UNIT_COUNT"}]}]}`,
		`{"trees": [{"name": "t", "resources": [{"name": "cores", "unit": "UNIT_COUNT"},
			{"name": "machine", "unit": "UNIT_ITEMS", "items": {"names": ["m1", "m2", "m3"]}}],
			"limits": {"cores": {"amount": 10}, "machine": {"unlimited": true}},
			"nodes": [{"path": "a", "limits": {"cores": {"amount": 9}}}, {"path": "a-b"}, {"path": "a/b"}]}]}`,
	}, 0},
	{"TreeService/SetLimits", []string{
		`{"tree": "t", "node": "a", "limits": {"cores": {"amount": 8}}}`,
		`{"tree": "t", "node": "a", "limits": {"cores": {"amount": 7}}}`,
	}, 0},
	{"LimitRequestService/RequestLimits", []string{
		`{"tree": "t", "node": "a", "limits": {"cores": {"amount": 9}}, "reason": "x"}`,
		`{"tree": "t", "node": "a", "limits": {"cores": {"amount": 10}}, "reason": "y"}`,
	}, 0},
	{"TreeService/ScheduleLimits", []string{
		`{"id": "z", "tree": "t", "node": "a", "adjustments": {"cores": {"cap": 5}},
			"beginsAt": "2090-01-01T00:00:00Z", "endsAt": "2090-02-01T00:00:00Z"}`,
		`{"id": "y", "tree": "t", "node": "a", "adjustments": {"cores": {"cap": 5}},
			"beginsAt": "2091-01-01T00:00:00Z", "endsAt": "2091-02-01T00:00:00Z"}`,
	}, 0},
	{"WebhookService/SetWebhook", []string{
		`{"webhook": {"name": "w2", "url": "https://hooks.invalid/", "secret": "pager"}}`,
		`{"webhook": {"name": "w1", "url": "https://hooks.invalid/", "secret": "pager"}}`,
	}, 0},
	{"AllocationService/Allocate", []string{
		`{"id": "1", "claims": [{"tree": "t", "node": "a", "amounts": {"cores": 3}}], "principal": {"user": "anna"}}`,
		`{"id": "2", "claims": [{"tree": "t", "node": "a", "amounts": {"cores": 3}}], "principal": {"user": "hans"}}`,
		`{"id": "3", "mode": "MODE_WAIT", "claims": [{"tree": "t", "node": "a", "amounts": {"cores": 6}}]}`,
		`{"id": "4", "mode": "MODE_WAIT", "claims": [{"tree": "t", "node": "a", "amounts": {"cores": 6}}]}`,
	}, 0},
	{"AllocationService/Allocate", []string{
		`{"id": "5", "claims": [{"tree": "t", "node": "a", "amounts": {"cores": 8}}]}`,
		`{"id": "6", "claims": [{"tree": "t", "node": "a", "amounts": {"cores": 8}}]}`,
	}, http.StatusTooManyRequests},
	{"CordonService/CordonNode", []string{
		`{"tree": "t", "node": "a/b"}`, `{"tree": "t", "node": "a-b"}`, `{"tree": "other"}`, `{"tree": "t", "node": "a"}`,
	}, 0},
}

// listSelections are what lists are asked for beside everything. Records of calls of the server are those of refused
// calls, because each page of the others would make one more.
var listSelections = map[string][]string{
	"ListTokens":     {`"account": "hans"`},
	"ListItems":      {`"tree": "t"`},
	"ListPrincipals": {`"tree": "t", "kind": "HOLDER_KIND_USER"`},
	"GetUsage":       {`"tree": "t", "subtree": true`, `"tree": "t", "subtree": true, "fullestFirst": true`},
	"ListEvents":     {``, `"newestFirst": true`},
	"ListRecords":    {``, `"newestFirst": true`, `"source": "AUDIT_SOURCE_SERVER", "refused": true`},
	"ListRevisions":  {``, `"tree": "t", "node": "a"`},
}

// TestListsInPages: pages of one record of every list are together the list in one page, in the same order.
func TestListsInPages(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := threeServers(t)
	var processes []*process
	for i := range list {
		list[i].more = append(list[i].more, "--bootstrap-secret-file", secret, "--webhook-hosts", "hooks.invalid",
			"--webhook-secrets-dir", secretsFolder(t))
		processes = append(processes, startProcess(t, list[i].commandLine()...))
	}
	for i := range list {
		awaitReady(t, processes[i], list[i])
	}
	awaitCivilTime(t, list[0])
	lists := listCaller{url: list[0].baseURL()}
	made := lists.call(t, "AccessService/Bootstrap", `{"secret": "`+strings.Repeat("s", 43)+`"}`, http.StatusOK)
	lists.token, _ = made["secret"].(string)
	lists.call(t, "AccessService/SetAccessMode", `{"mode": "ACCESS_MODE_WATCHING"}`, http.StatusOK)
	lists.call(t, "AccessService/SetAccessMode", `{"mode": "ACCESS_MODE_GUARDED"}`, http.StatusOK)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	for _, seed := range listSeed {
		for _, body := range seed.bodies {
			body = strings.ReplaceAll(body, "TOMORROW", tomorrow)
			lists.call(t, seed.method, body, max(seed.status, http.StatusOK))
		}
	}
	stranger := listCaller{url: lists.url}
	stranger.call(t, "ClusterService/Checkpoint", `{}`, http.StatusUnauthorized)
	stranger.call(t, "AccessService/DeleteAccount", `{"name": "anna"}`, http.StatusUnauthorized)
	for _, method := range methodsWhere(isPaged) {
		selections := listSelections[string(method.Name())]
		if selections == nil {
			selections = []string{""}
		}
		for _, selection := range selections {
			lists.compare(t, method, selection)
		}
	}
}

// methodsWhere are the methods for clients that fulfil a condition.
func methodsWhere(holds func(protoreflect.MethodDescriptor) bool) (list []protoreflect.MethodDescriptor) {
	for _, file := range procedures.PublicFiles() {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				if holds(methods.Get(j)) {
					list = append(list, methods.Get(j))
				}
			}
		}
	}
	return list
}

func isPaged(m protoreflect.MethodDescriptor) bool {
	return m.Input().Fields().ByName("page_token") != nil
}

type listCaller struct{ url, token string }

func (c listCaller) call(t *testing.T, method, body string, want int) map[string]any {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/"+pathOf(method),
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	status, text := sendRequest(t, request)
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != want {
		t.Fatalf("%s %s: status %d, want %d, %v: %s", method, body, status, want, err, text)
	}
	return answer
}

// pathOf is the path of a method that is named without its package.
func pathOf(method string) string {
	found := methodsWhere(func(m protoreflect.MethodDescriptor) bool {
		return fmt.Sprintf("%s/%s", m.Parent().Name(), m.Name()) == method
	})
	return fmt.Sprintf("%s/%s", found[0].Parent().FullName(), found[0].Name())
}

func (c listCaller) compare(t *testing.T, method protoreflect.MethodDescriptor, selection string) {
	t.Helper()
	name := fmt.Sprintf("%s/%s", method.Parent().Name(), method.Name())
	field := ""
	for i := range method.Output().Fields().Len() {
		if f := method.Output().Fields().Get(i); f.IsList() && field == "" {
			field = f.JSONName()
		}
	}
	whole := identities(c.call(t, name, `{`+selection+`}`, http.StatusOK)[field])
	if len(whole) < 2 {
		t.Errorf("%s {%s}: the list is %v", name, selection, whole)
		return
	}
	var paged []string
	token := ""
	for range 100 {
		body := `"pageSize": 1, "pageToken": ` + strconv.Quote(token)
		if selection != "" {
			body += ", " + selection
		}
		page := c.call(t, name, `{`+body+`}`, http.StatusOK)
		records := identities(page[field])
		if len(records) > 1 {
			t.Errorf("%s {%s}: a page of one has %v", name, selection, records)
		}
		paged = append(paged, records...)
		if token, _ = page["nextPageToken"].(string); token == "" {
			break
		}
	}
	if !slices.Equal(paged, whole) || token != "" {
		t.Errorf("%s {%s}: in pages %q, as a whole %q; at last the token %q", name, selection, paged, whole, token)
	}
	c.call(t, name, `{"pageToken": "AAAAAAAAAAAAAA"}`, http.StatusBadRequest)
}

// identities are what tells records of a list apart, without what changes while nothing is done.
func identities(list any) []string {
	var texts []string
	records, _ := list.([]any)
	for _, record := range records {
		var parts []string
		collectIdentity(record, 3, &parts)
		slices.Sort(parts)
		texts = append(texts, strings.Join(parts, " "))
	}
	return texts
}

var identityFields = []string{
	"id", "name", "number", "tree", "node", "revision", "kind", "issuer", "action", "resource",
}

func collectIdentity(value any, depth int, parts *[]string) {
	fields, _ := value.(map[string]any)
	for name, field := range fields {
		if text, isText := field.(string); isText && slices.Contains(identityFields, name) {
			*parts = append(*parts, name+"="+text)
		}
		if depth > 0 {
			collectIdentity(field, depth-1, parts)
		}
	}
}
