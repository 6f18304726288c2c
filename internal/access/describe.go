package access

import (
	"fmt"
	"strings"
)

// These texts are the Before and After of differences. They are never empty and never contain hashes of secrets. Two
// objects with equal texts are equal, so a difference of texts is the difference.

// describe is the account as text for differences. It is never empty.
func (a Account) describe() string {
	text := "enabled"
	if a.Disabled {
		text = "disabled"
	}
	for _, group := range a.Groups {
		text += ", group " + group
	}
	return text + quoted(a.Description)
}

func (r Role) describe() string { return r.Verbs.String() + quoted(r.Description) }

func (t *Token) describe() string {
	text := fmt.Sprintf("of %s, created %d, ends %d", t.Account, t.Created, t.Ends)
	if t.Ceiling != AllVerbs {
		text += ", at most " + t.Ceiling.String()
	}
	if t.Revoked != 0 {
		text += fmt.Sprintf(", revoked at %d", t.Revoked)
	}
	return text + quoted(t.Description)
}

func (k RefusedKey) describe() string {
	if k.Issuer != "" {
		return k.Kind.String() + " " + k.Issuer + " " + k.Name
	}
	return k.Kind.String() + " " + k.Name
}

func (r *Refused) describe() string {
	text := fmt.Sprintf("until %d", r.Until)
	if r.IssuedBefore != 0 {
		text += fmt.Sprintf(", issued before %d", r.IssuedBefore)
	}
	return text + quoted(r.Reason)
}

func (b Binding) describe() string {
	subjects := make([]string, len(b.To))
	for i, s := range b.To {
		subjects[i] = s.String()
	}
	text := b.Role + " to " + strings.Join(subjects, ", ")
	if b.MaxPriority != 0 {
		text += fmt.Sprintf("; max-priority %d", b.MaxPriority)
	}
	if b.Unpreemptable {
		text += "; unpreemptable"
	}
	if !b.HoldAs.isEmpty() {
		text += "; hold-as " + b.HoldAs.describe()
	}
	if b.Until != 0 {
		text += fmt.Sprintf("; until %d", b.Until)
	}
	return text
}

// describe tells any from a user that is called any.
func (h Holders) describe() string {
	if h.Any {
		return "any"
	}
	return fmt.Sprintf("%q", h.Names)
}

func (i Issuer) describe() string {
	return fmt.Sprintf("%s, keys %q %q, audience %s, user %s, require %s, groups %q, algorithms %q, max-age %d", i.URL,
		i.KeysURL, i.KeysFile, i.Audience, i.User, describeClaims(i.Require), describeGroups(i.Groups), i.Algorithms,
		i.MaxAge)
}

func describeGroups(groups []GroupRule) []string {
	var texts []string
	for _, g := range groups {
		texts = append(texts, g.Group+": "+describeClaims(g.Match))
	}
	return texts
}

func describeClaims(rules []ClaimRule) string {
	var texts []string
	for _, r := range rules {
		texts = append(texts, fmt.Sprintf("%s %q", r.Claim, r.Values))
	}
	return strings.Join(texts, ", ")
}

func (c CertificateRule) key() string {
	if c.Name != "" {
		return "name " + c.Name
	}
	return "dns " + c.DNS
}

func (c CertificateRule) describe() string { return "user " + c.User }

func describeSpan(ms int64) string { return fmt.Sprintf("%d ms", ms) }

func describeCount(n uint64) string { return fmt.Sprintf("%d recoveries", n) }

// quoted is a text in quotes behind a comma, or nothing.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(", %q", text)
}
