package compat

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"
)

func TestAPIError(t *testing.T) {
	denied := connect.NewError(connect.CodeResourceExhausted, errors.New("denied"))
	for name, c := range map[string]struct {
		err  error
		want connect.Code
	}{
		"of the API":        {fmt.Errorf("call: %w", denied), connect.CodeResourceExhausted},
		"too late":          {fmt.Errorf("call: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded},
		"a caller left":     {fmt.Errorf("call: %w", context.Canceled), connect.CodeCanceled},
		"of something else": {errors.New("disk"), connect.CodeUnknown},
	} {
		if got := APIError(c.err).Code(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
