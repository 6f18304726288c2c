package authn

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	testURL      = "https://issuer.example.org"
	testAudience = "quorate.example.org"
)

func goodIssuer() Issuer {
	return Issuer{
		Name: "ci", URL: testURL, Audience: testAudience, User: "sub",
		Require: []ClaimRule{{Claim: "org", Values: []string{"42"}}},
	}
}

// TestIssuersAreChecked refuses configurations that are not valid or not safe.
func TestIssuersAreChecked(t *testing.T) {
	t.Parallel()
	if err := goodIssuer().Check(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*Issuer){
		"name":               func(i *Issuer) { i.Name = "CI" },
		"name: a":            func(i *Issuer) { i.Name = "account" },
		"url":                func(i *Issuer) { i.URL = "http://issuer.example.org" },
		"url: \"https:":      func(i *Issuer) { i.URL = "https://user@issuer.example.org" },
		"url: \"\"":          func(i *Issuer) { i.URL = "" },
		"url: \"file":        func(i *Issuer) { i.URL = "file:///etc/passwd" },
		"keys-url":           func(i *Issuer) { i.KeysURL = "http://10.0.0.1/keys" },
		"keys-url and":       func(i *Issuer) { i.KeysURL, i.KeysFile = testURL, "x" },
		"audience":           func(i *Issuer) { i.Audience = "" },
		"user":               func(i *Issuer) { i.User = "" },
		"user: claim":        func(i *Issuer) { i.User = "aud" },
		"claim-rules: a":     func(i *Issuer) { i.Require = nil },
		"claim-rules: claim": func(i *Issuer) { i.Require = []ClaimRule{{"aud", []string{testAudience}}} },
		`claim-rules: claim "org"`: func(i *Issuer) {
			i.Require = []ClaimRule{{"org", nil}}
		},
		"claim-rules: the path": func(i *Issuer) { i.Require = []ClaimRule{{"", []string{"a"}}} },
		"claim-rules: at most":  func(i *Issuer) { i.Require = slices.Repeat(i.Require, 17) },
		`a value has`:           func(i *Issuer) { i.Require = []ClaimRule{{"org", []string{""}}} },
		`group ""`:              func(i *Issuer) { i.Groups = []GroupRule{{"", i.Require}} },
		`group "a b"`:           func(i *Issuer) { i.Groups = []GroupRule{{"a b", i.Require}} },
		`group x`:               func(i *Issuer) { i.Groups = []GroupRule{{"x", nil}} },
		`group y: claim`:        func(i *Issuer) { i.Groups = []GroupRule{{"y", []ClaimRule{{"iss", []string{"a"}}}}} },
		"groups: at most":       func(i *Issuer) { i.Groups = make([]GroupRule, MaxGroups+1) },
		`algorithm "none"`:      func(i *Issuer) { i.Algorithms = []string{"ES256", "none"} },
		`algorithm "HS256"`:     func(i *Issuer) { i.Algorithms = []string{"HS256"} },
		"max-age is 48h":        func(i *Issuer) { i.MaxAge = 48 * time.Hour },
		"max-age is -1":         func(i *Issuer) { i.MaxAge = -1 },
	}
	for want, change := range tests {
		i := goodIssuer()
		change(&i)
		if err := i.Check(); err == nil || !strings.Contains(err.Error(), `: `+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, url := range []string{
		"http://localhost:1", "http://127.0.0.9/x", "http://[::1]:80", "https://a.example.org/b?c=d",
	} {
		i := goodIssuer()
		i.URL = url
		if err := i.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestSetsOfIssuersAreChecked refuses issuers that could be confused, or are too many.
func TestSetsOfIssuersAreChecked(t *testing.T) {
	t.Parallel()
	var many []Issuer
	for n := range MaxIssuers + 1 {
		i := goodIssuer()
		i.Name, i.URL = fmt.Sprint("ci", n), fmt.Sprint(testURL, "/", n)
		many = append(many, i)
	}
	sameName, sameURL := many[1], many[1]
	sameName.Name, sameURL.URL = many[0].Name, many[0].URL
	for want, issuers := range map[string][]Issuer{
		"17 issuers": many, "used twice": {many[0], sameName}, "same url": {many[0], sameURL},
	} {
		if err := CheckIssuers(issuers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := CheckIssuers(many[:MaxIssuers]); err != nil {
		t.Error(err)
	}
}

// TestClaimPaths reads nested claims and names with a slash.
func TestClaimPaths(t *testing.T) {
	t.Parallel()
	c, err := parseClaims([]byte(`{"a":"1","b":{"c":{"d":"2"}},"x/y":{"~":"3"},"https://e.org/team":"4","":"5"}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a": "1", "b/c/d": "2", "x~1y/~0": "3", "https:~1~1e.org~1team": "4",
		"b/c/x": "", "a/b": "", "b/c/d/e": "", "x/y": "", "A": "",
	} {
		path, err := parsePath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		value, found := c.at(path)
		if found != (want != "") || found && value != want {
			t.Errorf("%s is %v, want %q", text, value, want)
		}
	}
	long, deep := strings.Repeat("a", 257), strings.Repeat("a/", 8)+"a"
	for _, text := range []string{"", "/a", "a/", "a//b", "~", "a~2", "a/~", deep, long, "exp", "aud/x"} {
		if _, err := parsePath(text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}
