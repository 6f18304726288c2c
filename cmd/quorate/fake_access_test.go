package main

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/manifest"
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

func (f *fake) WhoCan(_ context.Context, r *adminv1.WhoCanRequest) (*adminv1.WhoCanResponse, error) {
	f.keepRequest(r)
	if r.GetVerb() == "data.read" {
		return &adminv1.WhoCanResponse{}, nil
	}
	return &adminv1.WhoCanResponse{Bindings: []*adminv1.PlacedBinding{
		{Tree: r.GetTree(), Node: r.GetNode(), Binding: &quoratev1.Binding{
			Role: "broker", Subjects: subjectsOf("account sim-ci", "group ci"), MaxPriority: 10, Unpreemptable: true,
			HoldAs: &quoratev1.HoldAs{Names: []string{"corp/ann", "corp/bob"}}, EndsAt: farFuture,
		}},
		{Tree: "cern", Binding: &quoratev1.Binding{
			Role: "node-admin", Subjects: subjectsOf("user corp/peter\x1b"), HoldAs: &quoratev1.HoldAs{Any: true},
		}},
		{Binding: &quoratev1.Binding{Role: "root", Subjects: subjectsOf("account admin")}},
	}}, nil
}

func (f *fake) Bootstrap(ctx context.Context, r *adminv1.BootstrapRequest) (*adminv1.BootstrapResponse, error) {
	f.keepRequest(r)
	if call, _ := connect.CallInfoForHandlerContext(ctx); call.RequestHeader().Get("Authorization") != "" {
		return nil, connectError(connect.CodeInvalidArgument, "a bootstrap carries no token")
	}
	if r.GetSecret() != fakeSecret {
		return nil, connectError(connect.CodeUnauthenticated, "this is not the bootstrap secret of the servers")
	}
	made := fakeTokens(r.GetAccount())[0]
	return &adminv1.BootstrapResponse{Secret: "qrt_first", Token: made}, nil
}

func (f *fake) CreateAccount(
	ctx context.Context, r *adminv1.CreateAccountRequest,
) (*adminv1.CreateAccountResponse, error) {
	f.keepRequest(r)
	if err := f.mustBeAdmin(ctx, "access.manage"); err != nil {
		return nil, err
	}
	if r.GetAccount().GetName() == "admin" {
		return nil, connectError(connect.CodeAlreadyExists, "there is an account admin with another content")
	}
	return &adminv1.CreateAccountResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) UpdateAccount(
	_ context.Context, r *adminv1.UpdateAccountRequest,
) (*adminv1.UpdateAccountResponse, error) {
	f.keepRequest(r)
	if r.GetName() == "nobody" {
		return nil, connectError(connect.CodeNotFound, "there is no account \"nobody\"; create it first")
	}
	return &adminv1.UpdateAccountResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) DeleteAccount(
	_ context.Context, r *adminv1.DeleteAccountRequest,
) (*adminv1.DeleteAccountResponse, error) {
	f.keepRequest(r)
	return &adminv1.DeleteAccountResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

// ListAccounts returns two pages.
func (f *fake) ListAccounts(
	ctx context.Context, r *adminv1.ListAccountsRequest,
) (*adminv1.ListAccountsResponse, error) {
	if err := f.mustBeAdmin(ctx, "access.read"); err != nil {
		return nil, err
	}
	answer := &adminv1.ListAccountsResponse{Read: readInfo(r.GetRead())}
	if r.GetPageToken() == "" {
		answer.NextPageToken = "more"
		answer.Accounts = []*adminv1.Account{{Name: "admin", Description: "made by bootstrap"}}
		return answer, nil
	}
	answer.Accounts = []*adminv1.Account{
		{Name: "old-ci", Groups: []string{"ci"}, Disabled: true},
		{Name: "sim-ci", Groups: []string{"ci", "physics"}, Description: "pipelines\x1b"},
	}
	f.showUpdate(answer.GetAccounts())
	return answer, nil
}

// showUpdate makes the change of the request before this one, if it was one of an account.
func (f *fake) showUpdate(accounts []*adminv1.Account) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		return
	}
	change, _ := f.requests[len(f.requests)-1].(*adminv1.UpdateAccountRequest)
	for _, account := range accounts {
		if account.GetName() != change.GetName() {
			continue
		}
		if change.GetGroups() != nil {
			account.Groups = change.GetGroups().GetNames()
		}
		if change.Description != nil {
			account.Description = change.GetDescription()
		}
		if change.Disabled != nil {
			account.Disabled = change.GetDisabled()
		}
	}
}

func (f *fake) CreateToken(
	_ context.Context, r *adminv1.CreateTokenRequest,
) (*adminv1.CreateTokenResponse, error) {
	f.keepRequest(r)
	if r.GetAccount() == "full" {
		return nil, connectError(connect.CodeFailedPrecondition, "account full has 8 live tokens: revoke one")
	}
	return &adminv1.CreateTokenResponse{
		Secret: "qrt_new-secret", Token: fakeTokens(r.GetAccount())[0], Write: &quoratev1.WriteInfo{Index: 18},
	}, nil
}

func (f *fake) RotateToken(
	_ context.Context, r *adminv1.RotateTokenRequest,
) (*adminv1.RotateTokenResponse, error) {
	f.keepRequest(r)
	return &adminv1.RotateTokenResponse{
		Secret: "qrt_next-secret", Token: fakeTokens("sim-ci")[0],
		Write: &quoratev1.WriteInfo{Index: 18},
	}, nil
}

