package guarded

import (
	"context"
	"fmt"
	"sync"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// attackCalls is how many calls of an account are under way while its rights change.
	attackCalls = 8
	// crowdedTokens is how many live tokens an account has when the oldest is revoked; one that has 8 gets no more.
	crowdedTokens = 6
)

type adminCaller struct {
	*caller

	// mayHold and disabled are what the administrator has made of the accounts.
	mayHold, disabled [accountCount]bool
}

// administer gives and revokes tokens, gives and takes bindings, and disables and enables accounts.
func (c *adminCaller) administer(ctx context.Context) {
	for i := range accountCount {
		c.createToken(ctx, i)
	}
	for ; ctx.Err() == nil; c.pauseAbout(ctx, 5*c.config.Pause/2) {
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
func (c *adminCaller) attackWhile(ctx context.Context, account int, change func()) {
	var busy sync.WaitGroup
	if tokens := c.tokensOf(account); len(tokens) > 0 {
		token := tokens[len(tokens)-1]
		for i := range attackCalls {
			c.serial++
			call := accountCall{account, token, c.randomURL(), fmt.Sprintf("%s.a%d", tokenID(token), c.serial)}
			busy.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				c.allocate(ctx, call)
			})
		}
	}
	change()
	busy.Wait()
}

// until reports whether the call succeeded before ctx ended.
func (c *adminCaller) until(ctx context.Context, call func(ctx context.Context, url string) error) bool {
	for {
		attempt, cancel := c.within(ctx)
		err := call(attempt, c.randomURL())
		cancel()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		c.pauseAbout(ctx, c.config.Timeout/16)
	}
}

func (w *Workload) noteChange(action, object string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.evidence.Changes = append(w.evidence.Changes, Change{action, object})
}

// createToken is not repeated: each attempt may have made a token.
func (c *adminCaller) createToken(ctx context.Context, account int) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	answer, err := c.accessAPI(c.admin, c.randomURL()).CreateToken(ctx, newTokenRequest(accountName(account)))
	if err != nil {
		return
	}
	id := answer.GetToken().GetId()
	c.noteChange("CreateToken", tokenField+id)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[account] = append(c.tokens[account], answer.GetSecret())
	c.evidence.Accounts[id] = accountName(account)
}

// revokeToken revokes the newest token that is live, or the oldest, while it is used.
func (c *adminCaller) revokeToken(ctx context.Context, account int) {
	live, read := c.liveTokens(ctx, account)
	if !read || len(live) == 0 {
		return
	}
	id := live[len(live)-1]
	if c.random.IntN(3) == 0 || len(live) > crowdedTokens {
		id = live[0]
	}
	c.attackWhile(ctx, account, func() {
		if c.until(ctx, func(ctx context.Context, url string) error {
			_, err := c.accessAPI(c.admin, url).RevokeToken(ctx, &adminv1.RevokeTokenRequest{Id: id})
			return err
		}) {
			c.noteChange(actionRevoke, tokenField+id)
		}
	})
}

func (c *adminCaller) liveTokens(ctx context.Context, account int) (live []string, read bool) {
	read = c.until(ctx, func(ctx context.Context, url string) error {
		answer, err := c.accessAPI(c.admin, url).ListTokens(ctx,
			&adminv1.ListTokensRequest{Account: accountName(account)})
		live = live[:0]
		for _, token := range answer.GetTokens() {
			if !token.GetRevoked() {
				live = append(live, token.GetId())
			}
		}
		return err
	})
	return live, read
}

func (c *adminCaller) updateAccount(ctx context.Context, account int) {
	c.until(ctx, func(ctx context.Context, url string) error {
		_, err := c.accessAPI(c.admin, url).UpdateAccount(ctx, &adminv1.UpdateAccountRequest{
			Name: accountName(account), Disabled: &c.disabled[account],
		})
		return err
	})
}

func (c *adminCaller) applyTree(ctx context.Context) {
	c.serial++
	id, changed := fmt.Sprintf("apply-%d", c.serial), false
	tree := treeWith(c.mayHold)
	if c.until(ctx, func(ctx context.Context, url string) error {
		answer, err := c.treeAPI(c.admin, url).ApplyTrees(ctx,
			&quoratev1.ApplyTreesRequest{RequestId: id, Trees: []*quoratev1.Tree{tree}})
		changed = len(answer.GetResult().GetChanges()) > 0
		return err
	}) && changed {
		c.noteChange("ApplyTrees", id)
	}
}
