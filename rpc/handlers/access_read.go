package handlers

import (
	"context"
	"slices"
	"strings"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/rpc/authorize"
	"github.com/quorate/quorate/rpc/wire"
)

// readBook asks for access.read once more, by the book that is read: the rule of the method went by what this node had
// applied when the call came.
func (s AccessService) readBook(
	ctx context.Context, o *quoratev1.ReadOptions, fn func(*access.Book) error,
) (*quoratev1.ReadInfo, error) {
	return s.readState(ctx, o, func(v ledger.Reader) error {
		if err := s.Access.RequireClusterIn(ctx, v.Book(), access.AccessRead); err != nil {
			return err
		}
		return fn(v.Book())
	})
}

// ListAccounts lists accounts by name.
func (s AccessService) ListAccounts(
	ctx context.Context, r *adminv1.ListAccountsRequest,
) (*adminv1.ListAccountsResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	answer := &adminv1.ListAccountsResponse{}
	var accounts []access.Account
	answer.Read, err = s.readBook(ctx, r.GetRead(), func(book *access.Book) error {
		accounts, answer.NextPageToken = wire.CutPage(page, book.Accounts(), func(a access.Account) string { return a.Name })
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		answer.Accounts = append(answer.Accounts, wire.FromAccount(a))
	}
	return answer, nil
}

// ListTokens lists the tokens of an account, oldest first.
func (s AccessService) ListTokens(
	ctx context.Context, r *adminv1.ListTokensRequest,
) (*adminv1.ListTokensResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	var tokens []access.Token
	read, err := s.readBook(ctx, r.GetRead(), func(book *access.Book) error {
		if _, found := book.Account(r.GetAccount()); !found {
			return quota.Errorf(quota.NotFound, "account", "there is no account %q", quota.Clip(r.GetAccount()))
		}
		tokens = book.TokensOf(r.GetAccount())
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := &adminv1.ListTokensResponse{Read: read}
	slices.SortFunc(tokens, func(a, b access.Token) int { return strings.Compare(tokenKey(a), tokenKey(b)) })
	tokens, answer.NextPageToken = wire.CutPage(page, slices.Values(tokens), tokenKey)
	for _, t := range tokens {
		answer.Tokens = append(answer.Tokens, wire.FromToken(t))
	}
	return answer, nil
}

// tokenKey is the key of a token in the list of its account, oldest first.
func tokenKey(t access.Token) string { return wire.NumberKey(uint64(t.Created)) + t.ID.String() }

// ListRefusedCredentials lists all refusals.
func (s AccessService) ListRefusedCredentials(
	ctx context.Context, r *adminv1.ListRefusedCredentialsRequest,
) (*adminv1.ListRefusedCredentialsResponse, error) {
	page, err := wire.OpenPage(r, wire.DefaultShortPage)
	if err != nil {
		return nil, wire.ToError(err)
	}
	var book *access.Book
	read, err := s.readBook(ctx, r.GetRead(), func(read *access.Book) error {
		book = read
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := &adminv1.ListRefusedCredentialsResponse{Read: read}
	var entries []access.Refused
	entries, answer.NextPageToken = wire.CutPage(page, book.RefusedEntries(), func(e access.Refused) string {
		return wire.NumberKey(uint64(e.Kind)) + e.Issuer + "\x00" + e.Name
	})
	for _, entry := range entries {
		answer.Refused = append(answer.Refused, wire.FromRefused(entry))
	}
	return answer, nil
}

// WhoCan lists the bindings that give a verb at a place, the nearest first.
func (s AccessService) WhoCan(ctx context.Context, r *adminv1.WhoCanRequest) (*adminv1.WhoCanResponse, error) {
	verb, err := wire.ToVerb("verb", r.GetVerb())
	if err == nil {
		err = wire.CheckNode(r)
	}
	if err != nil {
		return nil, wire.ToError(err)
	}
	tree, node := r.GetTree(), r.GetNode()
	wall := s.Access.Now().UnixMilli()
	answer := &adminv1.WhoCanResponse{}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		seesCluster, err := s.seesBindings(ctx, v, tree, node)
		if err != nil {
			return err
		}
		gives := givesVerb{verb: verb, wall: wall, roles: v.Book().Roles()}
		for _, placed := range v.BindingsAbove(tree, node) {
			for _, b := range gives.filter(placed.Bindings, access.NodeScope) {
				answer.Bindings = append(answer.Bindings, &adminv1.PlacedBinding{
					Tree: tree, Node: placed.Path, Binding: wire.FromBinding(b),
				})
			}
		}
		if !seesCluster {
			return nil
		}
		for _, b := range gives.filter(v.Book().Section().Bindings, access.ClusterScope) {
			answer.Bindings = append(answer.Bindings, &adminv1.PlacedBinding{
				Tree: "", Node: "", Binding: wire.FromBinding(b),
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// seesBindings refuses a caller who may not see who has verbs at a place, and reports whether it may see bindings on
// the cluster too. A place that does not exist is not found only for callers with access.read: others learn the same
// from both.
func (s AccessService) seesBindings(ctx context.Context, v ledger.Reader, tree, node string) (bool, error) {
	book := v.Book()
	path, exists := v.AccessPath(tree, node)
	err := s.Access.RequireClusterIn(ctx, book, access.AccessRead)
	if err == nil {
		if !exists {
			return false, quota.Errorf(quota.NotFound, "node", "there is no node %q of a tree %q", quota.Clip(node),
				quota.Clip(tree))
		}
		return true, nil
	}
	caller, wall := s.Access.Caller(ctx), s.Access.Now().UnixMilli()
	id, unknown := book.Identify(caller, wall)
	switch {
	case unknown != nil || caller.Kind == access.Anonymous:
		return false, err
	case exists && tree != "" && access.Allows(id, access.BindingsGrant, wall, path):
		return false, nil
	case tree == "":
		return false, err
	}
	refused := authorize.LacksVerb(caller, access.BindingsGrant, "this place, nor access.read on the cluster")
	refused.Verb = access.AccessRead
	return false, refused
}

type givesVerb struct {
	verb  access.Verb
	wall  int64
	roles access.Roles
}

func (g givesVerb) filter(list []access.Binding, scope access.Scope) []access.Binding {
	var giving []access.Binding
	for _, b := range list {
		role, _ := g.roles.Find(b.Role)
		inForce := b.Until == 0 || g.wall < b.Until
		if inForce && (role.Verbs & scope.Verbs()).Has(g.verb) {
			giving = append(giving, b)
		}
	}
	return giving
}
