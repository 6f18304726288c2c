package identify

import (
	"errors"
	"reflect"
	"time"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
)

// believed is a book with what follows from it for authentication. It never changes.
type believed struct {
	book *access.Book
	// refuses is true if the book has refusals.
	refuses bool
	// trust counts the changes of issuers and certificate rules.
	trust uint64
}

// current configures the authenticator first if the book has changed: a call never passes by an issuer or a rule that
// was removed before it came.
func (i *Identifier) current() *believed {
	if known := i.believed.Load(); known != nil && known.book == i.options.Book() {
		return known
	}
	return i.believe()
}

func (i *Identifier) believe() *believed {
	i.mu.Lock()
	defer i.mu.Unlock()
	// The book is read under the lock, so that a slow call does not put an earlier one back.
	known, book := i.believed.Load(), i.options.Book()
	if known != nil && known.book == book {
		return known
	}
	next := &believed{book: book}
	for range book.RefusedEntries() {
		next.refuses = true
		break
	}
	before, after := access.Section{}, book.Section()
	if known != nil {
		before, next.trust = known.book.Section(), known.trust
	}
	if !reflect.DeepEqual(before.Issuers, after.Issuers) || !reflect.DeepEqual(before.Certificates, after.Certificates) {
		next.trust++
		i.configure(after)
	}
	i.believed.Store(next)
	return next
}

// configure makes the authenticator believe issuers and rules. What it would refuse is left out and logged: a mistake
// in one issuer must not keep another one trusted that was removed.
func (i *Identifier) configure(section access.Section) {
	config, err := authnConfig(section)
	if err != nil {
		i.options.Log.Error("parts of the access section are not used, their callers are refused", "error", err)
	}
	if err := i.authenticator.Configure(config); err != nil {
		i.options.Log.Error("no issuer and no certificate rule is used", "error", err)
		_ = i.authenticator.Configure(authn.Config{}) // it is valid
	}
}

// CheckSection returns an error that names everything in a section that authentication could not use. Ask it before a
// section is proposed: the ledger checks less, because it verifies nothing.
func CheckSection(section access.Section) error {
	_, err := authnConfig(section)
	return err
}

// authnConfig leaves out what is not valid.
func authnConfig(section access.Section) (authn.Config, error) {
	var config authn.Config
	var problems []error
	for _, issuer := range section.Issuers {
		list := append(config.Issuers[:len(config.Issuers):len(config.Issuers)], authnIssuer(issuer))
		if err := authn.CheckIssuers(list); err != nil {
			problems = append(problems, err)
			continue
		}
		config.Issuers = list
	}
	for _, rule := range section.Certificates {
		converted := authn.CertificateRule{Name: rule.Name, DNS: rule.DNS, User: rule.User}
		if err := authn.CheckCertificateRules([]authn.CertificateRule{converted}); err != nil {
			problems = append(problems, err)
			continue
		}
		config.Certificates = append(config.Certificates, converted)
	}
	return config, errors.Join(problems...)
}

func authnIssuer(i access.Issuer) authn.Issuer {
	converted := authn.Issuer{
		Name: i.Name, URL: i.URL, KeysURL: i.KeysURL, KeysFile: i.KeysFile, Audience: i.Audience, User: i.User,
		Require: claimRules(i.Require), Algorithms: i.Algorithms, MaxAge: time.Duration(i.MaxAge) * time.Millisecond,
	}
	for _, g := range i.Groups {
		converted.Groups = append(converted.Groups, authn.GroupRule{Group: g.Group, When: claimRules(g.Match)})
	}
	return converted
}

func claimRules(rules []access.ClaimRule) []authn.ClaimRule {
	converted := make([]authn.ClaimRule, len(rules))
	for n, r := range rules {
		converted[n] = authn.ClaimRule{Claim: r.Claim, Values: r.Values}
	}
	return converted
}

func (i *Identifier) findToken(id authn.TokenID) (authn.TokenRecord, bool) {
	book := i.options.Book()
	token, found := book.Token(access.TokenID(id))
	if !found {
		return authn.TokenRecord{}, false
	}
	account, found := book.Account(token.Account)
	if !found {
		return authn.TokenRecord{}, false
	}
	return authn.TokenRecord{
		Hash: token.Hash, User: account.User(), Groups: account.Groups, Ends: time.UnixMilli(token.Ends),
		Revoked: token.Revoked != 0, Disabled: account.Disabled,
	}, true
}
