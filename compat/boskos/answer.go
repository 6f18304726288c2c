package boskos

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// answer is written with 200; its type is guessed from its first bytes, as in the original.
type answer func(*http.Request) ([]byte, error)

func postOnly(name string, do answer) http.Handler {
	return newAnswerHandler(http.MethodPost, do, func(r *http.Request) string {
		return fmt.Sprintf("Method %v, /%s only accepts POST.", r.Method, name)
	})
}

func getOnly(do answer) http.Handler {
	return newAnswerHandler(http.MethodGet, do, func(*http.Request) string { return "/metric only accepts GET" })
}

func newAnswerHandler(method string, do answer, otherMethod func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			http.Error(w, otherMethod(r), http.StatusMethodNotAllowed)
			return
		}
		err := checkText(r)
		var body []byte
		if err == nil {
			body, err = do(r)
		}
		if err != nil {
			f := asFailure(err)
			http.Error(w, f.text, f.status)
			return
		}
		if method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = w.Write(body) // a caller that has gone needs no answer
	})
}

// checkText refuses parameters that are not UTF-8, because all texts in the ledger are.
func checkText(r *http.Request) error {
	for key, values := range r.URL.Query() {
		if slices.ContainsFunc(append(values, key), func(text string) bool { return !utf8.ValidString(text) }) {
			return badRequest("The parameter %q is not UTF-8.", key)
		}
	}
	return nil
}

// failure is an answer other than 200.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func badRequest(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// notAvailable is the answer for items that cannot be acquired, and for unknown names. Clients compare the text.
func notAvailable(name string) error {
	return &failure{http.StatusNotFound, fmt.Sprintf("no available resource %s, try again later.", name)}
}

// noType is the answer for unknown types. Clients compare the text.
func noType(name string) error {
	return &failure{http.StatusNotFound, fmt.Sprintf("resource type %q does not exist", name)}
}

func otherOwner(asks, owns string) error {
	text := fmt.Sprintf("owner mismatch request by %s, currently owned by %s", asks, owns)
	return &failure{http.StatusUnauthorized, text}
}

func otherState(current, asked string) error {
	return &failure{http.StatusConflict, fmt.Sprintf("state mismatch - expected %v, current %v", current, asked)}
}

func wrapAnswer(err error, format string, args ...any) error {
	f := asFailure(err)
	return &failure{f.status, fmt.Sprintf(format, args...) + ": " + f.text}
}

// statuses are the answers to errors of the API; all others are 500. None is 401, which would tell a client that
// another owner has the resource, and that it should go on asking.
var statuses = map[connect.Code]int{
	connect.CodeInvalidArgument:  http.StatusBadRequest,
	connect.CodeUnauthenticated:  http.StatusForbidden,
	connect.CodePermissionDenied: http.StatusForbidden,
	// the id that a request id stands for is that of another caller's allocation
	connect.CodeAlreadyExists: http.StatusConflict,
	// some bound of the server; denials are not errors here
	connect.CodeResourceExhausted: http.StatusServiceUnavailable,
	connect.CodeUnavailable:       http.StatusServiceUnavailable,
	connect.CodeDeadlineExceeded:  http.StatusServiceUnavailable,
	// a server that is stopping, or items that other calls changed meanwhile; the call may be repeated
	connect.CodeCanceled: http.StatusServiceUnavailable,
	connect.CodeAborted:  http.StatusServiceUnavailable,
}

// WriteError answers an error of the API for a call that does not reach the handler.
func WriteError(w http.ResponseWriter, _ *http.Request, err error) {
	f := asFailure(err)
	if connect.CodeOf(err) == connect.CodeNotFound {
		f.status = http.StatusNotFound // that of a front end that is off
	}
	http.Error(w, f.text, f.status)
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
	return &failure{status, cmp.Or(outageText(failed), failed.Message())}
}

// leaderReasons are the reasons of errors whose texts say where nodes listen and why one does not answer. That is for
// operators, who find it in the log.
var leaderReasons = []string{"NO_LEADER", "NOT_LEADER", "LEADERSHIP_LOST"}

// outageCodes are the codes of errors that say that the cluster did not answer.
var outageCodes = []connect.Code{connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled}

// outageText is the text for clients while a leader is missing or lost, or if a call took too long; empty for all other
// errors.
func outageText(failed *connect.Error) string {
	if !slices.Contains(outageCodes, failed.Code()) {
		return ""
	}
	problem := problemOf(failed)
	switch {
	case problem != nil && !slices.Contains(leaderReasons, problem.GetReason()):
		return "" // a text of this server about itself
	case problem.GetNotApplied():
		return "the leader of the cluster cannot be reached now, nothing was changed, try again later."
	}
	return "the cluster did not answer in time, the call may have been carried out, try again later."
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

// isDenial is true for a denial by a limit, and false for a bound of the server.
func isDenial(err error) bool {
	var failed *connect.Error
	if connect.CodeOf(err) != connect.CodeResourceExhausted || !errors.As(err, &failed) {
		return false
	}
	for _, detail := range failed.Details() {
		if detail.Type() == decisionType {
			return true
		}
	}
	return false
}
