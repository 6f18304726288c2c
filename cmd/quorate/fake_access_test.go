package main

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// The access of the fake: a watching cluster, in which the token of testdata/admin.token is that of the account admin,
// which may do everything, and other callers may hold at cern and read.

const (
	fakeToken  = "good-token"
	fakeSecret = "the-bootstrap-secret"
)

var (
	longAgo   = timestamppb.New(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	farFuture = timestamppb.New(time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC))
)

// admin reports whether the caller is the account admin; an error for tokens that the fake does not know.
func (f *fake) admin(ctx context.Context) (bool, error) {
	call, _ := connect.CallInfoForHandlerContext(ctx)
	switch call.RequestHeader().Get("Authorization") {
	case "":
		return false, nil
	case "Bearer " + fakeToken:
		return true, nil
	default:
		return false, connectError(connect.CodeUnauthenticated, "the token has ended at 2026-11-20T12:00:00Z")
	}
}

func (f *fake) mustBeAdmin(ctx context.Context, verb string) error {
	admin, err := f.admin(ctx)
	if err == nil && !admin {
		return withDetail(connectError(connect.CodePermissionDenied, "this needs %s on the cluster", verb),
			&quoratev1.Problem{Reason: "FORBIDDEN", MissingVerb: verb})
	}
	return err
}

func (f *fake) WhoAmI(ctx context.Context, _ *quoratev1.WhoAmIRequest) (*quoratev1.WhoAmIResponse, error) {
	admin, err := f.admin(ctx)
	if err != nil || !admin {
		return &quoratev1.WhoAmIResponse{Kind: "anonymous", Mode: quoratev1.AccessMode_ACCESS_MODE_OPEN}, err
	}
	return &quoratev1.WhoAmIResponse{
		User: "account/admin", Kind: "account", Groups: []string{"ops", "night-shift"},
		Mode: quoratev1.AccessMode_ACCESS_MODE_WATCHING, ClusterVerbs: []string{"cluster.read", "access.manage"},
		EndsAt: farFuture,
	}, nil
}

func (f *fake) CanI(ctx context.Context, r *quoratev1.CanIRequest) (*quoratev1.CanIResponse, error) {
	f.keepRequest(r)
	admin, err := f.admin(ctx)
	answer := &quoratev1.CanIResponse{}
	for _, q := range r.GetQuestions() {
		answer.Allowed = append(answer.Allowed, admin || q.GetVerb() == "hold" && q.GetTree() == "cern")
	}
	return answer, err
}

func (f *fake) WhoCan(_ context.Context, r *quoratev1.WhoCanRequest) (*quoratev1.WhoCanResponse, error) {
	f.keepRequest(r)
	if r.GetVerb() == "data.read" {
		return &quoratev1.WhoCanResponse{}, nil
	}
	return &quoratev1.WhoCanResponse{Bindings: []*quoratev1.PlacedBinding{
		{Tree: r.GetTree(), Node: r.GetNode(), Binding: &quoratev1.Binding{
			Role: "broker", To: []string{"account sim-ci", "group ci"}, MaxPriority: 10, Unpreemptable: true,
			HoldAs: &quoratev1.HoldAs{Names: []string{"corp/ann", "corp/bob"}}, EndsAt: farFuture,
		}},
		{Tree: "cern", Binding: &quoratev1.Binding{
			Role: "node-admin", To: []string{"user corp/peter\x1b"}, HoldAs: &quoratev1.HoldAs{Any: true},
		}},
		{Binding: &quoratev1.Binding{Role: "root", To: []string{"account admin"}}},
	}}, nil
}

func (f *fake) Bootstrap(ctx context.Context, r *quoratev1.BootstrapRequest) (*quoratev1.BootstrapResponse, error) {
	f.keepRequest(r)
	if call, _ := connect.CallInfoForHandlerContext(ctx); call.RequestHeader().Get("Authorization") != "" {
		return nil, connectError(connect.CodeInvalidArgument, "a bootstrap carries no token")
	}
	if r.GetSecret() != fakeSecret {
		return nil, connectError(connect.CodeUnauthenticated, "this is not the bootstrap secret of the servers")
	}
	made := fakeTokens(r.GetAccount())[0]
	return &quoratev1.BootstrapResponse{Secret: "qrt_first", Token: made}, nil
}

