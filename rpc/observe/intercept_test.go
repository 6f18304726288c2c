package observe

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect"
)

func TestNotedCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "deadline_exceeded"},
		{connect.NewError(connect.CodeNotFound, errors.New("none")), "not_found"},
		{errors.New("unexpected"), "internal"},
	} {
		notes := &Call{}
		err := NoteCode(context.WithValue(t.Context(), callKey{}, notes), c.err)
		if notes.Code != c.want || (err == nil) != (c.err == nil) {
			t.Errorf("%v is noted as %q and returned as %v, want %q", c.err, notes.Code, err, c.want)
		}
	}
}
