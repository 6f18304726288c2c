package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestWritesAreNamedOnce: a request without an id gets one that is the same in every attempt and different in the next
// call. The caller's message is not changed.
func TestWritesAreNamedOnce(t *testing.T) {
	var names []string
	fail := func(name string) error {
		names = append(names, name)
		if len(names)%2 == 1 {
			return connect.NewError(connect.CodeUnavailable, errors.New("once"))
		}
		return nil
	}
	s := &server{
		allocate: func(_ context.Context, r *quoratev1.AllocateRequest) (*quoratev1.AllocateResponse, error) {
			return &quoratev1.AllocateResponse{}, fail(r.GetId())
		},
		batch: func(_ context.Context, r *quoratev1.BatchAllocateRequest) (*quoratev1.BatchAllocateResponse, error) {
			return &quoratev1.BatchAllocateResponse{}, fail(r.GetRequests()[0].GetId())
		},
		apply: func(_ context.Context, r *quoratev1.ApplyTreesRequest) (*quoratev1.ApplyTreesResponse, error) {
			return &quoratev1.ApplyTreesResponse{}, fail(r.GetRequestId())
		},
		limits: func(_ context.Context, r *quoratev1.SetLimitsRequest) (*quoratev1.SetLimitsResponse, error) {
			return &quoratev1.SetLimitsResponse{}, fail(r.GetRequestId())
		},
		remove: func(_ context.Context, r *quoratev1.DeleteTreeRequest) (*quoratev1.DeleteTreeResponse, error) {
			return &quoratev1.DeleteTreeResponse{}, fail(r.GetRequestId())
		},
		move: func(_ context.Context, r *quoratev1.MoveNodeRequest) (*quoratev1.MoveNodeResponse, error) {
			return &quoratev1.MoveNodeResponse{}, fail(r.GetRequestId())
		},
		hold: func(_ context.Context, r *adminv1.CordonNodeRequest) (*adminv1.CordonNodeResponse, error) {
			return &adminv1.CordonNodeResponse{}, fail(r.GetRequestId())
		},
		resume: func(_ context.Context, r *adminv1.UncordonNodeRequest) (*adminv1.UncordonNodeResponse, error) {
			return &adminv1.UncordonNodeResponse{}, fail(r.GetRequestId())
		},
		back: func(_ context.Context, r *adminv1.RollBackRequest) (*adminv1.RollBackResponse, error) {
			return &adminv1.RollBackResponse{}, fail(r.GetRequestId())
		},
		explain: func(_ context.Context, r *quoratev1.ExplainRequest) (*quoratev1.ExplainResponse, error) {
			return &quoratev1.ExplainResponse{}, fail(r.GetRequest().GetId())
		},
	}
	c := newClient(t, []string{s.start(t)})
	calls := map[string]func(name string) (string, error){
		"Allocate": func(name string) (string, error) {
			r := &quoratev1.AllocateRequest{Id: name}
			_, err := c.Allocations.Allocate(t.Context(), r)
			return r.GetId(), err
		},
		"BatchAllocate": func(name string) (string, error) {
			r := &quoratev1.BatchAllocateRequest{Requests: []*quoratev1.AllocateRequest{{Id: name}}}
			_, err := c.Allocations.BatchAllocate(t.Context(), r)
			return r.GetRequests()[0].GetId(), err
		},
		"ApplyTrees": func(name string) (string, error) {
			r := &quoratev1.ApplyTreesRequest{RequestId: name}
			_, err := c.Trees.ApplyTrees(t.Context(), r)
			return r.GetRequestId(), err
		},
		"SetLimits": func(name string) (string, error) {
			r := &quoratev1.SetLimitsRequest{RequestId: name}
			_, err := c.Trees.SetLimits(t.Context(), r)
			return r.GetRequestId(), err
		},
		"DeleteTree": func(name string) (string, error) {
			r := &quoratev1.DeleteTreeRequest{RequestId: name}
			_, err := c.Trees.DeleteTree(t.Context(), r)
			return r.GetRequestId(), err
		},
		"MoveNode": func(name string) (string, error) {
			r := &quoratev1.MoveNodeRequest{RequestId: name}
			_, err := c.Trees.MoveNode(t.Context(), r)
			return r.GetRequestId(), err
		},
		"CordonNode": func(name string) (string, error) {
			r := &adminv1.CordonNodeRequest{RequestId: name}
			_, err := c.Cordons.CordonNode(t.Context(), r)
			return r.GetRequestId(), err
		},
		"UncordonNode": func(name string) (string, error) {
			r := &adminv1.UncordonNodeRequest{RequestId: name}
			_, err := c.Cordons.UncordonNode(t.Context(), r)
			return r.GetRequestId(), err
		},
		"RollBack": func(name string) (string, error) {
			r := &adminv1.RollBackRequest{RequestId: name}
			_, err := c.Configuration.RollBack(t.Context(), r)
			return r.GetRequestId(), err
		},
		"Explain": func(name string) (string, error) {
			r := &quoratev1.ExplainRequest{
				Question: &quoratev1.ExplainRequest_Request{Request: &quoratev1.AllocateRequest{Id: name}},
			}
			_, err := c.Allocations.Explain(t.Context(), r)
			return r.GetRequest().GetId(), err
		},
	}
	for method, call := range calls {
		names = nil
		for _, name := range []string{"", "", "mine"} {
			if left, err := call(name); err != nil || left != name {
				t.Errorf("%s: the message went in with %q and came back with %q, %v", method, name, left, err)
			}
		}
		if len(names) != 6 || names[0] == "" || names[0] != names[1] || names[2] != names[3] || names[0] == names[2] ||
			names[4] != "mine" || names[5] != "mine" {
			t.Errorf("%s was sent with the names %q", method, names)
		}
	}
	for _, method := range methodsWithRequestID() {
		if calls[method] == nil {
			t.Errorf("%s has a request id that the client does not fill: wrap it in names.go and test it here", method)
		}
	}
}

// methodsWithRequestID returns the methods of the public API whose request has a request id.
func methodsWithRequestID() []string {
	var found []string
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(file.Package()), "quorate.") {
			return true
		}
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				if methods.Get(j).Input().Fields().ByName("request_id") != nil {
					found = append(found, string(methods.Get(j).Name()))
				}
			}
		}
		return true
	})
	return found
}
