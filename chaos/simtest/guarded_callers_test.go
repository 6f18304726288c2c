package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/gen/quorate/v1/quoratev1connect"
)

// start runs the accounts and the administrator until ctx ends. The channel is closed when they have ended.
func (g *guardedRun) start(ctx context.Context) <-chan struct{} {
	var busy sync.WaitGroup
	for i := range accountCount {
		worker := &guardedCaller{guardedRun: g, random: rand.New(rand.NewPCG(g.seed, uint64(100+i)))}
		busy.Go(func() { worker.work(ctx, i) })
	}
	admin := &guardedCaller{guardedRun: g, random: rand.New(rand.NewPCG(g.seed, 99))}
	for i := range admin.mayHold {
		admin.mayHold[i] = true
	}
	busy.Go(func() { admin.administer(ctx) })
	done := make(chan struct{})
	go func() {
		busy.Wait()
		close(done)
	}()
	return done
}

// guardedCaller makes calls one after the other.
type guardedCaller struct {
	*guardedRun

	random *rand.Rand
	serial int
	// mayHold and disabled are what the administrator has made of the accounts.
	mayHold, disabled [accountCount]bool
}

func (c *guardedCaller) randomURL() string { return c.nodeURLs(apiPort)[c.random.IntN(len(c.ids))] }

// pause waits up to a time.
func (c *guardedCaller) pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(c.random.Int64N(int64(most)))):
	}
}

// work lets an account allocate and change limits, mostly with its newest token, else with any that it ever had.
func (c *guardedCaller) work(ctx context.Context, account int) {
	for ; ctx.Err() == nil; c.pause(ctx, 60*time.Millisecond) {
		c.mu.Lock()
		tokens := c.tokens[account]
		c.mu.Unlock()
		if len(tokens) == 0 {
			continue
		}
		token := tokens[len(tokens)-1]
		if c.random.IntN(4) == 0 {
			token = tokens[c.random.IntN(len(tokens))]
		}
		c.serial++
		call := accountCall{account, token, c.randomURL(), fmt.Sprintf("%s.%d", tokenID(token), c.serial)}
		if c.random.IntN(4) == 0 {
			c.setLimit(ctx, call, 1+c.random.Int64N(1_000_000))
		} else {
			c.allocate(ctx, call)
		}
	}
}

// tokenID is the public part of a token.
func tokenID(token string) string { return strings.Split(token, "_")[1] }

// accountCall is a call of an account. Its id begins with that of its token.
type accountCall struct {
	account        int
	token, url, id string
}

// within bounds a call, which may outlive ctx as one that is under way does.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
}

func (g *guardedRun) allocate(ctx context.Context, a accountCall) {
	ctx, cancel := within(ctx)
	defer cancel()
	answer, err := quoratev1connect.NewAllocationServiceClient(g.as(a.token), a.url).Allocate(ctx,
		&quoratev1.AllocateRequest{Id: a.id, Claims: []*quoratev1.Claim{
			{Tree: guardedTree, Node: accountName(a.account), Amounts: map[string]int64{"slots": 1}},
		}})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.noteRefusal(err)
		return
	}
	g.grants = append(g.grants, grantAnswer{a.account, tokenID(a.token), answer.GetIndex()})
}

