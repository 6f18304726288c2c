package rpc

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Why a call was refused before anything of it was read, as metrics say it.
const (
	refusedHost        = "host"
	refusedCrossSite   = "cross_site"
	refusedCertificate = "certificate"
)

// maxOrigins bounds how many origins may be named.
const maxOrigins = 16

// Browsers configures which web pages may call a server. A browser sends the calls of every page that its user opens
// from inside the user's network, so that neither the address nor a firewall distinguishes a page from its user. The
// zero value admits only pages of the server itself.
type Browsers struct {
	// Origins are those of other pages that may call and read, such as "https://quotas.example.org"; at most 16.
	Origins []string
	// LoopbackOnly refuses calls to other hosts than this machine itself and Hosts. It is for servers that are open
	// to this machine alone: the name of a page may be made to stand for 127.0.0.1, and then the page is one of the
	// server itself.
	LoopbackOnly bool
	Hosts        []string
}

// Check is an error for origins that no page can have.
func (b Browsers) Check() error {
	if len(b.Origins) > maxOrigins {
		return fmt.Errorf("cors-origin names %d origins: allowed are %d", len(b.Origins), maxOrigins)
	}
	protection := http.NewCrossOriginProtection()
	for _, origin := range b.Origins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return fmt.Errorf("cors-origin %q: allowed are origins such as https://quotas.example.org: %w", origin, err)
		}
	}
	return nil
}

// Protect refuses calls of other pages and answers preflight requests. It calls refused with the reason, if that is not
// nil.
func (b Browsers) Protect(next http.Handler, refused func(reason string)) http.Handler {
	protection := http.NewCrossOriginProtection()
	for _, origin := range b.Origins {
		_ = protection.AddTrustedOrigin(origin) // Check has reported the error; the origin is not trusted
	}
	refuse := func(w http.ResponseWriter, reason, text string) {
		if refused != nil {
			refused(reason)
		}
		http.Error(w, text, http.StatusForbidden)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.checkHost(r.Host); err != nil {
			refuse(w, refusedHost, err.Error())
			return
		}
		origin := r.Header.Get("Origin")
		allowed := origin != "" && slices.Contains(b.Origins, origin)
		if len(b.Origins) > 0 {
			w.Header().Add("Vary", "Origin")
		}
		if allowed {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Expose-Headers", exposedHeaders)
		} else if err := b.checkSite(protection, r); err != nil {
			refuse(w, refusedCrossSite, err.Error())
			return
		}
		if allowed && r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			answerPreflight(w.Header())
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Headers that pages may send and read beside those that every page may: those of Connect, gRPC-Web and ours.
const (
	allowedHeaders = "Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, Grpc-Timeout, " +
		"X-Grpc-Web, X-User-Agent, X-Request-Id"
	exposedHeaders = "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Retry-After, X-Request-Id"
)

func answerPreflight(header http.Header) {
	header.Set("Access-Control-Allow-Methods", "GET, POST")
	header.Set("Access-Control-Allow-Headers", allowedHeaders)
	header.Set("Access-Control-Max-Age", "7200")
}

// checkHost refuses names that may have been made to stand for this machine. A call without a host is not from a
// browser.
func (b Browsers) checkHost(host string) error {
	if !b.LoopbackOnly || host == "" {
		return nil
	}
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	address, err := netip.ParseAddr(name)
	if name == "localhost" || err == nil && address.Unmap().IsLoopback() || slices.Contains(b.Hosts, name) {
		return nil
	}
	return fmt.Errorf("the call is for host %q, and this server, which does not ask who calls, serves only its own "+
		"machine: call it as "+
		"localhost or 127.0.0.1, or start it with certificates, or with insecure where the network keeps strangers out",
		host)
}

var errCrossSite = errors.New(
	"a web page of another site sent this call, and no page of another site may: name its origin in the setting " +
		"cors-origin if it should")

// checkSite refuses calls that a page of another site makes a browser send. Following a link to here is allowed: it
// changes nothing and is shown to the user alone.
func (b Browsers) checkSite(protection *http.CrossOriginProtection, r *http.Request) error {
	if protection.Check(r) != nil {
		return errCrossSite
	}
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	link := safe && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && !link {
		return errCrossSite
	}
	return nil
}
