package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Trees is the part of the public API that the calls need. The handler in the process and the generated client both
// are one.
type Trees interface {
	ListTrees(ctx context.Context, r *quoratev1.ListTreesRequest) (*quoratev1.ListTreesResponse, error)
	GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error)
	GetConfiguration(
		ctx context.Context, r *adminv1.GetConfigurationRequest,
	) (*adminv1.GetConfigurationResponse, error)
	ListRevisions(ctx context.Context, r *adminv1.ListRevisionsRequest) (*adminv1.ListRevisionsResponse, error)
	SetLimits(ctx context.Context, r *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error)
	ApplyTrees(ctx context.Context, r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error)
}

// Options are what the handler needs beside the API.
type Options struct {
	// Caller is the user who makes the call of a context, for the history of an open cluster; empty for none.
	Caller func(context.Context) string
}

const (
	// Prefix is where the calls are: clients take http://HOST/keystone/v3 for the endpoint of Keystone.
	Prefix = "/keystone/"
	// VersionsPath has the versions. Clients of Keystone ask for it without a slash, and cannot follow a redirect there.
	VersionsPath = "/keystone"

	root = "/keystone/v3"
	// maxBody bounds the body of a call. The largest that clients send has a description of 1,024 bytes.
	maxBody = 64 << 10
	// maxListed bounds the entries of a list; a longer one says that it is truncated.
	maxListed = 10_000
)

// NewHandler answers these calls of Keystone's API, version 3.14:
//
//	GET    /keystone, /keystone/v3                    versions
//	GET    /keystone/v3/limits/model                  always flat
//	GET    /keystone/v3/limits                        ?service_id= &region_id= &resource_name= &project_id= &domain_id=
//	POST   /keystone/v3/limits
//	GET    /keystone/v3/limits/{id}                   PATCH, DELETE
//	GET    /keystone/v3/registered_limits             ?service_id= &region_id= &resource_name=
//	POST   /keystone/v3/registered_limits
//	GET    /keystone/v3/registered_limits/{id}        PATCH, DELETE
//	GET    /keystone/v3/services, /endpoints, /regions, /projects, and each with an id
//
// A list of limits with project_id has what each project is told to keep to, for services that count themselves
// ([share.tell]); all other answers have the limits that are set. All else is 404, as POST /auth/tokens: a caller's
// token is an API token of the cluster.
//
// Answers depend on what the caller may read. Bodies have up to 64 KiB, lists up to 10,000 entries.
func NewHandler(trees Trees, o Options) http.Handler {
	if o.Caller == nil {
		o.Caller = func(context.Context) string { return "" }
	}
	s := &server{trees: trees, options: o, directories: newDirectoryCache(trees)}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]answer{
		"GET /keystone":                              s.listVersions,
		"GET /keystone/{$}":                          s.listVersions,
		"GET /keystone/v3":                           s.showVersion,
		"GET /keystone/v3/{$}":                       s.showVersion,
		"POST /keystone/v3/auth/tokens":              s.refuseLogin,
		"GET /keystone/v3/limits/model":              s.showModel,
		"GET /keystone/v3/limits":                    s.listLimits,
		"POST /keystone/v3/limits":                   s.createLimits,
		"GET /keystone/v3/limits/{id}":               s.showLimit,
		"PATCH /keystone/v3/limits/{id}":             s.updateLimit,
		"DELETE /keystone/v3/limits/{id}":            s.deleteLimit,
		"GET /keystone/v3/registered_limits":         s.listRegistered,
		"POST /keystone/v3/registered_limits":        s.createRegistered,
		"GET /keystone/v3/registered_limits/{id}":    s.showRegistered,
		"PATCH /keystone/v3/registered_limits/{id}":  s.updateRegistered,
		"DELETE /keystone/v3/registered_limits/{id}": s.deleteRegistered,
		"GET /keystone/v3/services":                  s.listServices,
		"GET /keystone/v3/services/{id}":             s.showService,
		"GET /keystone/v3/endpoints":                 s.listEndpoints,
		"GET /keystone/v3/endpoints/{id}":            s.showEndpoint,
		"GET /keystone/v3/regions":                   s.listRegions,
		"GET /keystone/v3/regions/{id}":              s.showRegion,
		"GET /keystone/v3/projects":                  s.listProjects,
		"GET /keystone/v3/projects/{id}":             s.showProject,
	} {
		mux.Handle(pattern, answer)
	}
	return withoutPlainErrors(mux)
}

type server struct {
	trees       Trees
	options     Options
	directories *directoryCache
}

// answer makes the body and the status of a success.
type answer func(*http.Request) (status int, body any, err error)

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, body, err := a(r)
	if err != nil {
		writeFailure(w, r, asFailure(err))
		return
	}
	writeJSON(w, r, status, body)
}

// withoutPlainErrors answers in Keystone's form what no pattern of the mux matches.
func withoutPlainErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path) > len(root)+1 && strings.HasSuffix(r.URL.Path, "/") { // allowed, as in Keystone
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = strings.TrimSuffix(r.URL.Path, "/"), strings.TrimSuffix(r.URL.RawPath, "/")
		}
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := r.Clone(r.Context())
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			probe.Method = method
			if _, pattern := mux.Handler(probe); pattern != "" {
				writeFailure(w, r, newFailure(http.StatusMethodNotAllowed,
					"The method is not allowed for the requested URL."))
				return
			}
		}
		writeFailure(w, r, newFailure(http.StatusNotFound, "The requested URL was not found on the server."))
	})
}

// NeedsCaller reports whether a call is for callers with a token only: all but those about versions, and the attempt to
// get a token, whose answer says how to have one.
func NeedsCaller(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	return path != VersionsPath && path != root && path != root+"/auth/tokens"
}

// decodeBody reads the value of the only key of a body: an object, or a list of objects.
func decodeBody[T any](r *http.Request, key string) (T, error) {
	var into T
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return into, badRequest("the body could not be read: %v", err)
	}
	if len(text) > maxBody {
		return into, newFailure(http.StatusRequestEntityTooLarge, "Request is too large: up to %d bytes are read.",
			maxBody)
	}
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(text, &outer); err != nil {
		return into, badRequest("Malformed json in request body: %s", describeJSON(err))
	}
	inner, found := outer[key]
	if !found || len(outer) != 1 {
		return into, badRequest("the body must be an object with the one key %q", key)
	}
	decoder := json.NewDecoder(strings.NewReader(string(inner)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&into); err != nil {
		return into, badRequest("Invalid input in %q: %s", key, describeJSON(err))
	}
	return into, nil
}

// describeJSON leaves out the names of Go's types.
func describeJSON(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field
		if field == "" {
			field = "the value"
		}
		return field + " must not be a " + wrong.Value
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
