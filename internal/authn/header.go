package authn

import (
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strings"
)

const (
	// maxHeaderLength bounds an Authorization header: the longest JWT as a Basic password, with a user name.
	maxHeaderLength = MaxJWTLength*4/3 + 1024
	// maxClientCert bounds a Client-Cert header, maxClientChain a Client-Cert-Chain header.
	maxClientCert  = 16 << 10
	maxClientChain = 32 << 10
)

// bearerOf returns the API token or JWT of an Authorization header's values. Both "Bearer <token>" and "Basic" with the
// token as the password are allowed, because clients of Boskos can only send the latter; the user name of Basic is not
// looked at. The error is a *CredentialError.
func bearerOf(values []string) (string, error) {
	if len(values) > 1 {
		return "", refuse(SeveralCredentials, "there are %d Authorization headers, one is allowed", len(values))
	}
	value := values[0]
	if len(value) > maxHeaderLength {
		return "", refuse(TooLarge, "the Authorization header has %d bytes, %d are allowed", len(value), maxHeaderLength)
	}
	scheme, credential, found := strings.Cut(value, " ")
	credential = strings.Trim(credential, " ")
	if !found || credential == "" {
		return "", refuse(HeaderMalformed, "the Authorization header must be \"Bearer <token>\"")
	}
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return credential, nil
	case strings.EqualFold(scheme, "Basic"):
		return passwordOf(credential)
	}
	return "", refuse(HeaderMalformed, "the scheme of the Authorization header must be Bearer, or Basic with a token "+
		"as the password")
}

func passwordOf(credential string) (string, error) {
	text, err := base64.StdEncoding.DecodeString(credential)
	_, password, found := strings.Cut(string(text), ":")
	if err != nil || !found || password == "" {
		return "", refuse(HeaderMalformed, "the Authorization header must be \"Basic\" and base64 of <user>:<token>")
	}
	return password, nil
}

// The headers in which one node tells another one whose certificate it saw (RFC 9440): the leaf, and the certificates
// above it that the client sent, if there are any.
const (
	ClientCertHeader      = "Client-Cert"
	ClientCertChainHeader = "Client-Cert-Chain"
)

// SetClientCert sets the headers to a chain, the leaf first, that the sender saw proved in a handshake. It sets none
// for an empty chain, and for one that ParseClientCert would refuse.
func SetClientCert(header http.Header, chain []*x509.Certificate) {
	if len(chain) == 0 || len(chain) > maxChain {
		return
	}
	encoded := make([]string, len(chain))
	for i, certificate := range chain {
		encoded[i] = ":" + base64.StdEncoding.EncodeToString(certificate.Raw) + ":"
	}
	above := strings.Join(encoded[1:], ", ")
	if len(encoded[0]) > maxClientCert || len(above) > maxClientChain {
		return
	}
	header.Set(ClientCertHeader, encoded[0])
	if above != "" {
		header.Set(ClientCertChainHeader, above)
	}
}

// ParseClientCert returns the chain of the headers, the leaf first, or nil if there is none. It verifies nothing: only
// believe headers of a connection whose other side is a node of this cluster, and pass the result to Authenticator or
// CertificateVerifier. The error is a *CredentialError.
func ParseClientCert(header http.Header) ([]*x509.Certificate, error) {
	leaf, above := header.Values(ClientCertHeader), header.Values(ClientCertChainHeader)
	switch {
	case len(leaf) == 0 && len(above) == 0:
		return nil, nil
	case len(leaf) != 1 || len(above) > 1:
		return nil, refuse(SeveralCredentials, "there are %d headers %s and %d headers %s, one of each is allowed",
			len(leaf), ClientCertHeader, len(above), ClientCertChainHeader)
	case len(leaf[0]) > maxClientCert:
		return nil, refuse(TooLarge, "the header %s has more than %d bytes", ClientCertHeader, maxClientCert)
	}
	certificate, err := parseHeaderCertificate(ClientCertHeader, leaf[0])
	if err != nil {
		return nil, err
	}
	chain := []*x509.Certificate{certificate}
	if len(above) == 0 {
		return chain, nil
	}
	if len(above[0]) > maxClientChain || strings.Count(above[0], ",")+2 > maxChain {
		return nil, refuse(TooLarge, "the header %s has more than %d bytes or %d certificates", ClientCertChainHeader,
			maxClientChain, maxChain-1)
	}
	for text := range strings.SplitSeq(above[0], ",") {
		certificate, err := parseHeaderCertificate(ClientCertChainHeader, strings.Trim(text, " "))
		if err != nil {
			return nil, err
		}
		chain = append(chain, certificate)
	}
	return chain, nil
}

func parseHeaderCertificate(name, value string) (*x509.Certificate, error) {
	text, begins := strings.CutPrefix(value, ":")
	text, ends := strings.CutSuffix(text, ":")
	der, err := base64.StdEncoding.Strict().DecodeString(text)
	if !begins || !ends || err != nil {
		return nil, refuse(HeaderMalformed, "the header %s must be base64 between colons", name)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, refuse(HeaderMalformed, "a certificate in the header %s cannot be parsed", name)
	}
	return certificate, nil
}