func (f *fake) CreateAccount(
	ctx context.Context, r *quoratev1.CreateAccountRequest,
) (*quoratev1.CreateAccountResponse, error) {
	f.keepRequest(r)
	if err := f.mustBeAdmin(ctx, "access.manage"); err != nil {
		return nil, err
	}
	if r.GetAccount().GetName() == "admin" {
		return nil, connectError(connect.CodeAlreadyExists, "there is an account admin with another content")
	}
	return &quoratev1.CreateAccountResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) UpdateAccount(
	_ context.Context, r *quoratev1.UpdateAccountRequest,
) (*quoratev1.UpdateAccountResponse, error) {
	f.keepRequest(r)
	return &quoratev1.UpdateAccountResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) DeleteAccount(
	_ context.Context, r *quoratev1.DeleteAccountRequest,
) (*quoratev1.DeleteAccountResponse, error) {
	f.keepRequest(r)
	return &quoratev1.DeleteAccountResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

// ListAccounts returns two pages.
func (f *fake) ListAccounts(
	ctx context.Context, r *quoratev1.ListAccountsRequest,
) (*quoratev1.ListAccountsResponse, error) {
	if err := f.mustBeAdmin(ctx, "access.read"); err != nil {
		return nil, err
	}
	answer := &quoratev1.ListAccountsResponse{Read: readInfo(r.GetRead())}
	if r.GetPageToken() == "" {
		answer.NextPageToken = "more"
		answer.Accounts = []*quoratev1.Account{{Name: "admin", Description: "made by bootstrap"}}
		return answer, nil
	}
	answer.Accounts = []*quoratev1.Account{
		{Name: "old-ci", Groups: []string{"ci"}, Disabled: true},
		{Name: "sim-ci", Groups: []string{"ci", "physics"}, Description: "pipelines\x1b"},
	}
	return answer, nil
}

func (f *fake) CreateToken(
	_ context.Context, r *quoratev1.CreateTokenRequest,
) (*quoratev1.CreateTokenResponse, error) {
	f.keepRequest(r)
	if r.GetAccount() == "full" {
		return nil, connectError(connect.CodeFailedPrecondition, "account full has 8 live tokens: revoke one")
	}
	return &quoratev1.CreateTokenResponse{
		Secret: "qrt_new-secret", Token: fakeTokens(r.GetAccount())[0], Write: &quoratev1.WriteInfo{Index: 18},
	}, nil
}

func (f *fake) RotateToken(
	_ context.Context, r *quoratev1.RotateTokenRequest,
) (*quoratev1.RotateTokenResponse, error) {
	f.keepRequest(r)
	return &quoratev1.RotateTokenResponse{
		Secret: "qrt_next-secret", Token: fakeTokens("sim-ci")[0],
		Write: &quoratev1.WriteInfo{Index: 18},
	}, nil
}

func (f *fake) RevokeToken(_ context.Context, r *quoratev1.RevokeTokenRequest) (*quoratev1.RevokeTokenResponse, error) {
	f.keepRequest(r)
	if r.GetId() == "0000000000000" {
		return nil, connectError(connect.CodeNotFound, "there is no token 0000000000000")
	}
	return &quoratev1.RevokeTokenResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) ListTokens(_ context.Context, r *quoratev1.ListTokensRequest) (*quoratev1.ListTokensResponse, error) {
	return &quoratev1.ListTokensResponse{Tokens: fakeTokens(r.GetAccount()), Read: readInfo(r.GetRead())}, nil
}

func fakeTokens(account string) []*quoratev1.Token {
	return []*quoratev1.Token{
		{Id: "0123456789abc", Account: account, CreatedAt: someDay, EndsAt: farFuture},
		{Id: "1123456789abc", Account: account, CreatedAt: someDay, EndsAt: farFuture, Revoked: true},
		{
			Id: "2123456789abc", Account: account, CreatedAt: longAgo, EndsAt: longAgo, Verbs: []string{"hold", "usage.read"},
			Description: "the old\x1b runner",
		},
	}
}

func (f *fake) RefuseCredential(
	_ context.Context, r *quoratev1.RefuseCredentialRequest,
) (*quoratev1.RefuseCredentialResponse, error) {
	f.keepRequest(r)
	return &quoratev1.RefuseCredentialResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) AllowCredential(
	_ context.Context, r *quoratev1.AllowCredentialRequest,
) (*quoratev1.AllowCredentialResponse, error) {
	f.keepRequest(r)
	if r.GetKind() == quoratev1.RefusedKind_REFUSED_KIND_TOKEN {
		return nil, connectError(connect.CodeNotFound, "token %s is not refused", r.GetName())
	}
	return &quoratev1.AllowCredentialResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) ListRefusedCredentials(
	_ context.Context, r *quoratev1.ListRefusedCredentialsRequest,
) (*quoratev1.ListRefusedCredentialsResponse, error) {
	return &quoratev1.ListRefusedCredentialsResponse{
		Read: readInfo(r.GetRead()), Refused: []*quoratev1.RefusedCredential{
			{
				Kind: quoratev1.RefusedKind_REFUSED_KIND_USER, Name: "github/456789", EndsAt: farFuture,
				IssueCutoffAt: someDay, Reason: "a leaked\x1b runner",
			},
			{Kind: quoratev1.RefusedKind_REFUSED_KIND_JTI, Issuer: "github", Name: "6f1c", EndsAt: farFuture},
		},
	}, nil
}

func (f *fake) SetAccessMode(
	_ context.Context, r *quoratev1.SetAccessModeRequest,
) (*quoratev1.SetAccessModeResponse, error) {
	f.keepRequest(r)
	return &quoratev1.SetAccessModeResponse{
		Before: quoratev1.AccessMode_ACCESS_MODE_WATCHING,
		Write:  &quoratev1.WriteInfo{Index: 18},
	}, nil
}

func (f *fake) GetGuardReport(
	ctx context.Context, _ *quoratev1.GetGuardReportRequest,
) (*quoratev1.GetGuardReportResponse, error) {
	if err := f.mustBeAdmin(ctx, "access.read"); err != nil {
		return nil, err
	}
	return &quoratev1.GetGuardReportResponse{
		TreesWithAdmins: []*quoratev1.TreeAdmins{{Tree: "cern", Admins: []string{"ann"}}}, UnownedAllocations: 3,
		Refusals: []*quoratev1.WouldRefuse{{Verb: "hold", Calls: 12}, {Verb: "none", Calls: 1}},
	}, nil
}

// What the account old-ci has set in motion.

func (f *fake) ListScheduledLimits(
	context.Context, *quoratev1.ListScheduledLimitsRequest,
) (*quoratev1.ListScheduledLimitsResponse, error) {
	return &quoratev1.ListScheduledLimitsResponse{Limits: []*quoratev1.ScheduledLimit{
		{Id: "night", Tree: "cern", Node: "atlas", Actor: "account/old-ci", BeginsAt: farFuture},
		{Id: "day", Tree: "cern", Node: "atlas", Actor: "account/ci", BeginsAt: farFuture},
	}}, nil
}

func (f *fake) ListHolds(context.Context, *quoratev1.ListHoldsRequest) (*quoratev1.ListHoldsResponse, error) {
	return &quoratev1.ListHoldsResponse{Holds: []*quoratev1.NodeHold{
		{Tree: "cern", Node: "atlas/physics", Actor: "account/old-ci"}, {Tree: "cern", Actor: "account/ci"},
	}}, nil
}

func (f *fake) ListRequests(
	_ context.Context, r *quoratev1.ListRequestsRequest,
) (*quoratev1.ListRequestsResponse, error) {
	open := quoratev1.LimitRequestState_LIMIT_REQUEST_STATE_OPEN
	if r.GetState() != open {
		return nil, connectError(connect.CodeInvalidArgument, "only open requests are there")
	}
	if r.GetAfter() == 0 {
		return &quoratev1.ListRequestsResponse{Next: 3, Requests: []*quoratev1.LimitRequest{
			{Id: 3, Tree: "cern", Asker: "account/ci", State: open},
		}}, nil
	}
	return &quoratev1.ListRequestsResponse{Requests: []*quoratev1.LimitRequest{
		{Id: 4, Tree: "cern", Node: "cms", Asker: "account/old-ci", State: open},
	}}, nil
}
