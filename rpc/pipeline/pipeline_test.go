package pipeline_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/rpc/pipeline"
)

type firstKey struct{}

type secondKey struct{}

// serve takes a call through steps, with a handler that answers 200 unless it panics with a cause.
func serve(t *testing.T, cause any, steps ...pipeline.Step) (answer *httptest.ResponseRecorder, recovered any) {
	t.Helper()
	answer = httptest.NewRecorder()
	p := &pipeline.Pipeline{
		Steps: steps,
		Last: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if cause != nil {
				panic(cause)
			}
			w.WriteHeader(http.StatusOK)
		}),
		Recover: func(x *pipeline.Exchange, found any) {
			recovered = found
			x.Writer.WriteHeader(http.StatusInternalServerError)
		},
	}
	ctx := context.WithValue(t.Context(), firstKey{}, "of the caller")
	p.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
	return answer, recovered
}

func TestStepsFollowEachOtherAndEndInReverse(t *testing.T) {
	var happened []string
	step := func(name string, goesOn bool) pipeline.Step {
		return func(x *pipeline.Exchange) bool {
			happened = append(happened, name)
			x.AtEnd(func() { happened = append(happened, "end of "+name) })
			if !goesOn {
				x.Writer.WriteHeader(http.StatusTeapot)
			}
			return goesOn
		}
	}
	answer, _ := serve(t, nil, step("first", true), step("second", false), step("third", true))
	want := []string{"first", "second", "end of second", "end of first"}
	if answer.Code != http.StatusTeapot || !slices.Equal(happened, want) {
		t.Errorf("answered %d after %q, want %q", answer.Code, happened, want)
	}
}

func TestMoreEndsThanUsual(t *testing.T) {
	ended := 0
	serve(t, nil, func(x *pipeline.Exchange) bool {
		for range 20 {
			x.AtEnd(func() { ended++ })
		}
		return true
	})
	if ended != 20 {
		t.Errorf("%d ends happened", ended)
	}
}

func TestAPanicIsAnsweredAndEverythingEnds(t *testing.T) {
	var status, ended int
	answer, recovered := serve(t, "broken", func(x *pipeline.Exchange) bool {
		x.AtEnd(func() { ended++ })
		return true
	})
	if status = answer.Code; status != http.StatusInternalServerError || recovered != "broken" || ended != 1 {
		t.Errorf("answered %d for %v, %d ends", status, recovered, ended)
	}
}

func TestAConnectionCanBeCut(t *testing.T) {
	ended := false
	defer func() {
		err, _ := recover().(error)
		if !errors.Is(err, http.ErrAbortHandler) || !ended {
			t.Errorf("got %v, ended: %v", err, ended)
		}
	}()
	serve(t, http.ErrAbortHandler, func(x *pipeline.Exchange) bool {
		x.AtEnd(func() { ended = true })
		return true
	})
}

func TestOneContextHasWhatStepsAttach(t *testing.T) {
	serve(t, nil, func(x *pipeline.Exchange) bool {
		if got := x.Request.Context().Value(firstKey{}); got != "of the caller" {
			t.Errorf("got %v", got)
		}
		x.Attach(firstKey{}, "of a step")
		x.Attach(secondKey{}, 2)
		x.LimitTime(time.Minute)
		return true
	}, func(x *pipeline.Exchange) bool {
		ctx := x.Request.Context()
		if ctx.Value(firstKey{}) != "of a step" || ctx.Value(secondKey{}) != 2 || ctx.Value(t) != nil {
			t.Errorf("got %v and %v", ctx.Value(firstKey{}), ctx.Value(secondKey{}))
		}
		if deadline, limited := ctx.Deadline(); !limited || time.Until(deadline) > time.Minute {
			t.Errorf("the deadline is %v", deadline)
		}
		return true
	})
}

// TestContextsOfTheExchange: what a handler derives from the context ends with it, and the context ends with the call.
func TestContextsOfTheExchange(t *testing.T) {
	derived := make(chan context.Context, 1)
	serve(t, nil, func(x *pipeline.Exchange) bool {
		x.LimitTime(time.Minute)
		return true
	}, func(x *pipeline.Exchange) bool {
		ctx, cancel := context.WithCancel(x.Request.Context())
		x.AtEnd(cancel)
		if ctx.Err() != nil {
			t.Error("the context has ended too soon")
		}
		derived <- context.WithValue(ctx, secondKey{}, 3)
		return true
	})
	if err := (<-derived).Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
