package guarded

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// tokenLife is the life of every token, the longest that there is: no token ends by itself, not even while a fault has
// set the clock of a node a year ahead.
const tokenLife = 400 * 24 * time.Hour

// SetUp makes the first administrator with the bootstrap secret of the servers, guards the cluster, and makes the
// accounts and their tree. It retries until the cluster has done so or ctx ends.
func SetUp(ctx context.Context, config Config, secret string) (*Workload, error) {
	w := &Workload{config: config.withDefaults(), evidence: Evidence{Accounts: map[string]string{}}}
	for _, step := range []struct {
		what string
		call func(ctx context.Context, url string) error
	}{
		{"make the first administrator", func(ctx context.Context, url string) error {
			answer, err := w.accessAPI("", url).Bootstrap(ctx, &adminv1.BootstrapRequest{Secret: secret})
			w.admin = answer.GetSecret()
			return err
		}},
		{"make a token that outlives the run", func(ctx context.Context, url string) error {
			answer, err := w.accessAPI(w.admin, url).CreateToken(ctx, newTokenRequest(administrator))
			if err == nil {
				w.admin = answer.GetSecret()
			}
			return err
		}},
		{"guard the cluster", func(ctx context.Context, url string) error {
			_, err := w.accessAPI(w.admin, url).SetAccessMode(ctx,
				&adminv1.SetAccessModeRequest{Mode: quoratev1.AccessMode_ACCESS_MODE_GUARDED})
			return err
		}},
		{"make the accounts", w.createAccounts},
		{"make a token of a tenant", func(ctx context.Context, url string) error {
			answer, err := w.accessAPI(w.admin, url).CreateToken(ctx, newTokenRequest(idleTenant))
			w.tenant = answer.GetSecret()
			return err
		}},
		{"apply the tree", func(ctx context.Context, url string) error {
			tree := treeWith([accountCount]bool{true, true, true})
			_, err := w.treeAPI(w.admin, url).ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
			return err
		}},
	} {
		if err := w.repeat(ctx, step.call); err != nil {
			return nil, fmt.Errorf("set up the guarded cluster: %s: %w", step.what, err)
		}
	}
	return w, nil
}

// repeat makes a call to one server after the other until it succeeds or ctx ends.
func (w *Workload) repeat(ctx context.Context, call func(ctx context.Context, url string) error) error {
	for i := 0; ; i++ {
		attempt, cancel := w.within(ctx)
		err := call(attempt, w.config.Servers[i%len(w.config.Servers)])
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		pauseFor(ctx, w.config.Timeout/8)
	}
}

func (w *Workload) createAccounts(ctx context.Context, url string) error {
	names := []string{idleTenant}
	for i := range accountCount {
		names = append(names, accountName(i))
	}
	for _, name := range names {
		_, err := w.accessAPI(w.admin, url).CreateAccount(ctx,
			&adminv1.CreateAccountRequest{Account: &adminv1.Account{Name: name}})
		if err != nil && connect.CodeOf(err) != connect.CodeAlreadyExists { // an earlier attempt may have made it
			return err
		}
	}
	return nil
}

func newTokenRequest(account string) *adminv1.CreateTokenRequest {
	return &adminv1.CreateTokenRequest{Account: account, LifeMs: tokenLife.Milliseconds()}
}

// treeWith is the tree with the accounts that may hold. All of them manage what is below their nodes.
func treeWith(mayHold [accountCount]bool) *quoratev1.Tree {
	tree := &quoratev1.Tree{Name: guardedTree, Resources: []*quoratev1.Resource{{Name: resource}}}
	for i := range accountCount {
		account := []*quoratev1.Subject{{Kind: quoratev1.SubjectKind_SUBJECT_KIND_ACCOUNT, Name: accountName(i)}}
		admin := &quoratev1.Binding{Role: "node-admin", Subjects: account}
		node := &quoratev1.Node{Path: accountName(i), Bindings: []*quoratev1.Binding{admin}}
		if mayHold[i] {
			node.Bindings = append(node.Bindings, &quoratev1.Binding{Role: "holder", Subjects: account})
		}
		tree.Nodes = append(tree.Nodes, node, &quoratev1.Node{Path: ownNode(i)})
	}
	return tree
}

func ownNode(account int) string { return accountName(account) + "/own" }
