package clustertest

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/quorate/quorate/adapters/gate"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

var errKilled = errors.New("the process was killed")

// callBudget ends a process at one of its calls to either side: that call is carried out or not, its answer is lost,
// and no later call leaves the process.
type callBudget struct {
	kill     context.CancelFunc
	carryOut bool

	mu   sync.Mutex
	left int
	at   string // the call at which the process was killed
}

func (b *callBudget) call(name string, call func() error) error {
	b.mu.Lock()
	b.left--
	dead, last := b.left < 0, b.left == 0
	if last {
		b.at = name
	}
	b.mu.Unlock()
	switch {
	case dead:
		return errKilled
	case last:
		if b.carryOut {
			_ = call() // its answer is lost
		}
		b.kill()
		return errKilled
	}
	return call()
}

// killedAt returns an empty text if the process was not killed.
func (b *callBudget) killedAt() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// newClient makes clients of the API server whose changes count.
func (b *callBudget) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	api, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(api, interceptor.Funcs{
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return b.call("remove the gate", func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			return b.call("patch "+sub, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(
			ctx context.Context, c client.Client, sub string, o, s client.Object, opts ...client.SubResourceCreateOption,
		) error {
			return b.call("create "+sub, func() error { return c.SubResource(sub).Create(ctx, o, s, opts...) })
		},
	}), nil
}

type limitedQuorate struct {
	gate.Quorate
	budget *callBudget
}

func limited[Q, A any](
	ctx context.Context, b *callBudget, name string, q Q, call func(context.Context, Q) (A, error),
) (A, error) {
	var answer A
	err := b.call(name, func() (err error) {
		answer, err = call(ctx, q)
		return err
	})
	return answer, err
}

func (q limitedQuorate) Allocate(
	ctx context.Context, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	return limited(ctx, q.budget, "Allocate", r, q.Quorate.Allocate)
}

func (q limitedQuorate) Release(ctx context.Context, r *quoratev1.ReleaseRequest) (*quoratev1.ReleaseResponse, error) {
	return limited(ctx, q.budget, "Release", r, q.Quorate.Release)
}

func (q limitedQuorate) GetAllocation(
	ctx context.Context, r *quoratev1.GetAllocationRequest,
) (*quoratev1.GetAllocationResponse, error) {
	return limited(ctx, q.budget, "GetAllocation", r, q.Quorate.GetAllocation)
}

func (q limitedQuorate) ListWaiting(
	ctx context.Context, r *quoratev1.ListWaitingRequest,
) (*quoratev1.ListWaitingResponse, error) {
	return limited(ctx, q.budget, "ListWaiting", r, q.Quorate.ListWaiting)
}

func (q limitedQuorate) ListAllocations(
	ctx context.Context, r *quoratev1.ListAllocationsRequest,
) (*quoratev1.ListAllocationsResponse, error) {
	return limited(ctx, q.budget, "ListAllocations", r, q.Quorate.ListAllocations)
}