func (f *fake) RevokeToken(_ context.Context, r *adminv1.RevokeTokenRequest) (*adminv1.RevokeTokenResponse, error) {
	f.keepRequest(r)
	if r.GetId() == "0000000000000" {
		return nil, connectError(connect.CodeNotFound, "there is no token 0000000000000")
	}
	return &adminv1.RevokeTokenResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) ListTokens(_ context.Context, r *adminv1.ListTokensRequest) (*adminv1.ListTokensResponse, error) {
	return &adminv1.ListTokensResponse{Tokens: fakeTokens(r.GetAccount()), Read: readInfo(r.GetRead())}, nil
}

func fakeTokens(account string) []*adminv1.Token {
	return []*adminv1.Token{
		{Id: "0123456789abc", Account: account, CreatedAt: someDay, EndsAt: farFuture},
		{Id: "1123456789abc", Account: account, CreatedAt: someDay, EndsAt: farFuture, Revoked: true},
		{
			Id: "2123456789abc", Account: account, CreatedAt: longAgo, EndsAt: longAgo, Verbs: []string{"hold", "usage.read"},
			Description: "the old\x1b runner",
		},
	}
}

func (f *fake) RefuseCredential(
	_ context.Context, r *adminv1.RefuseCredentialRequest,
) (*adminv1.RefuseCredentialResponse, error) {
	f.keepRequest(r)
	return &adminv1.RefuseCredentialResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) AllowCredential(
	_ context.Context, r *adminv1.AllowCredentialRequest,
) (*adminv1.AllowCredentialResponse, error) {
	f.keepRequest(r)
	if r.GetKind() == adminv1.RefusedKind_REFUSED_KIND_TOKEN {
		return nil, connectError(connect.CodeNotFound, "token %s is not refused", r.GetName())
	}
	return &adminv1.AllowCredentialResponse{Write: &quoratev1.WriteInfo{Index: 18}}, nil
}

func (f *fake) ListRefusedCredentials(
	_ context.Context, r *adminv1.ListRefusedCredentialsRequest,
) (*adminv1.ListRefusedCredentialsResponse, error) {
	return &adminv1.ListRefusedCredentialsResponse{
		Read: readInfo(r.GetRead()), Refused: []*adminv1.RefusedCredential{
			{
				Kind: adminv1.RefusedKind_REFUSED_KIND_USER, Name: "github/456789", EndsAt: farFuture,
				IssueCutoffAt: someDay, Reason: "a leaked\x1b runner",
			},
			{Kind: adminv1.RefusedKind_REFUSED_KIND_JTI, Issuer: "github", Name: "6f1c", EndsAt: farFuture},
		},
	}, nil
}

func (f *fake) SetAccessMode(
	_ context.Context, r *adminv1.SetAccessModeRequest,
) (*adminv1.SetAccessModeResponse, error) {
	f.keepRequest(r)
	return &adminv1.SetAccessModeResponse{
		Before: quoratev1.AccessMode_ACCESS_MODE_WATCHING,
		Write:  &quoratev1.WriteInfo{Index: 18},
	}, nil
}

func (f *fake) GetGuardReport(
	ctx context.Context, _ *adminv1.GetGuardReportRequest,
) (*adminv1.GetGuardReportResponse, error) {
	if err := f.mustBeAdmin(ctx, "access.read"); err != nil {
		return nil, err
	}
	return &adminv1.GetGuardReportResponse{
		UnownedAllocations: 3,
		Refusals:           []*adminv1.WouldRefuse{{Verb: "hold", Calls: 12}, {Verb: "none", Calls: 1}},
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

func (f *fake) ListCordons(context.Context, *adminv1.ListCordonsRequest) (*adminv1.ListCordonsResponse, error) {
	return &adminv1.ListCordonsResponse{Cordons: []*quoratev1.NodeCordon{
		{Tree: "cern", Node: "atlas/physics", Actor: "account/old-ci"}, {Tree: "cern", Actor: "account/ci"},
	}}, nil
}

func (f *fake) ListRequests(
	_ context.Context, r *quoratev1beta1.ListRequestsRequest,
) (*quoratev1beta1.ListRequestsResponse, error) {
	open := quoratev1beta1.LimitRequestState_LIMIT_REQUEST_STATE_OPEN
	if r.GetState() != open {
		return nil, connectError(connect.CodeInvalidArgument, "only open requests are there")
	}
	if r.GetPageToken() == "" {
		return &quoratev1beta1.ListRequestsResponse{NextPageToken: "3", Requests: []*quoratev1beta1.LimitRequest{
			{Id: 3, Tree: "cern", Asker: "account/ci", State: open},
		}}, nil
	}
	return &quoratev1beta1.ListRequestsResponse{Requests: []*quoratev1beta1.LimitRequest{
		{Id: 4, Tree: "cern", Node: "cms", Asker: "account/old-ci", State: open},
	}}, nil
}

// subjectsOf are the subjects with these texts; what is not one has no kind.
func subjectsOf(texts ...string) []*quoratev1.Subject {
	var subjects []*quoratev1.Subject
	for _, text := range texts {
		subject, _ := access.ParseSubject(text)
		subjects = append(subjects, manifest.SubjectMessage(subject))
	}
	return subjects
}
