package boskos

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// taken is an API whose ids are all in use by callers of whom nothing is told.
type taken struct{ *fake }

func (taken) Allocate(context.Context, *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
	return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("the id cannot be used; use another one"))
}

func (taken) GetAllocation(
	context.Context, *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	return nil, errUnknown
}

func post(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, http.NoBody))
	return w.Code, w.Body.String()
}

// TestATakenIDIsNoUnknownType: an id that another caller of the API has is answered as that, and not as a type that
// does not exist.
func TestATakenIDIsNoUnknownType(t *testing.T) {
	f := loaded(t, "resources: [{type: car, state: free, names: [c1]}]")
	h := NewHandler(API{taken{f}, f, f}, Options{})
	status, body := post(h, "/acquire?type=car&state=free&dest=busy&owner=me&request_id=1")
	if status != http.StatusConflict || !strings.Contains(body, "use another one") {
		t.Errorf("%d %s", status, body)
	}
}

// TestCallersWithoutRightsAreRefused: in a guarded cluster, who sees none of the trees is refused. Who sees them is
// told of a type that does not exist, and so is everyone in an open cluster.
func TestCallersWithoutRightsAreRefused(t *testing.T) {
	seen := loaded(t, "resources: [{type: car, state: free, names: [c1]}]")
	hidden := &fake{trees: map[string]*quoratev1.Tree{}}
	for _, path := range []string{
		"/acquire?type=car&state=free&dest=busy&owner=me", "/release?name=c1&dest=free&owner=me",
		"/update?name=c1&state=busy&owner=me", "/reset?type=car&state=busy&dest=free&expire=1s",
	} {
		for _, isGuarded := range []bool{true, false} {
			options := Options{IsGuarded: func() bool { return isGuarded }}
			status, body := post(NewHandler(hidden.api(), options), path)
			if (status == http.StatusForbidden) != isGuarded {
				t.Errorf("%s, guarded %v: %d %s", path, isGuarded, status, body)
			}
			unknown := strings.ReplaceAll(strings.ReplaceAll(path, "car", "boat"), "c1", "b1")
			if status, body := post(NewHandler(seen.api(), options), unknown); status == http.StatusForbidden {
				t.Errorf("%s, guarded %v: %d %s", unknown, isGuarded, status, body)
			}
		}
	}
}
