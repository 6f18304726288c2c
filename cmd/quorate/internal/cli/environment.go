package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/spelling"
)

// ClientPrefix begins the names of all variables of Quorate, ServerPrefix those of the settings of a server: a server
// and the commands that call it can share an environment.
const (
	ClientPrefix = "QUORATE_"
	ServerPrefix = "QUORATE_SERVER_"
)

// clientVariables are those that commands read or set. docs/command-line.md lists them; the last line is of other
// clients.
var clientVariables = []string{
	ServerVariable, ContextVariable, NamespaceVariable, contextFileVariable, tokenVariable, tokenFileVariable,
	"QUORATE_TLS_CA", "QUORATE_TLS_CERT", "QUORATE_TLS_KEY", "QUORATE_TLS_SERVER_NAME", pagerVariable,
	"QUORATE_LEASE", "QUORATE_FENCE", "QUORATE_KEEPER", "QUORATE_INTERNAL_KEEPER",
	"QUORATE_SERVERS", "QUORATE_CURL",
}

// developmentVariables are those that builds and tests of Quorate read, and compose.yaml.
var developmentVariables = strings.Fields("QUORATE_BINARY QUORATE_CHART QUORATE_FAIL_OVER_KILLS QUORATE_IMAGE " +
	"QUORATE_LOAD QUORATE_LOOKS QUORATE_PACKAGES QUORATE_PAGES QUORATE_PICTURES QUORATE_PODMAN QUORATE_PROMETHEUS " +
	"QUORATE_SDKS QUORATE_SHARE_HOLDER QUORATE_SHARE_LOG QUORATE_SHARE_VALID QUORATE_TOUR QUORATE_VERIFY " +
	"QUORATE_VERSION")

// ClientVariables are the names that clients and builds read.
func ClientVariables() []string { return slices.Concat(clientVariables, developmentVariables) }

// serviceVariable are the variables that Kubernetes sets in pods for each service, here for those named quorate or
// quorate-something, apart from [portVariable].
var serviceVariable = regexp.MustCompile(`^QUORATE(_[A-Z0-9_]+)?_` +
	`(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// portVariable is the one of a service whose value is a URL; QUORATE_HTTP_PORT=7101 is a mistake.
var portVariable = regexp.MustCompile(`^QUORATE(_[A-Z0-9_]+)?_PORT=(tcp|udp|sctp)://`)

// WarnUnknownVariables prints a line for each variable whose name begins as those of Quorate and is none, because a
// typo would otherwise have no effect without a word. The names of settings of servers are not checked if serverNames
// is empty.
func (c *Env) WarnUnknownVariables(environ, serverNames []string) {
	known := append(ClientVariables(), serverNames...)
	var unknown []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		isOfService := serviceVariable.MatchString(name) || portVariable.MatchString(pair)
		skipped := len(serverNames) == 0 && strings.HasPrefix(name, ServerPrefix)
		if strings.HasPrefix(name, ClientPrefix) && !skipped && !slices.Contains(known, name) && !isOfService {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range slices.Compact(unknown) {
		hint := "docs/command-line.md has a table of those that have one"
		if similar := similarVariable(name, slices.Concat(clientVariables, serverNames)); similar != "" {
			hint = "did you mean " + similar + "?"
		}
		c.Messagef("warning: the variable %s has no effect: %s", name, hint)
	}
}

// similarVariable is the known name that a name stands for with the other prefix, or the most similar one; empty if
// none is similar.
func similarVariable(name string, known []string) string {
	own := strings.TrimPrefix(name, ClientPrefix)
	for _, other := range []string{ServerPrefix + own, ClientPrefix + strings.TrimPrefix(name, ServerPrefix)} {
		if slices.Contains(known, other) {
			return other
		}
	}
	best, least := "", max(2, len(own)/3)+1
	for _, k := range known {
		for _, written := range []string{name, ServerPrefix + own} {
			if d, near := spelling.EditsWithin(written, k, least-1); near {
				best, least = k, d
			}
		}
	}
	return best
}
