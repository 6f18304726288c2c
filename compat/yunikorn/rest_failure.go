package yunikorn

import (
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"
)

// Messages of the original.
const (
	noPartition = "Partition not found"
	noQueue     = "Queue not found"
	badQueue    = "Invalid queue name"
)

type failure struct {
	StatusCode int
	Message    string
}

func (f *failure) Error() string { return f.Message }

// MarshalJSON writes the message in two fields, as the original does.
func (f *failure) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		StatusCode  int    `json:"status_code"`
		Message     string `json:"message"`
		Description string `json:"description"`
	}{f.StatusCode, f.Message, f.Message})
}

func statusFailure(code int) *failure { return &failure{code, http.StatusText(code)} }

// codes are the answers to errors of the API; all others are 500.
var codes = map[connect.Code]int{
	connect.CodeNotFound:          http.StatusNotFound,
	connect.CodeInvalidArgument:   http.StatusBadRequest,
	connect.CodeUnauthenticated:   http.StatusUnauthorized,
	connect.CodePermissionDenied:  http.StatusForbidden,
	connect.CodeResourceExhausted: http.StatusTooManyRequests,
	connect.CodeUnavailable:       http.StatusServiceUnavailable,
	connect.CodeDeadlineExceeded:  http.StatusGatewayTimeout,
}

// WriteError answers an error of the API for a call that does not reach the handler.
func WriteError(w http.ResponseWriter, _ *http.Request, err error) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if connect.CodeOf(err) == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, nil, err)
}

func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	code, known := codes[connect.CodeOf(err)]
	if !known {
		code = http.StatusInternalServerError
	}
	message := err.Error()
	var answer *connect.Error
	if errors.As(err, &answer) {
		message = answer.Message()
	}
	return &failure{code, message}
}
