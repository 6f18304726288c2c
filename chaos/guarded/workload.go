// Package guarded plays accounts on a guarded cluster, and judges what was applied for them.
//
// Accounts allocate, release and set limits with tokens, valid and revoked. An administrator makes and revokes tokens,
// gives and takes bindings, and disables and enables accounts, each while calls of that account are under way.
// SetUp makes such a Workload and Run plays it. Collect returns what callers were told together with the records of all
// members, and Judge compares the two: nothing is applied behind the revocation of its token or rights, and nothing
// without its audit record.
//
// The calls go through Config.HTTP, so that the same accounts work on real processes and in virtual time.
package guarded

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// Config says which servers the accounts call, and how.
type Config struct {
	// Servers are base URLs such as "http://10.0.0.1:7101"; at least one. Every call goes to a random one.
	Servers []string
	// HTTP carries the calls; http.DefaultClient if nil.
	HTTP connect.HTTPClient
	// Seed decides what every caller requests, but not how calls interleave.
	Seed uint64
	// Pause is the mean time between two calls of an account; 50 ms if 0. The administrator waits longer.
	Pause time.Duration
	// Timeout bounds each call; 3 s if 0.
	Timeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Pause, c.Timeout = cmp.Or(c.Pause, 50*time.Millisecond), cmp.Or(c.Timeout, 3*time.Second)
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	return c
}

const (
	// accountCount is how many accounts work. Each holds at the node of its name.
	accountCount = 3
	// guardedTree is the tree in which they work.
	guardedTree = "guarded"
	// resource is what they hold.
	resource = "slots"
	// administrator is the account that Bootstrap makes, and idleTenant one that does not work.
	administrator = "admin"
	idleTenant    = "idle"
)

func accountName(i int) string { return fmt.Sprintf("w%d", i) }

// Workload is a guarded cluster with its accounts and what they were told.
type Workload struct {
	config Config
	// admin is the token of the administrator, tenant that of an account that does not work.
	admin, tenant string

	mu sync.Mutex
	// tokens are all secrets that an account was ever given, and held are allocations that it has.
	tokens   [accountCount][]string
	held     [accountCount][]string
	evidence Evidence
}

// AdminHTTP returns an HTTP client that presents the token of the administrator, who may do everything.
func (w *Workload) AdminHTTP() connect.HTTPClient { return w.as(w.admin) }

// TenantToken returns a token of an account that may hold nothing and does not work, for calls that are not part of the
// workload.
func (w *Workload) TenantToken() string { return w.tenant }

func (w *Workload) as(token string) connect.HTTPClient { return tokenClient{w.config.HTTP, token} }

type tokenClient struct {
	connect.HTTPClient

	token string
}

// Do makes a call.
func (c tokenClient) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	return c.HTTPClient.Do(r)
}

func (w *Workload) accessAPI(token, url string) adminv1connect.AccessServiceClient {
	return adminv1connect.NewAccessServiceClient(w.as(token), url)
}

func (w *Workload) treeAPI(token, url string) quoratev1connect.TreeServiceClient {
	return quoratev1connect.NewTreeServiceClient(w.as(token), url)
}

func (w *Workload) allocationAPI(token, url string) quoratev1connect.AllocationServiceClient {
	return quoratev1connect.NewAllocationServiceClient(w.as(token), url)
}

func tokenID(token string) string { return strings.Split(token, "_")[1] }

// within bounds a call, which may outlive ctx: a call that is under way when the run ends still gets its answer.
func (w *Workload) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), w.config.Timeout)
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
