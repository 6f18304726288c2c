package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
)

// strangerPause is the pause between two rounds of calls of a stranger to one node.
const strangerPause = 50 * time.Millisecond

func strangerKinds() []Kind {
	return []Kind{{
		Name: "stranger", skipInUpgrade: true, minHold: 4 * time.Second, maxHold: 12 * time.Second,
		Description: "a client without a credential tries to change everything at all nodes, and none of its calls succeeds",
		missingNeed: func(t *Target) string {
			if t.Guarded {
				return ""
			}
			return "a guarded cluster"
		},
		newFault: stranger,
	}}
}

// strangerCalls are changes of every kind. Some name what exists, others what does not: the answer is that the caller
// may not do it, or that there is no such thing or the caller may not see it.
func strangerCalls(number uint, member string) map[string]func(context.Context, *client.Client) error {
	id := fmt.Sprint("stranger-", number)
	claims := []*quoratev1.Claim{{Tree: "leases", Amounts: map[string]int64{"x": 1}}}
	return map[string]func(context.Context, *client.Client) error{
		"Allocate": func(ctx context.Context, c *client.Client) error {
			_, err := c.Allocations.Allocate(ctx, &quoratev1.AllocateRequest{Id: id, Claims: claims})
			return err
		},
		"Release": func(ctx context.Context, c *client.Client) error {
			_, err := c.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
			return err
		},
		"Renew": func(ctx context.Context, c *client.Client) error {
			_, err := c.Allocations.Renew(ctx, &quoratev1.RenewRequest{Id: id, TtlMs: 1000})
			return err
		},
		"WithdrawRequest": func(ctx context.Context, c *client.Client) error {
			_, err := c.Requests.WithdrawRequest(ctx, &quoratev1beta1.WithdrawRequestRequest{Id: uint64(number)})
			return err
		},
		"CancelScheduledLimit": func(ctx context.Context, c *client.Client) error {
			_, err := c.Trees.CancelScheduledLimit(ctx, &quoratev1.CancelScheduledLimitRequest{Id: id})
			return err
		},
		"ApplyTrees": func(ctx context.Context, c *client.Client) error {
			_, err := c.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
				RequestId: id, Trees: []*quoratev1.Tree{{Name: "strangers"}},
			})
			return err
		},
		"RemoveMember": func(ctx context.Context, c *client.Client) error {
			_, err := c.Cluster.RemoveMember(ctx, &adminv1.RemoveMemberRequest{Id: member, Force: true})
			return err
		},
		"CreateAccount": func(ctx context.Context, c *client.Client) error {
			_, err := c.Access.CreateAccount(ctx, &adminv1.CreateAccountRequest{Account: &adminv1.Account{Name: id}})
			return err
		},
	}
}

// stranger does not reserve nodes, so other faults may hit them at the same time.
func stranger(*rand.Rand) (begin, end func(context.Context, *Target) error) {
	var stop context.CancelFunc
	var calls sync.WaitGroup
	var mu sync.Mutex
	var refused int
	var failed []error
	return func(ctx context.Context, t *Target) error {
			attack, cancel := context.WithCancel(context.WithoutCancel(ctx))
			stop = cancel
			t.Note(-1, "a stranger begins to call")
			for i, url := range t.URLs() {
				c, err := client.New([]string{url}, client.WithPatience(askTimeout), client.WithAttemptTimeout(askTimeout))
				if err != nil {
					return err
				}
				calls.Go(func() {
					for number := uint(1); Sleep(attack, strangerPause); number++ {
						count, err := callAsStranger(attack, c, number, t.Nodes[i].ID)
						mu.Lock()
						refused += count
						failed = append(failed, err)
						mu.Unlock()
					}
				})
			}
			return nil
		}, func(_ context.Context, t *Target) error {
			stop()
			calls.Wait()
			t.Note(-1, "the stranger ends: %d calls were refused", refused)
			return errors.Join(failed...)
		}
}

// callAsStranger makes each call once, and returns how many were refused. Other errors are those of a node that is down
// or has no leader; a call that succeeds, or that tells what exists, is a failure of the cluster.
func callAsStranger(ctx context.Context, c *client.Client, number uint, member string) (refused int, err error) {
	for name, call := range strangerCalls(number, member) {
		answer := call(ctx, c)
		if answer == nil {
			err = errors.Join(err, fmt.Errorf("%s of a stranger at %s succeeded", name, member))
			continue
		}
		switch connect.CodeOf(answer) { //nolint:exhaustive // the others say nothing of rights
		case connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeNotFound:
			refused++
		case connect.CodeAlreadyExists, connect.CodeInvalidArgument, connect.CodeFailedPrecondition:
			err = errors.Join(err, fmt.Errorf("%s tells a stranger at %s: %w", name, member, answer))
		}
	}
	return refused, err
}
