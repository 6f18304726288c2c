package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Title   string `json:"title"`
}

func (f *failure) Error() string { return f.Message }

func newFailure(code int, format string, args ...any) *failure {
	return &failure{code, fmt.Sprintf(format, args...), http.StatusText(code)}
}

// notFound is the answer for an unknown thing of a kind, such as "project".
func notFound(kind, id string) *failure {
	return newFailure(http.StatusNotFound, "Could not find %s: %.128s.", kind, id)
}

func badRequest(format string, args ...any) *failure {
	return newFailure(http.StatusBadRequest, format, args...)
}

// Words of Keystone for what has no words of its own here.
const (
	needsToken  = "The request you have made requires authentication."
	mayNot      = "You are not authorized to perform the requested action"
	unavailable = "The service is currently unable to handle the request: "
)

// statuses are the answers to errors of the API; all others are 500. What a policy forbids is 403, as what Keystone's
// own models forbid.
var statuses = map[connect.Code]int{
	connect.CodeNotFound:           http.StatusNotFound,
	connect.CodeInvalidArgument:    http.StatusBadRequest,
	connect.CodeUnauthenticated:    http.StatusUnauthorized,
	connect.CodePermissionDenied:   http.StatusForbidden,
	connect.CodeFailedPrecondition: http.StatusForbidden,
	connect.CodeAborted:            http.StatusConflict,
	connect.CodeAlreadyExists:      http.StatusConflict,
	connect.CodeResourceExhausted:  http.StatusTooManyRequests,
	connect.CodeUnavailable:        http.StatusServiceUnavailable,
	connect.CodeDeadlineExceeded:   http.StatusServiceUnavailable,
	connect.CodeCanceled:           http.StatusServiceUnavailable,
}

// WriteError answers an error of the API for a call that does not reach the handler.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	writeFailure(w, r, asFailure(err))
}

func writeFailure(w http.ResponseWriter, r *http.Request, f *failure) {
	switch f.Code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Keystone uri="`+root+`"`)
	case http.StatusServiceUnavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", "1")
		}
	}
	writeJSON(w, r, f.Code, map[string]*failure{"error": f})
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "X-Auth-Token")
	w.WriteHeader(status)
	if body == nil || r.Method == http.MethodHead {
		return
	}
	// A caller that has gone needs no answer, and no other reader would see the error.
	_ = json.NewEncoder(w).Encode(body)
}

func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	failed := compat.APIError(err)
	status, known := statuses[failed.Code()]
	if !known {
		status = http.StatusInternalServerError
	}
	return newFailure(status, "%s", messageOf(status, failed))
}

// leaderReasons are the reasons of errors whose texts say where nodes listen. That is for operators, who find it in the
// log.
var leaderReasons = []string{"NO_LEADER", "NOT_LEADER", "LEADERSHIP_LOST"}

func messageOf(status int, failed *connect.Error) string {
	switch status {
	case http.StatusUnauthorized:
		return needsToken + " " + failed.Message()
	case http.StatusForbidden:
		return mayNot + ": " + failed.Message()
	case http.StatusServiceUnavailable:
		if problem := problemOf(failed); problem != nil && !slices.Contains(leaderReasons, problem.GetReason()) {
			return unavailable + failed.Message()
		}
		return unavailable + "the cluster has no leader now, or did not answer in time"
	}
	return failed.Message()
}

// problemOf returns nil if the error has no detail of the API.
func problemOf(failed *connect.Error) *quoratev1.Problem {
	for _, detail := range failed.Details() {
		if value, err := detail.Value(); err == nil {
			if problem, ok := value.(*quoratev1.Problem); ok {
				return problem
			}
		}
	}
	return nil
}

func hasReason(err error, reason string) bool {
	var failed *connect.Error
	return errors.As(err, &failed) && problemOf(failed).GetReason() == reason
}

// isHidden is true if something does not exist or the caller may not see it: both look the same.
func isHidden(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeNotFound || code == connect.CodePermissionDenied
}
