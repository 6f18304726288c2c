package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat/keystone/rest"
)

// observed counts the calls of the API that are expensive, and fails those that a test selects.
type observed struct {
	rest.Trees
	configurations, usages atomic.Int64
	listFails              error
	beforeSet              func()
}

func (o *observed) ListTrees(
	ctx context.Context, r *quoratev1.ListTreesRequest,
) (*quoratev1.ListTreesResponse, error) {
	if o.listFails != nil {
		return nil, o.listFails
	}
	return o.Trees.ListTrees(ctx, r)
}

func (o *observed) GetConfiguration(
	ctx context.Context, r *adminv1.GetConfigurationRequest,
) (*adminv1.GetConfigurationResponse, error) {
	o.configurations.Add(1)
	return o.Trees.GetConfiguration(ctx, r)
}

func (o *observed) GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	o.usages.Add(1)
	return o.Trees.GetUsage(ctx, r)
}

func (o *observed) SetLimits(
	ctx context.Context, r *quoratev1.SetLimitsRequest,
) (*quoratev1.SetLimitsResponse, error) {
	if o.beforeSet != nil {
		o.beforeSet()
	}
	return o.Trees.SetLimits(ctx, r)
}

const twoLevels = `trees: {t: {policy: strict, resources: {r: {unit: count}}, limits: {r: 9}, nodes: {
  a: {limits: {r: 5}, nodes: {b: {limits: {r: 2}}}}, p: {}}}}
`

// TestTheConfigurationIsReadOnce: what services ask reads the configuration once, and again only when something other
// than limits has changed; numbers follow every change at once.
func TestTheConfigurationIsReadOnce(t *testing.T) {
	cluster, _ := startServer(t)
	o := &observed{Trees: callsOf(cluster)}
	url := serve(t, o)
	apply(t, cluster, twoLevels)
	want := func(limit, configurations int64) {
		t.Helper()
		if got := toldOf(t, url, "a"); got != limit || o.configurations.Load() != configurations {
			t.Errorf("told %d after reading %d configurations, want %d after %d", got, o.configurations.Load(), limit,
				configurations)
		}
	}
	want(3, 1)
	want(3, 1)
	for i := range 3 {
		apply(t, cluster, strings.Replace(twoLevels, "r: 2", fmt.Sprint("r: ", i), 1))
	}
	want(3, 1) // the last one is the first one
	apply(t, cluster, strings.Replace(twoLevels, "r: 2", "r: 1", 1))
	want(4, 1)
	apply(t, cluster, strings.Replace(twoLevels, "p: {}", "p: {}, q: {}", 1))
	want(3, 2)
	move := &quoratev1.MoveNodeRequest{Tree: "t", Node: "a/b", NewNode: "b"}
	if _, err := cluster.Trees.MoveNode(t.Context(), move); err != nil {
		t.Fatal(err)
	}
	want(5, 3)
	o.usages.Store(0)
	if got := toldOf(t, url, "b"); got != 2 || o.usages.Load() != 1 {
		t.Errorf("told %d after %d reads of usage", got, o.usages.Load())
	}
}

// TestFailures: services get an error whenever there is no right answer, and never a number.
func TestFailures(t *testing.T) {
	cluster, _ := startServer(t)
	apply(t, cluster, twoLevels)
	o := &observed{Trees: callsOf(cluster)}
	url := serve(t, o)
	for code, want := range map[connect.Code]int{
		connect.CodeUnavailable: 503, connect.CodeDeadlineExceeded: 503, connect.CodeCanceled: 503,
		connect.CodeResourceExhausted: 429, connect.CodeUnauthenticated: 401, connect.CodePermissionDenied: 403,
		connect.CodeInternal: 500, connect.CodeUnknown: 500,
	} {
		o.listFails = connect.NewError(code, errors.New("as the test wants it"))
		for _, path := range []string{"limits?service_id=t&project_id=a", "endpoints/t", "registered_limits", "projects"} {
			if status, text := call(t, http.MethodGet, url+"/keystone/v3/"+path, ""); status != want ||
				!strings.HasPrefix(text, fmt.Sprintf(`{"error":{"code":%d,"message":"`, want)) {
				t.Errorf("%v: %d %s", code, status, text)
			}
		}
	}
	o.listFails = errors.New("not an error of the API")
	if status, text := call(t, http.MethodGet, url+"/keystone/v3/limits", ""); status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, text)
	}
	o.listFails = connect.NewError(connect.CodeUnavailable, errors.New("no leader at 10.0.0.1"))
	if status, text := call(t, http.MethodGet, url+"/keystone/v3/limits", ""); strings.Contains(text, "10.0.0.1") {
		t.Errorf("%d %s", status, text)
	}
}

