package compat

import (
	"context"
	"errors"

	"connectrpc.com/connect"
)

// APIError returns an error of a call as one of the API, with the code that the end of a context has there; it is
// "unknown" if the error is neither.
func APIError(err error) *connect.Error {
	var failed *connect.Error
	switch {
	case errors.As(err, &failed):
		return failed
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	}
	return connect.NewError(connect.CodeUnknown, err)
}
