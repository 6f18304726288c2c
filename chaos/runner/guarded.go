package runner

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/chaos/guarded"
)

// makeSecret writes the bootstrap secret of a cluster that is to be guarded, and returns the environment variable that
// names its file to the servers. An open cluster has none.
func (r *activeRun) makeSecret() ([]string, error) {
	switch {
	case !r.Guarded:
		return nil, nil
	case r.Old != "":
		r.result.Without = append(r.result.Without, "accounts: a run that begins with an older server is not guarded")
		return nil, nil
	}
	r.secret = rand.Text() + rand.Text()
	path, err := filepath.Abs(filepath.Join(r.Dir, "bootstrap.secret"))
	if err == nil {
		err = os.WriteFile(path, []byte(r.secret), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("write the bootstrap secret: %w", err)
	}
	return []string{"QUORATE_SERVER_BOOTSTRAP_SECRET_FILE=" + path}, nil
}

// guardCluster guards a healthy cluster and makes its accounts. From then on the harness calls the nodes with the token
// of the administrator.
func (r *activeRun) guardCluster(ctx context.Context) (err error) {
	if r.secret == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	r.accounts, err = guarded.SetUp(ctx, guarded.Config{Servers: r.cluster.URLs(), Seed: r.Seed}, r.secret)
	if err != nil {
		return err
	}
	r.target.GreedyToken = r.accounts.TenantToken()
	return r.target.SetHTTP(r.adminHTTP())
}

// adminHTTP returns what presents the token of the administrator of a guarded cluster; nil in an open one.
func (r *activeRun) adminHTTP() connect.HTTPClient {
	if r.accounts == nil {
		return nil
	}
	return r.accounts.AdminHTTP()
}

// startAccounts plays the accounts until ctx ends. The channel is closed when they have ended.
func (r *activeRun) startAccounts(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r.accounts != nil {
			r.accounts.Run(ctx)
		}
	}()
	return done
}

// judgeAccess adds the verdicts of a guarded cluster, and leaves what they are about beside the history.
func (r *activeRun) judgeAccess(ctx context.Context) error {
	if r.accounts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	evidence := r.accounts.Collect(ctx)
	r.result.Verdicts = append(r.result.Verdicts, guarded.Judge(evidence, r.result.History)...)
	return guarded.WriteEvidence(guarded.EvidenceBeside(r.History()), evidence)
}
