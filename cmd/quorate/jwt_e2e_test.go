package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/authn/authntest"
)

// jwtSystems are the systems whose tokens docs/access.md shows how to accept, by the name of their issuer there.
var jwtSystems = []struct {
	issuer string
	// url is that of the page, which the test replaces by one of its own.
	url, claims string
	user, group string
}{
	{
		"github", "https://token.actions.githubusercontent.com", "github", "github/456789", "github/deploy",
	},
	{"gitlab", "https://gitlab.example.org", "gitlab", "gitlab/20", "gitlab/protected"},
	{
		"k8s", "https://kubernetes.default.svc.cluster.local", "kubernetes", "k8s/system:serviceaccount:ci:runner",
		"k8s/runners",
	},
}

// jwtCluster is a guarded server that accepts the tokens of issuers that the test serves.
type jwtCluster struct {
	server  serverFlags
	issuers map[string]*authntest.Issuer
	dir     string
	text    string // the manifest
}

var jwtSection = regexp.MustCompile("(?s)```yaml\n(access:\n  issuers:\n.*?)```")

// newJWTCluster applies the section of docs/access.md, with the addresses of the test's issuers.
func newJWTCluster(t *testing.T) *jwtCluster {
	t.Helper()
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	found := jwtSection.FindStringSubmatch(string(page))
	if found == nil {
		t.Fatal("docs/access.md has no section with issuers")
	}
	c := &jwtCluster{dir: t.TempDir(), issuers: map[string]*authntest.Issuer{}, text: found[1]}
	for _, system := range jwtSystems {
		i := authntest.Start(t)
		i.AddKey("RS256")
		c.issuers[system.issuer] = i
		if strings.Count(c.text, "url: "+system.url+"\n") != 1 {
			t.Fatalf("%s is not once in docs/access.md", system.url)
		}
		c.text = strings.ReplaceAll(c.text, "url: "+system.url+"\n", "url: "+i.URL+"\n")
	}
	keys := filepath.Join(c.dir, "k8s-keys.json")
	c.text = strings.ReplaceAll(c.text, "/etc/quorate/k8s-keys.json", keys) +
		"trees: {t: {resources: {cores: {unit: count}}, limits: {cores: 100}}}\n"
	secret := filepath.Join(c.dir, "secret")
	for path, text := range map[string][]byte{keys: c.issuers["k8s"].KeySet(), secret: []byte(strings.Repeat("s", 43))} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.server = singleServer(t, "--bootstrap-secret-file", secret)
	startServer(t, c.server)
	root := " --token-file " + c.path("admin")
	playSteps(t, c.server, []step{
		{"token create --secret-file " + secret + " --out " + c.path("admin"), 0, ""},
		{"apply -f " + manifestFile(t, c.text) + root, 0, "access issuer github"},
		{"access set guarded --force" + root, 0, "guarded"},
	})
	return c
}

func (c *jwtCluster) path(name string) string { return filepath.Join(c.dir, name) }

// claimsOf are the claims of a genuine token, as the system documents them, that is issued now.
func (c *jwtCluster) claimsOf(t *testing.T, issuer, fixture string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "authn", "testdata", "recipes", fixture+".claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{"iat", "nbf", "exp"} {
		after := time.Duration(0)
		if offset := strings.TrimPrefix(claims[claim].(string), "now"); offset != "" {
			if after, err = time.ParseDuration(offset + "s"); err != nil {
				t.Fatal(err)
			}
		}
		claims[claim] = time.Now().Add(after).Unix()
	}
	claims["iss"] = c.issuers[issuer].URL
	return claims
}

