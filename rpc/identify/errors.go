package identify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/rpc/wire"
)

// unverifiableRetry is how long a caller should wait whose credential could not be verified now.
const unverifiableRetry = time.Second

// toError returns the error of the API for a credential that was refused. Its text is that of the credential's error,
// which has no secrets; its reason is that of authn in capitals, such as TOKEN_REVOKED.
func toError(err error) *connect.Error {
	var refused *authn.CredentialError
	if !errors.As(err, &refused) {
		return wire.ToError(err)
	}
	detail := &quoratev1.Problem{Reason: strings.ToUpper(string(refused.Reason)), NotApplied: true}
	switch {
	case refused.Reason == authn.Throttled:
		return wire.WithRetryAfter(wire.NewProblem(connect.CodeResourceExhausted, err.Error(), detail), refused.RetryAfter)
	case isUnverifiable(refused.Reason):
		return wire.WithRetryAfter(wire.NewProblem(connect.CodeUnavailable, err.Error(), detail), unverifiableRetry)
	}
	answer := wire.NewProblem(connect.CodeUnauthenticated, err.Error(), detail)
	answer.Meta().Set("WWW-Authenticate", "Bearer")
	return answer
}

// Unproved returns an error for a call with a credential that did not hold while this node did not know that the
// cluster is guarded, and nil for other calls. The caller has no identity then. Return the error instead of a decision
// by the book of a guarded cluster: a node that has just started knows neither the mode nor the credential until it has
// caught up, and would tell the owner of an allocation that there is none.
func Unproved(ctx context.Context) error {
	if c := callOf(ctx); c == nil || !c.unproved {
		return nil
	}
	return toError(authn.NewError(authn.TokenUnverifiable,
		"this node did not know yet that the cluster is guarded when the call came, and could not verify its credential"))
}

// isUnverifiable reports whether the credential may be valid: it could not be verified now.
func isUnverifiable(reason authn.Reason) bool {
	return reason == authn.TokenUnverifiable || reason == authn.KeysUnavailable
}

// failureCounts count credentials that were refused, or would be in a guarded cluster.
type failureCounts struct{ byReason *prometheus.CounterVec }

func newFailureCounts(registerer prometheus.Registerer) (*failureCounts, error) {
	counts := &failureCounts{byReason: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quorate_authentication_failures_total",
		Help: "Credentials that a guarded cluster refuses and a watching one would refuse, by reason.",
	}, []string{"reason"})}
	for _, reason := range authn.Reasons() {
		counts.byReason.WithLabelValues(string(reason))
	}
	if err := registerer.Register(counts.byReason); err != nil {
		return nil, fmt.Errorf("registering the metrics of authentication: %w", err)
	}
	return counts, nil
}

func (c *failureCounts) count(err error) {
	reason, known := authn.ReasonOf(err)
	if !known {
		reason = "other"
	}
	c.byReason.WithLabelValues(string(reason)).Inc()
}