// TestWritesMeetOtherChanges: a new limit is set only if nothing has changed since it was found to be missing.
func TestWritesMeetOtherChanges(t *testing.T) {
	cluster, _ := startServer(t)
	apply(t, cluster, twoLevels)
	o := &observed{Trees: callsOf(cluster)}
	url := serve(t, o)
	attempts := 0
	o.beforeSet = func() {
		if attempts++; attempts == 1 {
			apply(t, cluster, strings.Replace(twoLevels, "p: {}", "p: {limits: {r: 1}}", 1))
		}
	}
	const body = `{"limits": [{"project_id": "p", "service_id": "t", "resource_name": "r", "resource_limit": 2}]}`
	status, text := call(t, http.MethodPost, url+"/keystone/v3/limits", body)
	if status != http.StatusConflict || attempts != 1 {
		t.Errorf("%d %s after %d attempts", status, text, attempts)
	}
	o.beforeSet = func() {
		if attempts++; attempts == 2 {
			apply(t, cluster, strings.Replace(twoLevels, "r: 9", "r: 10", 1)) // takes the limit of p away again
		}
	}
	apply(t, cluster, twoLevels)
	attempts = 1
	if status, text = call(t, http.MethodPost, url+"/keystone/v3/limits", body); status != http.StatusCreated ||
		attempts != 3 {
		t.Errorf("%d %s after %d attempts", status, text, attempts)
	}
}

func TestBounds(t *testing.T) {
	cluster, url := startServer(t)
	apply(t, cluster, twoLevels)
	long := `{"limits": [{"description": "` + strings.Repeat("a", 1025) + `"}]}`
	if status, text := call(t, http.MethodPost, url+"/keystone/v3/limits", long); status != http.StatusBadRequest ||
		!strings.Contains(text, "it has 1025 bytes; up to 1024") {
		t.Errorf("%d %s", status, text)
	}
	huge := strings.Repeat(" ", 64<<10) + "{}"
	if status, text := call(t, http.MethodPost, url+"/keystone/v3/limits", huge); status !=
		http.StatusRequestEntityTooLarge || !strings.Contains(text, "up to 65536 bytes") {
		t.Errorf("%d %s", status, text)
	}
	many := `{"limits": [` + strings.TrimSuffix(strings.Repeat("{},", 65), ",") + `]}`
	if status, text := call(t, http.MethodPost, url+"/keystone/v3/limits", many); status != http.StatusBadRequest ||
		!strings.Contains(text, "65 elements; allowed are 1 to 64") {
		t.Errorf("%d %s", status, text)
	}
	var nodes strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&nodes, "n%d: {limits: {r: 1}}, ", i)
	}
	apply(t, cluster, "trees: {t: {resources: {r: {unit: count}}, nodes: {"+nodes.String()+"}}}")
	for _, list := range []string{"limits", "projects"} {
		status, text := call(t, http.MethodGet, url+"/keystone/v3/"+list, "")
		if status != http.StatusOK || !strings.Contains(text, `"truncated":true`) ||
			strings.Count(text, `"links":{"self":"/keystone/v3/`+list+"/") != 10_000 {
			t.Errorf("%d, %d bytes of %s", status, len(text), list)
		}
	}
}

// TestCallsEndWithTheirCaller: a call that waits for the configuration ends when its caller has gone.
func TestCallsEndWithTheirCaller(t *testing.T) {
	reading := make(chan struct{})
	handler := rest.NewHandler(&stuck{reading: reading}, rest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reading
		cancel()
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/keystone/v3/limits", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") != "1" {
		t.Errorf("%d: %v", answer.Code, answer.Header())
	}
}

// stuck never gets a configuration.
type stuck struct {
	rest.Trees
	reading chan struct{}
}

func (s *stuck) ListTrees(context.Context, *quoratev1.ListTreesRequest) (*quoratev1.ListTreesResponse, error) {
	return &quoratev1.ListTreesResponse{Revision: 1}, nil
}

func (s *stuck) GetConfiguration(
	ctx context.Context, _ *adminv1.GetConfigurationRequest,
) (*adminv1.GetConfigurationResponse, error) {
	close(s.reading)
	<-ctx.Done()
	return nil, ctx.Err()
}
