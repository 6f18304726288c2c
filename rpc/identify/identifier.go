package identify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/procedures"
)

const (
	// MaxCatchUps bounds the calls that wait for this node to catch up because their token is not known to it. They hold
	// no place yet. Further ones are answered that the token cannot be verified now.
	MaxCatchUps = 32
	// CatchUpPatience is how long such a call waits.
	CatchUpPatience = 3 * time.Second
)

// NodeCall says whether a call came over the listener for nodes, and from which node, if that was proved.
type NodeCall struct {
	ID       string
	Internal bool
}

// Options are what an Identifier needs of the server around it. All fields up to WriteError are required.
type Options struct {
	// Cluster is the name of the cluster.
	Cluster string
	Log     hclog.Logger
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	Table      procedures.Table
	// Book returns the access book as this node has applied it. It is called several times for each call.
	Book func() *access.Book
	// CatchUp waits until this node has applied what was committed when it was called.
	CatchUp func(context.Context) error
	// NodeCall tells calls of other nodes from those of clients.
	NodeCall func(context.Context) NodeCall
	// IsRelayed reports whether a call is relayed by another member. Without a network for nodes the connection then has
	// the certificate of that member.
	IsRelayed func(*http.Request) bool
	// WriteError writes an error in the protocol of a call of the API whose body has not been read.
	WriteError func(http.ResponseWriter, *http.Request, error)
	// Chain returns the certificates of a connection whose key the handshake proved. Nil means that certificates do not
	// identify callers.
	Chain func(*tls.ConnectionState) []*x509.Certificate
	// CertificateRequired is true if every client must have a certificate. Then a token beside it names the caller;
	// otherwise both together are refused, because it is not clear which of them is meant.
	CertificateRequired bool
	// ClientRoots returns the authorities of client certificates; the same pool until they change.
	ClientRoots func() *x509.CertPool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// OpenFrontEnds are the names of front ends of which callers without a credential are the user frontend/NAME. A call
	// that another node relays is judged by this node's list.
	OpenFrontEnds []string
	// KeyTransport reads the keys of issuers; nil means one with connections of its own.
	KeyTransport http.RoundTripper
}

// Identifier finds out who makes the calls of a server. It is safe for concurrent use.
type Identifier struct {
	options       Options
	authenticator *authn.Authenticator
	failures      *failureCounts
	catchUps      chan struct{}
	streams       openStreams
	// checks is the goroutine that looks at streams, which ends when closed is.
	checks sync.WaitGroup
	closed chan struct{}
	close  func()

	mu       sync.Mutex // held while believed is replaced
	believed atomic.Pointer[believed]
}

// New makes an Identifier and registers its metrics. Close it in the end.
func New(options Options) (*Identifier, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	failures, err := newFailureCounts(options.Registerer)
	if err != nil {
		return nil, err
	}
	i := &Identifier{
		options: options, failures: failures, catchUps: make(chan struct{}, MaxCatchUps), closed: make(chan struct{}),
	}
	i.close = sync.OnceFunc(func() { close(i.closed) })
	i.authenticator = authn.New(authn.Options{
		Cluster: options.Cluster, Tokens: i.findToken, CatchUp: i.catchUp, ClientRoots: options.ClientRoots,
		Now: options.Now, OnKeysRead: i.logKeys, KeyTransport: options.KeyTransport,
	})
	return i, nil
}

// Close ends the reading of the keys of issuers and the look at streams. No call may come in any more.
func (i *Identifier) Close() {
	i.close()
	i.checks.Wait()
	i.authenticator.Close()
}

// JWT returns the verifier of the tokens of issuers, for explaining why one does not pass and how current keys are.
func (i *Identifier) JWT() *authn.JWTVerifier { return i.authenticator.JWT() }

// errCatchUpsFull is the error of a call when too many wait.
var errCatchUpsFull = errors.New("too many calls wait for this node to catch up")

// catchUp waits until this node knows every token whose creation was answered.
func (i *Identifier) catchUp(ctx context.Context) error {
	select {
	case i.catchUps <- struct{}{}:
		defer func() { <-i.catchUps }()
	default:
		return errCatchUpsFull
	}
	ctx, cancel := context.WithTimeout(ctx, CatchUpPatience)
	defer cancel()
	return i.options.CatchUp(ctx)
}

func (i *Identifier) logKeys(source string, err error) {
	if err != nil {
		i.options.Log.Warn("the keys of an issuer cannot be read, tokens with new keys are refused", "source", source,
			"error", err)
	}
}
