package yunikorn

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// Trees is the part of the public API that the REST calls need. The handler in the process and the generated client
// both are one.
type Trees interface {
	GetTree(ctx context.Context, r *quoratev1.GetTreeRequest) (*quoratev1.GetTreeResponse, error)
	GetUsage(ctx context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error)
	ListPrincipals(ctx context.Context, r *quoratev1.ListPrincipalsRequest) (*quoratev1.ListPrincipalsResponse, error)
}

// NewHandler answers what YuniKorn's REST interface answers about queues, users and groups, and validates
// configurations:
//
//	GET  /ws/v1/partition/{partition}/usage/users
//	GET  /ws/v1/partition/{partition}/usage/user/{user}
//	GET  /ws/v1/partition/{partition}/usage/groups
//	GET  /ws/v1/partition/{partition}/usage/group/{group}
//	GET  /ws/v1/partition/{partition}/queues
//	GET  /ws/v1/partition/{partition}/queue/{queue}    children only with ?subtree
//	POST /ws/v1/validate-conf
//
// A partition is a tree of the same name, of any policy. Answers have the form of release 1.9, with amounts in base
// units, lists sorted by path or name, and empty lists and maps written out, which clients of all releases can read.
// Reads are linearizable; a list that needs several calls of the API is not one instant.
func NewHandler(trees Trees) http.Handler {
	s := &server{trees}
	mux := http.NewServeMux()
	mux.Handle("/ws/v1/partition/{partition}/usage/users", getOnly(s.handleUsers))
	mux.Handle("/ws/v1/partition/{partition}/usage/user/{name}", getOnly(s.handleUser))
	mux.Handle("/ws/v1/partition/{partition}/usage/groups", getOnly(s.handleGroups))
	mux.Handle("/ws/v1/partition/{partition}/usage/group/{name}", getOnly(s.handleGroup))
	mux.Handle("/ws/v1/partition/{partition}/queues", getOnly(s.handleQueues))
	mux.Handle("/ws/v1/partition/{partition}/queue/{name}", getOnly(s.handleQueue))
	mux.Handle(validatePath, newAnswerHandler(http.MethodPost, validateConf))
	mux.Handle(
		"/",
		newAnswerHandler("", func(*http.Request) (any, error) { return nil, statusFailure(http.StatusNotFound) }),
	)
	return mux
}

// Prefix is where the calls are, as in the original.
const Prefix = "/ws/v1/"

// validatePath is the call that validates a configuration. It reads nothing, so only the server can ask who calls.
const validatePath = "/ws/v1/validate-conf"

// NeedsCaller reports whether a call does work for its caller without asking the API, which would ask for rights.
func NeedsCaller(r *http.Request) bool { return r.URL.Path == validatePath }

type server struct{ trees Trees }

func getOnly(answer func(*http.Request) (any, error)) http.Handler {
	return newAnswerHandler(http.MethodGet, answer)
}

// newAnswerHandler writes an answer or an error as JSON. Which web pages may read it, which the original leaves to
// any, is for the server to say. Other methods are refused; the empty method is any.
func newAnswerHandler(method string, answer func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "application/json; charset=UTF-8")
		if method != "" && r.Method != method {
			header.Set("Allow", method)
			writeJSON(w, nil, statusFailure(http.StatusMethodNotAllowed))
			return
		}
		body, err := answer(r)
		writeJSON(w, body, err)
	})
}

func writeJSON(w http.ResponseWriter, body any, err error) {
	if err != nil {
		f := asFailure(err)
		w.WriteHeader(f.StatusCode)
		body = f
	}
	// A caller that has gone needs no answer, and no other reader would see the error.
	_ = json.NewEncoder(w).Encode(body)
}

// verdict is the answer of validate-conf. The reason is one problem a line; the first is YuniKorn's.
type verdict struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"`
}

func validateConf(r *http.Request) (any, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, MaxSize+1))
	if err != nil {
		return nil, &failure{http.StatusBadRequest, "the configuration could not be read: " + err.Error()}
	}
	_, problems := validateConfig(text, nil)
	if len(problems) > 0 {
		return verdict{Reason: problems.Error()}, nil
	}
	return verdict{Allowed: true}, nil
}

// lastName is the last part of the path, read as the original does: like a query, so that + is a space.
func lastName(r *http.Request) (string, bool) {
	path := r.URL.EscapedPath()
	name, err := url.QueryUnescape(path[strings.LastIndexByte(path, '/')+1:])
	return name, err == nil
}
