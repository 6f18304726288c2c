package systems

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// guard is what callers of a guarded cluster present. Nil is an open cluster.
type guard struct {
	// admin and holder are tokens: of an administrator, and of an account with the role holder in the tree.
	admin, holder string
}

const (
	bootstrapFlag = "--bootstrap-secret-file"
	holderAccount = "holder"
)

// NewGuardedQuorate returns servers with the log store wal, in a cluster that is guarded. Callers present a token of an
// account that is bound as holder at the top node.
func NewGuardedQuorate(binary, name string) System {
	return &quorate{
		name: name, binary: binary, command: startCommand, flags: []string{logStoreFlag, "wal"},
		transport: newTransport(), guard: &guard{},
	}
}

func presenting(token string) []connect.ClientOption {
	options := leanOptions()
	if token == "" {
		return options
	}
	authorization := []string{"Bearer " + token}
	return append(options, connect.WithInterceptors(connect.UnaryInterceptorFunc(
		func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				r.Header()["Authorization"] = authorization
				return next(ctx, r)
			}
		})))
}

// asAdmin are the options of calls that prepare and check, asCaller those of the callers that are measured.
func (q *quorate) asAdmin() []connect.ClientOption {
	if q.guard == nil {
		return leanOptions()
	}
	return presenting(q.guard.admin)
}

func (q *quorate) asCaller() []connect.ClientOption {
	if q.guard == nil {
		return leanOptions()
	}
	return presenting(q.guard.holder)
}

func writeSecret(folder string) (path, secret string, err error) {
	path, secret = filepath.Join(folder, "bootstrap.secret"), rand.Text()+rand.Text()
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", "", fmt.Errorf("write the bootstrap secret: %w", err)
	}
	return path, secret, nil
}

func (q *quorate) access() adminv1connect.AccessServiceClient {
	return adminv1connect.NewAccessServiceClient(q.httpClient(), q.urls[0], q.asAdmin()...)
}

// guardCluster makes the administrator, the account of the callers and its token, and guards the cluster. The tree
// must exist.
func (q *quorate) guardCluster(ctx context.Context, secret string) error {
	first, err := q.access().Bootstrap(ctx, &adminv1.BootstrapRequest{Secret: secret})
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	q.guard.admin = first.GetSecret()
	if _, err := q.access().CreateAccount(ctx, &adminv1.CreateAccountRequest{
		Account: &adminv1.Account{Name: holderAccount},
	}); err != nil {
		return fmt.Errorf("make the account of the callers: %w", err)
	}
	token, err := q.access().CreateToken(ctx, &adminv1.CreateTokenRequest{Account: holderAccount})
	if err != nil {
		return fmt.Errorf("make the token of the callers: %w", err)
	}
	q.guard.holder = token.GetSecret()
	bound := newTree()
	bound.RequestId = "guarded"
	holder := &quoratev1.Subject{Kind: quoratev1.SubjectKind_SUBJECT_KIND_ACCOUNT, Name: holderAccount}
	bound.Trees[0].Nodes[0].Bindings = []*quoratev1.Binding{{Role: "holder", Subjects: []*quoratev1.Subject{holder}}}
	if _, err := q.trees(0).ApplyTrees(ctx, bound); err != nil {
		return fmt.Errorf("bind the callers: %w", err)
	}
	_, err = q.access().SetAccessMode(ctx, &adminv1.SetAccessModeRequest{
		Mode: quoratev1.AccessMode_ACCESS_MODE_GUARDED, Reason: "measurement",
	})
	return err
}
