package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
)

// gatewayError is an answer with an HTTP status other than 200 and without the JSON of a server: a proxy or gateway in
// front of the servers gave it. docs/clients.md has the table of what each status means; all clients follow it.
type gatewayError struct {
	status int
	text   string
	// retryAfter is how long the gateway asks to wait; negative if it does not say.
	retryAfter time.Duration
}

// Error returns the status.
func (e *gatewayError) Error() string {
	return fmt.Sprintf("HTTP %s without an answer of a server: a proxy or gateway in front of it said so", e.text)
}

// mayBeDone reports whether a server may have carried the call out: a status below 500 says that the gateway refused
// the request before any server had all of it.
func (e *gatewayError) mayBeDone() bool {
	return e.status >= http.StatusInternalServerError && e.status != 501
}

// code is that of Connect where its specification has one for the status, apart from the refusals of requests that are
// too large or too slow.
func (e *gatewayError) code() connect.Code {
	switch e.status {
	case http.StatusBadRequest:
		return connect.CodeInternal
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return connect.CodeUnimplemented
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return connect.CodeInvalidArgument
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return connect.CodeUnavailable
	}
	return connect.CodeUnknown
}

// maxGatewayText bounds what is read of an answer that is not 200; the errors of servers are far smaller.
const maxGatewayText = 16 << 20

// gatewayFailure returns nil for an answer of a server, whose body stays readable.
func gatewayFailure(response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxGatewayText))
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if isServerError(body) {
		response.Body = io.NopCloser(strings.NewReader(string(body)))
		return nil
	}
	failure := &gatewayError{
		status: response.StatusCode, text: response.Status, retryAfter: retryAfterHeader(response.Header),
	}
	return connect.NewError(failure.code(), failure)
}

// isServerError reports whether a body is an error as servers write it. Gateways answer with JSON too, but without a
// code of Connect.
func isServerError(body []byte) bool {
	var said struct {
		Code connect.Code `json:"code"`
	}
	return json.Unmarshal(body, &said) == nil && said.Code != 0
}

// retryAfterHeader returns the number of seconds, or the time until the date of the header; negative if there is none.
func retryAfterHeader(header http.Header) time.Duration {
	said := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(said); err == nil && seconds >= 0 {
		return min(time.Duration(seconds), longestHint/time.Second) * time.Second
	}
	if date, err := http.ParseTime(said); err == nil {
		return max(time.Until(date), 0)
	}
	return -1
}

// gatewayOf is nil if the error has none in its chain.
func gatewayOf(err error) *gatewayError {
	var said *gatewayError
	errors.As(err, &said)
	return said
}
