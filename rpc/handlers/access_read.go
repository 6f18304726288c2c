package handlers

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

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
	ctx context.Context, r *quoratev1.ListAccountsRequest,
) (*quoratev1.ListAccountsResponse, error) {
	after, err := wire.OpenAccountToken(r.GetPageToken())
	if err != nil {
		return nil, wire.ToError(err)
	}
	most := wire.PageSize(r.GetPageSize(), wire.DefaultAccountPage)
	var page []access.Account
	more := false
	read, err := s.readBook(ctx, r.GetRead(), func(book *access.Book) error {
		for a := range book.Accounts() {
			if a.Name <= after {
				continue
			}
			if more = len(page) == most; more {
				break
			}
			page = append(page, a)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListAccountsResponse{NextPageToken: wire.AccountPageToken(page, more), Read: read}
	for _, a := range page {
		answer.Accounts = append(answer.Accounts, wire.FromAccount(a))
	}
	return answer, nil
}

// ListTokens lists the tokens of an account, oldest first.
func (s AccessService) ListTokens(
	ctx context.Context, r *quoratev1.ListTokensRequest,
) (*quoratev1.ListTokensResponse, error) {
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
	answer := &quoratev1.ListTokensResponse{Read: read}
	for _, t := range tokens {
		answer.Tokens = append(answer.Tokens, wire.FromToken(t))
	}
	return answer, nil
}

// ListRefusedCredentials lists all refusals.
func (s AccessService) ListRefusedCredentials(
	ctx context.Context, r *quoratev1.ListRefusedCredentialsRequest,
) (*quoratev1.ListRefusedCredentialsResponse, error) {
	var book *access.Book
	read, err := s.readBook(ctx, r.GetRead(), func(read *access.Book) error {
		book = read
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer := &quoratev1.ListRefusedCredentialsResponse{Read: read}
	for entry := range book.RefusedEntries() {
		answer.Refused = append(answer.Refused, wire.FromRefused(entry))
	}
	return answer, nil
}

// WhoAmI shows the caller as the cluster sees it.
func (s AccessService) WhoAmI(ctx context.Context, r *quoratev1.WhoAmIRequest) (*quoratev1.WhoAmIResponse, error) {
	caller, wall := s.Access.Caller(ctx), s.Access.Now().UnixMilli()
	answer := &quoratev1.WhoAmIResponse{
		User: caller.User, Kind: caller.Kind.String(), Groups: caller.Groups,
		Namespace: namespaceOf(ctx),
	}
	if ends := s.Access.CredentialEnds(ctx); !ends.IsZero() {
		answer.EndsAt = timestamppb.New(ends)
	}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		book := v.Book()
		id, err := book.Identify(caller, wall)
		if err != nil {
			return err
		}
		if tokenID, isToken := caller.Token(); isToken {
			token, _ := book.Token(tokenID) // it exists, or the caller would not have been identified
			account, _ := book.Account(token.Account)
			answer.Groups, answer.EndsAt = slices.Clone(account.Groups), wire.FromToken(token).GetEndsAt()
		}
		answer.Mode = wire.FromAccessMode(book.Mode())
		answer.ClusterVerbs = access.VerbsAt(id, wall, access.Path{book.Cluster()}).Names()
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// CanI says whether the caller has verbs at places.
func (s AccessService) CanI(ctx context.Context, r *quoratev1.CanIRequest) (*quoratev1.CanIResponse, error) {
	verbs := make([]access.Verb, len(r.GetQuestions()))
	for i, q := range r.GetQuestions() {
		var err error
		if verbs[i], err = wire.ToVerb(wire.ElementOf("questions", i)+".verb", q.GetVerb()); err != nil {
			return nil, wire.ToError(err)
		}
	}
	caller, wall := s.Access.Caller(ctx), s.Access.Now().UnixMilli()
	answer := &quoratev1.CanIResponse{Allowed: make([]bool, len(verbs))}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		id, err := v.Book().Identify(caller, wall)
		if err != nil {
			return err
		}
		for i, q := range r.GetQuestions() {
			path, exists := v.AccessPath(q.GetTree(), q.GetNode())
			answer.Allowed[i] = exists && access.Allows(id, verbs[i], wall, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Read = read
	return answer, nil
}

// WhoCan lists the bindings that give a verb at a place, the nearest first.
func (s AccessService) WhoCan(ctx context.Context, r *quoratev1.WhoCanRequest) (*quoratev1.WhoCanResponse, error) {
	verb, err := wire.ToVerb("verb", r.GetVerb())
	if err == nil {
		err = wire.CheckNode(r)
	}
	if err != nil {
		return nil, wire.ToError(err)
	}
	tree, node := r.GetTree(), r.GetNode()
	wall := s.Access.Now().UnixMilli()
	answer := &quoratev1.WhoCanResponse{}
	read, err := s.readState(ctx, r.GetRead(), func(v ledger.Reader) error {
		seesCluster, err := s.seesBindings(ctx, v, tree, node)
		if err != nil {
			return err
		}
		gives := givesVerb{verb: verb, wall: wall, roles: v.Book().Roles()}
		for _, placed := range v.BindingsAbove(tree, node) {
			for _, b := range gives.filter(placed.Bindings, access.NodeScope) {
				answer.Bindings = append(answer.Bindings, &quoratev1.PlacedBinding{
					Tree: tree, Node: placed.Path, Binding: wire.FromBinding(b),
				})
			}
		}
		if !seesCluster {
			return nil
		}
		for _, b := range gives.filter(v.Book().Section().Bindings, access.ClusterScope) {
			answer.Bindings = append(answer.Bindings, &quoratev1.PlacedBinding{
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
