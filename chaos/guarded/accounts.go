package guarded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// maxHeld is how many allocations an account keeps.
const maxHeld = 20

// Run plays the accounts and the administrator until ctx ends, and returns after the last call has ended, at most
// Timeout later. Failed calls are not errors.
func (w *Workload) Run(ctx context.Context) {
	var busy sync.WaitGroup
	for i := range accountCount {
		c := w.newCaller(100 + i)
		busy.Go(func() { c.work(ctx, i) })
	}
	admin := &adminCaller{caller: w.newCaller(99)}
	for i := range admin.mayHold {
		admin.mayHold[i] = true
	}
	busy.Go(func() { admin.administer(ctx) })
	reader := w.newCaller(98)
	busy.Go(func() { reader.followRecords(ctx) })
	busy.Wait()
}

type caller struct {
	*Workload

	random *rand.Rand
	serial int
}

func (w *Workload) newCaller(number int) *caller {
	return &caller{Workload: w, random: rand.New(rand.NewPCG(w.config.Seed, uint64(number)))}
}

func (c *caller) randomURL() string { return c.config.Servers[c.random.IntN(len(c.config.Servers))] }

func (c *caller) pauseAbout(ctx context.Context, mean time.Duration) {
	pauseFor(ctx, time.Duration(c.random.Int64N(int64(2*mean))))
}

// accountCall has an id that begins with the id of its token.
type accountCall struct {
	account        int
	token, url, id string
}

// work lets an account call, mostly with its newest token, else with any that it ever had.
func (c *caller) work(ctx context.Context, account int) {
	for ; ctx.Err() == nil; c.pauseAbout(ctx, c.config.Pause) {
		tokens := c.tokensOf(account)
		if len(tokens) == 0 {
			continue
		}
		token := tokens[len(tokens)-1]
		if c.random.IntN(4) == 0 {
			token = tokens[c.random.IntN(len(tokens))]
		}
		c.serial++
		call := accountCall{account, token, c.randomURL(), fmt.Sprintf("%s.%d", tokenID(token), c.serial)}
		switch held := c.takeOldest(account); {
		case held != "":
			call.id = held
			c.release(ctx, call)
		case c.random.IntN(4) == 0:
			c.setLimit(ctx, call, 1+c.random.Int64N(1_000_000))
		default:
			c.allocate(ctx, call)
		}
	}
}

func (w *Workload) tokensOf(account int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens[account]
}

// takeOldest returns an empty id unless the account has too many allocations.
func (w *Workload) takeOldest(account int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held[account]) <= maxHeld {
		return ""
	}
	oldest := w.held[account][0]
	w.held[account] = w.held[account][1:]
	return oldest
}

func (w *Workload) allocate(ctx context.Context, a accountCall) {
	ctx, cancel := w.within(ctx)
	defer cancel()
	answer, err := w.allocationAPI(a.token, a.url).Allocate(ctx, &quoratev1.AllocateRequest{
		Id: a.id, Claims: []*quoratev1.Claim{
			{Tree: guardedTree, Node: accountName(a.account), Amounts: map[string]int64{resource: 1}},
		},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.noteRefusal(err)
		return
	}
	w.held[a.account] = append(w.held[a.account], a.id)
	w.noteAnswer(a, actionAllocate, answer.GetWrite().GetIndex(), answer.GetWrite().GetRepetition())
}

// release lets the account keep the allocation if the call fails.
func (w *Workload) release(ctx context.Context, a accountCall) {
	ctx, cancel := w.within(ctx)
	defer cancel()
	answer, err := w.allocationAPI(a.token, a.url).Release(ctx, &quoratev1.ReleaseRequest{Id: a.id})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.held[a.account] = append(w.held[a.account], a.id)
		w.noteRefusal(err)
		return
	}
	w.noteAnswer(a, actionRelease, answer.GetWrite().GetIndex(), answer.GetWrite().GetRepetition())
}

func (w *Workload) setLimit(ctx context.Context, a accountCall, amount int64) {
	ctx, cancel := w.within(ctx)
	defer cancel()
	answer, err := w.treeAPI(a.token, a.url).SetLimits(ctx, &quoratev1.SetLimitsRequest{
		Tree: guardedTree, Node: ownNode(a.account), RequestId: a.id,
		Limits: map[string]*quoratev1.Limit{resource: {Value: &quoratev1.Limit_Amount{Amount: amount}}},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.noteRefusal(err)
		return
	}
	if len(answer.GetResult().GetChanges()) > 0 {
		w.evidence.Changes = append(w.evidence.Changes, Change{"SetLimits", a.id})
	}
}

// noteAnswer must be called with the lock held. The index of a repeated answer may be later than that of the command.
func (w *Workload) noteAnswer(a accountCall, action string, index uint64, repeated bool) {
	if !repeated {
		w.evidence.Answers = append(w.evidence.Answers, Answer{accountName(a.account), tokenID(a.token), action, index})
	}
}

// noteRefusal counts calls that were refused for their credential or rights. It must be called with the lock held.
func (w *Workload) noteRefusal(err error) {
	if code := connect.CodeOf(err); code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied ||
		code == connect.CodeNotFound {
		w.evidence.Refusals++
	}
}