func (c *jwtCluster) tokenFile(t *testing.T, token string) string {
	t.Helper()
	file, err := os.CreateTemp(c.dir, "*.jwt")
	if err == nil {
		_, err = file.WriteString(token + "\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	return file.Name()
}

func (c *jwtCluster) allocate(t *testing.T, id, token string) (status int, answer string) {
	t.Helper()
	body := fmt.Sprintf(`{"id": %q, "claims": [{"tree": "t", "amounts": {"cores": 1}}]}`, id)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		c.server.baseURL()+"/quorate.v1.AllocationService/Allocate", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	return sendRequest(t, request)
}

// TestTokensOfOtherSystems: jobs of GitHub and GitLab and pods of Kubernetes call with the tokens that these systems
// give them, with the configuration that docs/access.md shows, and "quorate token check" says why.
func TestTokensOfOtherSystems(t *testing.T) {
	t.Parallel()
	c := newJWTCluster(t)
	for _, system := range jwtSystems {
		claims := c.claimsOf(t, system.issuer, system.claims)
		token := c.tokenFile(t, c.issuers[system.issuer].Sign(claims))
		test := "token check --issuer " + system.issuer + " " + token
		claims["aud"] = "https://elsewhere.example.org"
		foreign := c.tokenFile(t, c.issuers[system.issuer].Sign(claims))
		manifest := " --manifest " + manifestFile(t, c.text)
		playSteps(t, c.server, []step{
			{"access whoami --token-file " + token, 0, system.user},
			{"access whoami --token-file " + token, 0, system.group},
			{"allocate --id " + system.issuer + " --at t --amount cores=1 --token-file " + token, 0, "granted"},
			{"token create admin --token-file " + token, 4, "access.manage"},
			{test + " --token-file " + c.path("admin"), 0, "user "},
			{test + manifest, 0, "group " + system.group},
			{test + " -o json" + manifest, 0, `"rule": "audience"`},
			{"token check --issuer " + system.issuer + " " + foreign + manifest, 1, "elsewhere.example.org"},
			{"allocate --id no --at t --amount cores=1 --token-file " + foreign, 4, "audience"},
		})
	}
	other := c.tokenFile(t, "x")
	playSteps(t, c.server, []step{
		{
			"token check --issuer nowhere " + other + " --manifest " + manifestFile(t, c.text), 1,
			"there are github, gitlab, k8s",
		},
		{"token check --issuer github " + other, 1, "access.read"},
		{"token check " + other, 2, "--issuer"},
		{"token check --issuer github " + other + " --manifest " + manifestFile(t, c.text), 1, "format"},
	})
}

// TestForgedTokensOfOtherSystems: what an issuer has not signed for this audience and these owners is refused, and
// unknown keys make the server read keys only once.
func TestForgedTokensOfOtherSystems(t *testing.T) {
	t.Parallel()
	c := newJWTCluster(t)
	issuer := c.issuers["github"]
	good := c.claimsOf(t, "github", "github")
	with := func(claim string, value any) map[string]any {
		claims := maps.Clone(good)
		claims[claim] = value
		return claims
	}
	oldKey := issuer.SigningKey()
	for name, token := range map[string]string{
		"none":     unsignedToken(t, "none", good, nil),
		"HS256":    unsignedToken(t, "HS256", good, publicKeyPEM(t, oldKey.Public().Key)),
		"audience": issuer.Sign(with("aud", "https://other.example.org")),
		"owner":    issuer.Sign(with("repository_owner_id", "99")),
		"expired":  issuer.Sign(with("exp", time.Now().Add(-time.Second).Unix())),
		"key":      authntest.New(issuer.URL).Sign(good), // of the same kid
	} {
		if status, answer := c.allocate(t, "forged", token); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, answer := c.allocate(t, "good", issuer.Sign(good)); status != http.StatusOK {
		t.Errorf("a good token: %d %s", status, answer)
	}
	// The same name for another repository, made after the first was deleted, is another user without its groups.
	recycled := with("repository_id", "777777")
	if status, answer := c.allocate(t, "recycled", issuer.Sign(recycled)); status != http.StatusNotFound {
		t.Errorf("a recycled name: %d %s", status, answer)
	}
	// A key is withdrawn. The first token with the new one makes the server read the keys.
	issuer.AddKey("ES256")
	issuer.WithdrawKeys()
	if status, answer := c.allocate(t, "rotated", issuer.Sign(good)); status != http.StatusOK {
		t.Errorf("a new key: %d %s", status, answer)
	}
	if status, answer := c.allocate(t, "withdrawn", authntest.Sign(oldKey, with("run_id", "2"), nil)); status == 200 {
		t.Errorf("a withdrawn key: %d %s", status, answer)
	}
	before := issuer.Fetches()
	for i := range 40 {
		stranger := authntest.New(issuer.URL).SigningKey()
		stranger.KeyID = fmt.Sprintf("unknown-%d", i)
		if status, answer := c.allocate(t, "storm", authntest.Sign(stranger, good, nil)); status == http.StatusOK {
			t.Fatalf("an unknown key: %s", answer)
		}
	}
	if after := issuer.Fetches(); after > before+1 {
		t.Errorf("40 unknown keys made the server read the keys %d times", after-before)
	}
	playSteps(t, c.server, []step{
		{"allocation show forged --token-file " + c.path("admin"), 1, "no allocation"},
		{"allocation show withdrawn --token-file " + c.path("admin"), 1, "no allocation"},
		{"allocation show storm --token-file " + c.path("admin"), 1, "no allocation"},
	})
}

// unsignedToken is a token that is not signed, or that is signed with a secret that everyone knows.
func unsignedToken(t *testing.T, algorithm string, claims map[string]any, secret []byte) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	token := encode(fmt.Appendf(nil, `{"alg":%q,"typ":"JWT"}`, algorithm)) + "." + encode(payload)
	if secret == nil {
		return token + "."
	}
	signature := hmac.New(sha256.New, secret)
	signature.Write([]byte(token))
	return token + "." + encode(signature.Sum(nil))
}

func publicKeyPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
