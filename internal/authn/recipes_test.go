package authn

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/authn/authntest"
)

// issuerText is an issuer in the form of configuration files.
type issuerText struct {
	URL        string                         `yaml:"url"`
	KeysURL    string                         `yaml:"keys-url"`
	KeysFile   string                         `yaml:"keys-file"`
	Audience   string                         `yaml:"audience"`
	User       string                         `yaml:"user"`
	MaxAge     time.Duration                  `yaml:"max-age"`
	Algorithms []string                       `yaml:"algorithms"`
	Require    map[string][]string            `yaml:"claim-rules"`
	Groups     map[string]map[string][]string `yaml:"groups"`
}

func rulesOf(claims map[string][]string) (rules []ClaimRule) {
	for claim, values := range claims {
		rules = append(rules, ClaimRule{claim, values})
	}
	return rules
}

func readRecipe(t testing.TB, name string) Issuer {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "recipes", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	var issuers map[string]issuerText
	if err := decoder.Decode(&issuers); err != nil || len(issuers) != 1 {
		t.Fatalf("%s: %v", name, err)
	}
	var issuer Issuer
	for name, i := range issuers {
		issuer = Issuer{
			Name: name, URL: i.URL, KeysURL: i.KeysURL, KeysFile: i.KeysFile, Audience: i.Audience, User: i.User,
			MaxAge: i.MaxAge, Algorithms: i.Algorithms, Require: rulesOf(i.Require),
		}
		for group, claims := range i.Groups {
			issuer.Groups = append(issuer.Groups, GroupRule{group, rulesOf(claims)})
		}
	}
	return issuer
}

// readClaims reads the claims of a genuine token, with the times made current.
func readClaims(t testing.TB, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recipes", name+".claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{"iat", "nbf", "exp"} {
		offset := time.Duration(0)
		if after := strings.TrimPrefix(claims[claim].(string), "now"); after != "" {
			if offset, err = time.ParseDuration(after + "s"); err != nil {
				t.Fatal(err)
			}
		}
		claims[claim] = time.Now().Add(offset).Unix()
	}
	return claims
}

// TestRecipes verifies tokens with the claims of real issuers by the configurations that the documentation shows.
func TestRecipes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		user, group string
		foreign     map[string]any // claims of a token that the issuer signs for other people
	}{
		"github": {"github/456789", "github/deploy", map[string]any{"repository_owner_id": "99"}},
		"gitlab": {"gitlab/20", "gitlab/protected", map[string]any{"namespace_id": "99"}},
		"kubernetes": {
			"k8s/system:serviceaccount:ci:runner", "k8s/runners",
			map[string]any{"kubernetes.io": map[string]any{"namespace": "default"}},
		},
	}
	for name, test := range tests {
		config, claims := readRecipe(t, name), readClaims(t, name)
		i := authntest.New(config.URL)
		i.AddKey("RS256")
		if config.KeysFile != "" {
			config.KeysFile = filepath.Join(t.TempDir(), config.KeysFile)
			if err := os.WriteFile(config.KeysFile, i.KeySet(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		v := newTestVerifier(t, i, config)
		identity, err := v.Verify(t.Context(), i.Sign(claims))
		if err != nil || identity.User != test.user || !slices.Equal(identity.Groups, []string{test.group}) {
			t.Errorf("%s: %+v, %v", name, identity, err)
		}
		maps.Copy(claims, test.foreign)
		_, err = v.Verify(t.Context(), i.Sign(claims))
		wantReason(t, err, JWTRequiredClaim)
	}
}
