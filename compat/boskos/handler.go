package boskos

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// API is the part of the public API that the front end uses. The handlers in the process and the generated clients
// implement it. A client that does not fail over passes outages on to Boskos's clients, which retry a call three times
// within 15 seconds.
type API struct {
	Allocations Allocations
	Items       Items
	Trees       Trees
}

// Allocations grants, renews and releases.
type Allocations interface {
	Allocate(ctx context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error)
	Renew(ctx context.Context, r *quoratev1.RenewRequest) (*quoratev1.RenewResponse, error)
	Release(ctx context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error)
	GetAllocation(ctx context.Context, r *quoratev1.GetAllocationRequest) (*quoratev1.GetAllocationResponse, error)
}

// Items finds, counts and resets.
type Items interface {
	ListItems(ctx context.Context, r *quoratev1.ListItemsRequest) (*quoratev1.ListItemsResponse, error)
	CountItems(ctx context.Context, r *quoratev1.CountItemsRequest) (*quoratev1.CountItemsResponse, error)
	ResetItems(ctx context.Context, r *quoratev1.ResetItemsRequest) (*quoratev1.ResetItemsResponse, error)
}

// Trees shows the configuration.
type Trees interface {
	GetTree(ctx context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error)
}

// Options change how a Handler works.
type Options struct {
	// Tree is the name of the tree that holds the types; TreeName if empty. The trees Tree-2, Tree-3 and so on hold more.
	Tree string
	// Caller, if set, names who made a request. What one caller may see is not cached for another one.
	Caller func(context.Context) string
	// IsGuarded, if set, reports whether callers see only what they have rights to. Then a caller who sees none of the
	// trees is refused, and not told that there is nothing.
	IsGuarded func() bool
	// Notice, if set, is told of errors that no caller sees.
	Notice func(error)
}

const (
	// patience bounds one request: long enough for a cluster to find another leader.
	patience = 30 * time.Second
	// maxBody bounds the body of an update; what an item may hold is much less.
	maxBody = 1 << 20
	// unmatched is what metrics call all other paths.
	unmatched = "unmatched"
)

// Handler answers what Boskos answers on its main port:
//
//	POST /acquire           type, state, dest, owner; request_id to wait in the queue
//	POST /acquirebystate    state, dest, owner, names
//	POST /release           name, dest, owner
//	POST /update            name, owner, state; user data in the body
//	POST /reset             type, state, dest, expire
//	GET  /metric            type
//
// and nothing, with 200, on all other paths. A type is an itemized resource, a resource one of its items, an owner the
// user of the allocation that holds it; they are those of any other caller of the API.
//
// A Handler is a collector of the metrics that Boskos has, under Boskos's names. Both may be used concurrently.
type Handler struct {
	routes  http.Handler
	metrics *metrics
}

// Paths are those that a Handler answers with something.
var Paths = []string{"/acquire", "/acquirebystate", "/release", "/update", "/reset", "/metric"}

// NewHandler makes a handler, which asks nothing before it is asked.
func NewHandler(api API, o Options) *Handler {
	if o.Tree == "" {
		o.Tree = TreeName
	}
	if o.Notice == nil {
		o.Notice = func(error) {}
	}
	if o.Caller == nil {
		o.Caller = func(context.Context) string { return "" }
	}
	if o.IsGuarded == nil {
		o.IsGuarded = func() bool { return false }
	}
	layouts := &layoutCaches{api: api.Trees, name: o.Tree, caller: o.Caller, isGuarded: o.IsGuarded}
	s := &server{api: api, layout: layouts, arrivals: newArrivalTimes(), memory: newGrantMemory()}
	s.metrics = newMetrics(newLayouts(api.Trees, o.Tree), api.Items, o.Notice)
	mux := http.NewServeMux()
	for path, answer := range map[string]http.Handler{
		"/":               http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		"/acquire":        postOnly("acquire", s.handleAcquire),
		"/acquirebystate": postOnly("acquire", s.acquireByState), // sic
		"/release":        postOnly("release", s.handleRelease),
		"/update":         postOnly("update", s.handleUpdate),
		"/reset":          postOnly("reset", s.handleReset),
		"/metric":         getOnly(s.handleMetric),
	} {
		mux.Handle(path, s.metrics.instrumentPath(path, limitBody(answer)))
	}
	return &Handler{routes: mux, metrics: s.metrics}
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// Describe is that of [prometheus.Collector].
func (h *Handler) Describe(to chan<- *prometheus.Desc) { h.metrics.describeAll(to) }

// Collect is that of [prometheus.Collector]; it counts items as this node knows them.
func (h *Handler) Collect(to chan<- prometheus.Metric) { h.metrics.collectAll(to) }

type server struct {
	api      API
	layout   *layoutCaches
	arrivals *arrivalTimes
	memory   *grantMemory
	metrics  *metrics
}

func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
