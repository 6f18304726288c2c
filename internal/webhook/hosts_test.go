package webhook

import (
	"strings"
	"testing"
)

func mustParse(t *testing.T, list ...string) Hosts {
	t.Helper()
	hosts, err := ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// TestHosts: a URL needs a rule with its scheme, host and port.
func TestHosts(t *testing.T) {
	t.Parallel()
	hosts := mustParse(t, "hooks.example.org", "*.ci.example.org:8443", "http://10.0.0.5:*", "[2001:db8::1]:443")
	for url, allowed := range map[string]bool{
		"https://hooks.example.org/x": true, "https://HOOKS.example.org:443": true, "https://hooks.example.org:444": false,
		"http://hooks.example.org": false, "https://example.org": false, "https://hooks.example.org.evil.com": false,
		"https://a.ci.example.org:8443/": true, "https://a.b.ci.example.org:8443/": true,
		"https://ci.example.org:8443/": false, "https://.ci.example.org:8443/": false,
		"http://10.0.0.5/": true, "http://10.0.0.5:81/": true, "https://10.0.0.5/": false,
		"https://[2001:db8::1]/": true, "https://user:x@hooks.example.org": false, "https://hooks.example.org/#x": false,
		"hooks.example.org": false, "https://": false, "ftp://hooks.example.org": false,
	} {
		if err := hosts.Check(url); (err == nil) != allowed {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := (Hosts{}).Check("https://hooks.example.org"); err == nil || !strings.Contains(err.Error(), "webhook-hosts") {
		t.Errorf("without rules: %v", err)
	}
	for _, wrong := range []string{"", "ftp://x", "https://", "a/b", "a b", "http://u@h", ":80"} {
		if _, err := ParseHosts([]string{wrong}); err == nil {
			t.Errorf("the rule %q is accepted", wrong)
		}
	}
	if _, err := ParseHosts(make([]string, MaxHosts+1)); err == nil {
		t.Error("too many rules are accepted")
	}
}

// TestAddresses: what a name was resolved to decides. Addresses of the own machine and of the link need a URL and a
// rule with exactly this address.
func TestAddresses(t *testing.T) {
	t.Parallel()
	hosts := mustParse(t, "http://127.0.0.1:*", "hooks.example.org", "169.254.169.254")
	for _, c := range []struct {
		host, resolved string
		allowed        bool
	}{
		{"hooks.example.org", "93.184.216.34:443", true},
		{"hooks.example.org", "10.1.2.3:443", true},
		{"hooks.example.org", "127.0.0.1:443", false},
		{"hooks.example.org", "[::1]:443", false},
		{"hooks.example.org", "[::ffff:127.0.0.1]:443", false},
		{"hooks.example.org", "169.254.169.254:443", false},
		{"hooks.example.org", "[fe80::1%eth0]:443", false},
		{"hooks.example.org", "0.0.0.0:443", false},
		{"hooks.example.org", "224.0.0.1:443", false},
		{"127.0.0.1", "127.0.0.1:80", true},
		{"127.0.0.2", "127.0.0.2:80", false},
		{"169.254.169.254", "169.254.169.254:443", true},
		{"127.0.0.1", "not an address", false},
	} {
		if err := hosts.checkAddress(c.host, c.resolved); (err == nil) != c.allowed {
			t.Errorf("%s at %s: %v", c.host, c.resolved, err)
		}
	}
}