func (g *guardedRun) setLimit(ctx context.Context, a accountCall, amount int64) {
	ctx, cancel := within(ctx)
	defer cancel()
	answer, err := quoratev1connect.NewTreeServiceClient(g.as(a.token), a.url).SetLimits(ctx, &quoratev1.SetLimitsRequest{
		Tree: guardedTree, Node: accountName(a.account) + "/own", RequestId: a.id,
		Limits: map[string]*quoratev1.Limit{"slots": {Value: &quoratev1.Limit_Amount{Amount: amount}}},
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.noteRefusal(err)
		return
	}
	if len(answer.GetResult().GetChanges()) > 0 {
		g.changes = append(g.changes, changeAnswer{"SetLimits", a.id})
	}
}

// noteRefusal must be called with the lock held.
func (g *guardedRun) noteRefusal(err error) {
	if code := connect.CodeOf(err); code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied ||
		code == connect.CodeNotFound {
		g.refusals++
	}
}

// administer gives and revokes tokens, gives and takes bindings, and disables and enables accounts.
func (c *guardedCaller) administer(ctx context.Context) {
	for i := range accountCount {
		c.createToken(ctx, i)
	}
	for ; ctx.Err() == nil; c.pause(ctx, 150*time.Millisecond) {
		account := c.random.IntN(accountCount)
		switch c.random.IntN(6) {
		case 0, 1:
			c.createToken(ctx, account)
		case 2, 3:
			c.revokeToken(ctx, account)
			c.createToken(ctx, account)
		case 4:
			c.mayHold[account] = !c.mayHold[account]
			c.attackWhile(ctx, account, func() { c.applyTree(ctx) })
		default:
			c.disabled[account] = !c.disabled[account]
			c.attackWhile(ctx, account, func() { c.updateAccount(ctx, account) })
		}
	}
}

// attackWhile makes calls of an account, at all servers and with its newest token, while its rights change.
func (c *guardedCaller) attackWhile(ctx context.Context, account int, change func()) {
	c.mu.Lock()
	tokens := c.tokens[account]
	c.mu.Unlock()
	var busy sync.WaitGroup
	for i := range 8 {
		if len(tokens) == 0 {
			break
		}
		c.serial++
		token := tokens[len(tokens)-1]
		call := accountCall{account, token, c.randomURL(), fmt.Sprintf("%s.a%d", tokenID(token), c.serial)}
		busy.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			c.allocate(ctx, call)
		})
	}
	change()
	busy.Wait()
}

// until repeats a call of the administrator until it succeeds or ctx ends, and reports whether it did.
func (c *guardedCaller) until(ctx context.Context, call func(ctx context.Context, url string) error) bool {
	for {
		attempt, cancel := within(ctx)
		err := call(attempt, c.randomURL())
		cancel()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		c.pause(ctx, callTimeout/8)
	}
}

func (c *guardedCaller) noteChange(action, object string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, changeAnswer{action, object})
}

// createToken is not repeated: each attempt may have made a token.
func (c *guardedCaller) createToken(ctx context.Context, account int) {
	ctx, cancel := within(ctx)
	defer cancel()
	answer, err := c.accessOf(c.admin, c.randomURL()).CreateToken(ctx,
		&quoratev1.CreateTokenRequest{Account: accountName(account)})
	if err != nil {
		return
	}
	c.noteChange("CreateToken", "access token "+answer.GetToken().GetId())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[account] = append(c.tokens[account], answer.GetSecret())
}

// revokeToken revokes the newest token that is live, or the oldest, while it is used.
func (c *guardedCaller) revokeToken(ctx context.Context, account int) {
	var live []string
	if !c.until(ctx, func(ctx context.Context, url string) error {
		answer, err := c.accessOf(c.admin, url).ListTokens(ctx,
			&quoratev1.ListTokensRequest{Account: accountName(account)})
		live = live[:0]
		for _, token := range answer.GetTokens() {
			if !token.GetRevoked() {
				live = append(live, token.GetId())
			}
		}
		return err
	}) || len(live) == 0 {
		return
	}
	id := live[len(live)-1]
	if c.random.IntN(3) == 0 || len(live) > 6 {
		id = live[0]
	}
	c.attackWhile(ctx, account, func() {
		if c.until(ctx, func(ctx context.Context, url string) error {
			_, err := c.accessOf(c.admin, url).RevokeToken(ctx, &quoratev1.RevokeTokenRequest{Id: id})
			return err
		}) {
			c.noteChange("RevokeToken", "access token "+id)
		}
	})
}

func (c *guardedCaller) updateAccount(ctx context.Context, account int) {
	c.until(ctx, func(ctx context.Context, url string) error {
		_, err := c.accessOf(c.admin, url).UpdateAccount(ctx, &quoratev1.UpdateAccountRequest{
			Account: &quoratev1.Account{Name: accountName(account), Disabled: c.disabled[account]},
		})
		return err
	})
}

func (c *guardedCaller) applyTree(ctx context.Context) {
	c.serial++
	id, changed := fmt.Sprintf("apply-%d", c.serial), false
	tree := guardedTreeWith(c.mayHold)
	if c.until(ctx, func(ctx context.Context, url string) error {
		answer, err := quoratev1connect.NewTreeServiceClient(c.as(c.admin), url).ApplyTrees(ctx,
			&quoratev1.ApplyTreesRequest{RequestId: id, Trees: []*quoratev1.Tree{tree}})
		changed = len(answer.GetResult().GetChanges()) > 0
		return err
	}) && changed {
		c.noteChange("ApplyTrees", id)
	}
}
