package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// Kind is the kind of the holder of a certificate.
type Kind string

// The kinds of holders.
const (
	Node   Kind = "node"
	Client Kind = "client"
)

const (
	roleScheme = "quorate"
	roleHost   = "cluster"
)

// Role identifies the holder of a certificate.
type Role struct {
	// Cluster and Name are 1 to 64 letters, digits, '.', '_' or '-'.
	Cluster string
	Kind    Kind
	Name    string
}

// ErrNoRole is the error of a certificate without a role.
var ErrNoRole = errors.New("it has no URI quorate://cluster/<cluster>/node/<id>")

// String returns a description for people.
func (r Role) String() string { return fmt.Sprintf("%s %s of cluster %s", r.Kind, r.Name, r.Cluster) }

// URI returns the URI in the certificate.
func (r Role) URI() *url.URL {
	return &url.URL{Scheme: roleScheme, Host: roleHost, Path: "/" + r.Cluster + "/" + string(r.Kind) + "/" + r.Name}
}

var allowedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`) })

func checkName(what, name string) error {
	if allowedName().MatchString(name) {
		return nil
	}
	return fmt.Errorf("%s %q: allowed are 1 to 64 letters, digits, '.', '_' or '-'", what, name)
}

func (r Role) checkNames() error {
	if r.Kind != Node && r.Kind != Client {
		return fmt.Errorf("kind %q: allowed are %s and %s", r.Kind, Node, Client)
	}
	return errors.Join(
		checkName("the name of the cluster is", r.Cluster),
		checkName("the name of the "+string(r.Kind)+" is", r.Name),
	)
}

// RoleOf returns the role in a certificate. The error is ErrNoRole if there is none. A certificate with several roles
// is an error.
func RoleOf(certificate *x509.Certificate) (Role, error) {
	var found []Role
	for _, uri := range certificate.URIs {
		if uri.Scheme != roleScheme {
			continue
		}
		role, err := parseRole(uri)
		if err != nil {
			return Role{}, err
		}
		found = append(found, role)
	}
	switch len(found) {
	case 0:
		return Role{}, ErrNoRole
	case 1:
		return found[0], nil
	}
	return Role{}, fmt.Errorf("it has two roles, %s and %s: one is allowed", found[0], found[1])
}

func parseRole(uri *url.URL) (Role, error) {
	parts := strings.Split(strings.TrimPrefix(uri.Path, "/"), "/")
	if uri.Host != roleHost || len(parts) != 3 || uri.RawQuery != "" || uri.Fragment != "" || uri.User != nil {
		return Role{}, fmt.Errorf(
			"its URI %s is not of the form quorate://cluster/<cluster>/node/<id> or …/client/<name>", uri)
	}
	role := Role{Cluster: parts[0], Kind: Kind(parts[1]), Name: parts[2]}
	if err := role.checkNames(); err != nil {
		return Role{}, fmt.Errorf("its URI %s: %w", uri, err)
	}
	return role, nil
}
