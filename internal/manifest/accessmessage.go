package manifest

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// SubjectMessage converts a subject. The numbers of the kinds are the same.
func SubjectMessage(s access.Subject) *quoratev1.Subject {
	return &quoratev1.Subject{Kind: quoratev1.SubjectKind(s.Kind), Name: s.Name}
}

// SubjectOf is the inverse of SubjectMessage. A kind that does not exist is refused by Check of the subject.
func SubjectOf(m *quoratev1.Subject) access.Subject {
	kind := access.SubjectKind(0)
	if m.GetKind() >= 0 && m.GetKind() <= math.MaxUint8 {
		kind = access.SubjectKind(m.GetKind())
	}
	return access.Subject{Kind: kind, Name: m.GetName()}
}

// SubjectTexts are the texts of subjects, as manifests write them.
func SubjectTexts(messages []*quoratev1.Subject) []string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, SubjectOf(m).String())
	}
	return texts
}

func bindingMessages(bindings []access.Binding) []*quoratev1.Binding {
	var messages []*quoratev1.Binding
	for _, b := range bindings {
		m := &quoratev1.Binding{
			Role: b.Role, MaxPriority: b.MaxPriority, Unpreemptable: b.Unpreemptable,
		}
		for _, s := range b.To {
			m.Subjects = append(m.Subjects, SubjectMessage(s))
		}
		if b.HoldAs.Any || len(b.HoldAs.Names) > 0 {
			m.HoldAs = &quoratev1.HoldAs{Any: b.HoldAs.Any, Names: b.HoldAs.Names}
		}
		if b.Until != 0 {
			m.EndsAt = timestamppb.New(time.UnixMilli(b.Until))
		}
		messages = append(messages, m)
	}
	return messages
}

// bindingsOf refuses what a manifest cannot write.
func bindingsOf(messages []*quoratev1.Binding) ([]access.Binding, error) {
	var bindings []access.Binding
	for i, m := range messages {
		b := access.Binding{
			Role: m.GetRole(), MaxPriority: m.GetMaxPriority(), Unpreemptable: m.GetUnpreemptable(),
			HoldAs: access.Holders{Any: m.GetHoldAs().GetAny(), Names: m.GetHoldAs().GetNames()},
		}
		for _, subject := range m.GetSubjects() {
			s := SubjectOf(subject)
			if err := s.Check(); err != nil {
				return nil, fmt.Errorf("binding %d: %w", i+1, err)
			}
			b.To = append(b.To, s)
		}
		if m.GetEndsAt() != nil {
			at := m.GetEndsAt().AsTime()
			b.Until = at.UnixMilli()
			if m.GetEndsAt().CheckValid() != nil || b.Until <= 0 || !time.UnixMilli(b.Until).Equal(at) {
				return nil, fmt.Errorf("binding %d: ends is not a whole number of milliseconds after 1970", i+1)
			}
		}
		if b.HoldAs.Any && len(b.HoldAs.Names) > 0 {
			return nil, fmt.Errorf("binding %d: hold_as says any and has names", i+1)
		}
		bindings = append(bindings, b)
	}
	return bindings, nil
}

func sectionMessage(s access.Section) *quoratev1.AccessSection {
	m := &quoratev1.AccessSection{TokenLifeMs: s.TokenLife, Bindings: bindingMessages(s.Bindings)}
	for _, r := range s.Roles {
		m.Roles = append(m.Roles, &quoratev1.AccessRole{
			Name: r.Name, Description: r.Description, Verbs: r.Verbs.Names(),
		})
	}
	for i := range s.Issuers {
		m.Issuers = append(m.Issuers, issuerMessage(&s.Issuers[i]))
	}
	for _, c := range s.Certificates {
		m.Certificates = append(m.Certificates, &quoratev1.CertificateRule{Name: c.Name, Dns: c.DNS, User: c.User})
	}
	return m
}

func issuerMessage(i *access.Issuer) *quoratev1.Issuer {
	m := &quoratev1.Issuer{
		Name: i.Name, Url: i.URL, KeysUrl: i.KeysURL, KeysFile: i.KeysFile, Audience: i.Audience, User: i.User,
		ClaimRules: claimMessages(i.Require), Algorithms: i.Algorithms, MaxAgeMs: i.MaxAge,
	}
	for _, g := range i.Groups {
		m.Groups = append(m.Groups, &quoratev1.GroupRule{Group: g.Group, ClaimRules: claimMessages(g.Match)})
	}
	return m
}

func claimMessages(rules []access.ClaimRule) []*quoratev1.ClaimRule {
	var messages []*quoratev1.ClaimRule
	for _, r := range rules {
		messages = append(messages, &quoratev1.ClaimRule{Claim: r.Claim, Values: r.Values})
	}
	return messages
}

// sectionOf refuses what a manifest cannot write.
func sectionOf(m *quoratev1.AccessSection) (access.Section, error) {
	s := access.Section{TokenLife: m.GetTokenLifeMs()}
	for _, r := range m.GetRoles() {
		verbs, err := access.ParseVerbs(r.GetVerbs())
		if err != nil {
			return access.Section{}, fmt.Errorf("role %q: %w", r.GetName(), err)
		}
		s.Roles = append(s.Roles, access.Role{Name: r.GetName(), Description: r.GetDescription(), Verbs: verbs})
	}
	for _, i := range m.GetIssuers() {
		s.Issuers = append(s.Issuers, issuerOf(i))
	}
	for _, c := range m.GetCertificates() {
		s.Certificates = append(s.Certificates, access.CertificateRule{
			Name: c.GetName(), DNS: c.GetDns(), User: c.GetUser(),
		})
	}
	var err error
	s.Bindings, err = bindingsOf(m.GetBindings())
	return s, err
}

func issuerOf(m *quoratev1.Issuer) access.Issuer {
	i := access.Issuer{
		Name: m.GetName(), URL: m.GetUrl(), KeysURL: m.GetKeysUrl(), KeysFile: m.GetKeysFile(),
		Audience: m.GetAudience(), User: m.GetUser(), Require: claimsOf(m.GetClaimRules()),
		Algorithms: m.GetAlgorithms(), MaxAge: m.GetMaxAgeMs(),
	}
	for _, g := range m.GetGroups() {
		i.Groups = append(i.Groups, access.GroupRule{Group: g.GetGroup(), Match: claimsOf(g.GetClaimRules())})
	}
	return i
}

func claimsOf(messages []*quoratev1.ClaimRule) []access.ClaimRule {
	var rules []access.ClaimRule
	for _, m := range messages {
		rules = append(rules, access.ClaimRule{Claim: m.GetClaim(), Values: m.GetValues()})
	}
	return rules
}
