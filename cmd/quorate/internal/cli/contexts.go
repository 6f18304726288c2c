package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/cluster/atomicfile"
)

// Variables of the environment that name servers, choose the context and the file with all contexts.
const (
	ServerVariable      = "QUORATE_SERVER"
	ContextVariable     = "QUORATE_CONTEXT"
	contextFileVariable = "QUORATE_CONFIG"
)

// Bounds of the file with the contexts.
const (
	mostContexts        = 200
	mostContextFileSize = 1 << 20
)

// Context is a cluster with the credential for it, under a name. It has the paths of secrets, never a secret.
type Context struct {
	Name          string   `json:"name"`
	Servers       []string `json:"servers,omitempty"`
	TLSCA         string   `json:"tls_ca,omitempty"`
	TLSCert       string   `json:"tls_cert,omitempty"`
	TLSKey        string   `json:"tls_key,omitempty"`
	TLSServerName string   `json:"tls_server_name,omitempty"`
	TokenFile     string   `json:"token_file,omitempty"`
}

// Contexts are all contexts of a user, by name.
type Contexts struct {
	// Current is the name of the context that commands use; empty for none.
	Current  string    `json:"current,omitempty"`
	Contexts []Context `json:"contexts"`
}

// contextName are the names that a context can have, so that they need no quotes in a shell.
var contextName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,62}$`)

// Find returns the context with a name; nil if there is none.
func (c *Contexts) Find(name string) *Context {
	for i := range c.Contexts {
		if c.Contexts[i].Name == name {
			return &c.Contexts[i]
		}
	}
	return nil
}

// Add returns the context with a name, which it makes if there is none. The first one becomes the current one.
func (c *Contexts) Add(name string) (*Context, error) {
	if found := c.Find(name); found != nil {
		return found, nil
	}
	if !contextName.MatchString(name) {
		return nil, Usagef("%q is not a name of a context: it has 1 to 63 letters, digits and _.@-, beginning with a "+
			"letter, a digit or _", name)
	}
	if len(c.Contexts) == mostContexts {
		return nil, Usagef("there are %d contexts, the most that are kept: delete one first", mostContexts)
	}
	c.Contexts = append(c.Contexts, Context{Name: name})
	slices.SortFunc(c.Contexts, func(a, b Context) int { return strings.Compare(a.Name, b.Name) })
	if len(c.Contexts) == 1 {
		c.Current = name
	}
	return c.Find(name), nil
}

// Delete removes the context with a name.
func (c *Contexts) Delete(name string) error {
	if c.Find(name) == nil {
		return c.MissingContext(name)
	}
	c.Contexts = slices.DeleteFunc(c.Contexts, func(x Context) bool { return x.Name == name })
	if c.Current == name {
		c.Current = ""
	}
	return nil
}

// MissingContext is the error for a context that does not exist.
func (c *Contexts) MissingContext(name string) error {
	if len(c.Contexts) == 0 {
		return Usagef("there is no context %q, nor any other: quorate context set %s --server ADDRESS makes one", name,
			ShellWord(name))
	}
	var names []string
	for _, one := range c.Contexts {
		names = append(names, one.Name)
	}
	return Usagef("there is no context %q; there are: %s", name, strings.Join(names, ", "))
}

func contextFile() (string, error) {
	if path := os.Getenv(contextFileVariable); path != "" {
		return path, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder for contexts (or name a file in %s): %w", contextFileVariable, err)
	}
	return filepath.Join(folder, "quorate", "contexts.json"), nil
}

// LoadContexts reads the contexts of the user; none if there is no file.
func LoadContexts() (*Contexts, error) {
	path, err := contextFile()
	if err != nil {
		return &Contexts{}, nil // without a home folder there are no contexts, which Save reports
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Contexts{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the contexts: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	all, decoder := &Contexts{}, json.NewDecoder(io.LimitReader(file, mostContextFileSize))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(all); err != nil {
		return nil, Usagef("%s does not have contexts as quorate context writes them: %v", path, err)
	}
	return all, nil
}

// Save writes the contexts to a file that only the user can read.
func (c *Contexts) Save() error {
	path, err := contextFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(path, func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the contexts: %w", err)
	}
	return nil
}

// Take changes the context to what the flags of a command line name. Paths become absolute, because the context is used
// in other folders.
func (x *Context) Take(c *Env, flags *pflag.FlagSet) error {
	if flags.Changed("server") {
		x.Servers = c.Servers
	}
	if flags.Changed("tls-server-name") {
		x.TLSServerName = c.TLS.serverName
	}
	for _, file := range []struct {
		flag, given string
		to          *string
	}{
		{"tls-ca", c.TLS.files.CA, &x.TLSCA},
		{"tls-cert", c.TLS.files.Cert, &x.TLSCert},
		{"tls-key", c.TLS.files.Key, &x.TLSKey},
		{"token-file", c.Token.file, &x.TokenFile},
	} {
		if !flags.Changed(file.flag) {
			continue
		}
		*file.to = file.given
		if file.given == "" {
			continue
		}
		path, err := filepath.Abs(file.given)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return Usagef("--%s: %v", file.flag, err)
		}
		*file.to = path
	}
	if len(x.Servers) == 0 {
		return Usagef("a context needs the addresses of servers: --server URL[,URL...]")
	}
	return nil
}

// UseContext takes what the command line does not name from a context, see takeContext. That the context cannot be used
// is an error only of commands that call servers: a server must start without the contexts of its user.
func (c *Env) UseContext(flags *pflag.FlagSet) { c.contextError = c.takeContext(flags) }

// takeContext takes what the command line and the environment do not name from the context that --context or
// QUORATE_CONTEXT chooses, or else from the current one. The current one does not apply if servers are named: its
// credential is for its own servers.
func (c *Env) takeContext(flags *pflag.FlagSet) error {
	name, isChosen := c.Context, c.Context != ""
	all, err := LoadContexts()
	if err != nil {
		return err
	}
	if !isChosen {
		if name = all.Current; name == "" || flags.Changed("server") || os.Getenv(ServerVariable) != "" {
			return nil
		}
	}
	context := all.Find(name)
	if context == nil {
		return all.MissingContext(name)
	}
	take := func(flag, variable, value string, to *string) {
		if !flags.Changed(flag) && value != "" && (isChosen || os.Getenv(variable) == "") {
			*to = value
		}
	}
	if !flags.Changed("server") {
		c.Servers = context.Servers
	}
	take("tls-ca", "QUORATE_TLS_CA", context.TLSCA, &c.TLS.files.CA)
	take("tls-cert", "QUORATE_TLS_CERT", context.TLSCert, &c.TLS.files.Cert)
	take("tls-key", "QUORATE_TLS_KEY", context.TLSKey, &c.TLS.files.Key)
	take("tls-server-name", "QUORATE_TLS_SERVER_NAME", context.TLSServerName, &c.TLS.serverName)
	if os.Getenv(tokenVariable) == "" {
		take("token-file", tokenFileVariable, context.TokenFile, &c.Token.file)
	}
	return nil
}
