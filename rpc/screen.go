package rpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
)

// screenRules are the rules of screenCalls.
type screenRules struct {
	browsers Browsers
	refused  *prometheus.CounterVec
	// checkClient is that of the Security; nil if nothing is asked of clients.
	checkClient func(*tls.ConnectionState) error
}

// newRefused counts the calls that screenCalls refuses.
func newRefused(registerer prometheus.Registerer) (*prometheus.CounterVec, error) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quorate_rpc_refused_total",
		Help: "Calls that were refused before anything of them was read: of pages of other sites, for other hosts, " +
			"or under a certificate that does not hold any more.",
	}, []string{"reason"})
	for _, reason := range []string{refusedHost, refusedCrossSite, refusedCertificate} {
		refused.WithLabelValues(reason)
	}
	if err := registerer.Register(refused); err != nil {
		return nil, fmt.Errorf("registering the metrics of refused calls: %w", err)
	}
	return refused, nil
}

// screenCalls refuses calls for what carries them, before anything of them is read: the page that a browser shows,
// the host that is called, the certificate of the connection.
func (s *Server) screenCalls(next http.Handler) http.Handler {
	certified := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.checkCaller(r); err != nil {
			s.screenRules.refused.WithLabelValues(refusedCertificate).Inc()
			w.Header().Set("Connection", "close") // the next connection may show a better one
			s.observer.WriteError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
	return s.screenRules.browsers.Protect(certified,
		func(reason string) { s.screenRules.refused.WithLabelValues(reason).Inc() })
}

// checkCaller asks again for each call what the handshake asked once: connections live longer than certificates.
func (s *Server) checkCaller(r *http.Request) error {
	if s.screenRules.checkClient == nil {
		return nil
	}
	if r.TLS == nil {
		return connect.NewError(connect.CodeUnauthenticated, errors.New("the connection is not encrypted"))
	}
	if err := s.screenRules.checkClient(r.TLS); err != nil {
		return connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("the certificate of the client: %w", err))
	}
	return nil
}
