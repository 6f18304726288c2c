package wire

import (
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// ToSection reads an access section and checks all of it; it is in canonical form. The field is its path in the
// request, and errors name elements as the caller wrote them.
func ToSection(field string, s *quoratev1.AccessSection) (access.Section, error) {
	section := access.Section{TokenLife: s.GetTokenLifeMs()}
	var err error
	if section.Roles, err = toRoles(joinFields(field, "roles"), s.GetRoles()); err != nil {
		return access.Section{}, err
	}
	for i, issuer := range s.GetIssuers() {
		read, err := toIssuer(ElementOf(joinFields(field, "issuers"), i), issuer)
		if err != nil {
			return access.Section{}, err
		}
		section.Issuers = append(section.Issuers, read)
	}
	for _, c := range s.GetCertificates() {
		section.Certificates = append(section.Certificates, access.CertificateRule{
			Name: c.GetName(), DNS: c.GetDns(), User: c.GetUser(),
		})
	}
	if section.Bindings, err = toBindings(joinFields(field, "bindings"), s.GetBindings()); err != nil {
		return access.Section{}, err
	}
	if _, refused := section.Check(); refused != nil { // in the order of the caller, so that fields are the caller's
		return access.Section{}, invalidAccess(field, refused)
	}
	return section.Canonical(), nil
}

func toRoles(field string, list []*quoratev1.AccessRole) ([]access.Role, error) {
	var roles []access.Role
	for i, r := range list {
		verbs, err := access.ParseVerbs(r.GetVerbs())
		if err != nil {
			return nil, invalidAccess(ElementOf(field, i), err)
		}
		roles = append(roles, access.Role{Name: r.GetName(), Description: r.GetDescription(), Verbs: verbs})
	}
	return roles, nil
}

func toIssuer(field string, i *quoratev1.Issuer) (access.Issuer, error) {
	age, err := toSpan(joinFields(field, "max_age_ms"), i.GetMaxAgeMs(), 0, access.LongestMaxAge)
	if err != nil {
		return access.Issuer{}, err
	}
	issuer := access.Issuer{
		Name: i.GetName(), URL: i.GetUrl(), KeysURL: i.GetKeysUrl(), KeysFile: i.GetKeysFile(), Audience: i.GetAudience(),
		User: i.GetUser(), Require: toClaims(i.GetClaimRules()), Algorithms: cloneStrings(i.GetAlgorithms()), MaxAge: age,
	}
	for _, g := range i.GetGroups() {
		issuer.Groups = append(issuer.Groups, access.GroupRule{Group: g.GetGroup(), Match: toClaims(g.GetClaimRules())})
	}
	return issuer, nil
}

func toClaims(list []*quoratev1.ClaimRule) []access.ClaimRule {
	var rules []access.ClaimRule
	for _, r := range list {
		rules = append(rules, access.ClaimRule{Claim: r.GetClaim(), Values: cloneStrings(r.GetValues())})
	}
	return rules
}

// FromSection is the inverse of ToSection; nil for an empty section.
func FromSection(s access.Section) *quoratev1.AccessSection {
	shown := &quoratev1.AccessSection{Bindings: FromBindings(s.Bindings), TokenLifeMs: s.TokenLife}
	for _, r := range s.Roles {
		shown.Roles = append(shown.Roles, &quoratev1.AccessRole{
			Name: r.Name, Description: r.Description, Verbs: r.Verbs.Names(),
		})
	}
	for _, i := range s.Issuers {
		shown.Issuers = append(shown.Issuers, fromIssuer(i))
	}
	for _, c := range s.Certificates {
		shown.Certificates = append(shown.Certificates, &quoratev1.CertificateRule{
			Name: c.Name, Dns: c.DNS, User: c.User,
		})
	}
	if len(shown.GetBindings())+len(shown.GetRoles())+len(shown.GetIssuers())+len(shown.GetCertificates()) == 0 &&
		s.TokenLife == 0 {
		return nil
	}
	return shown
}

func fromIssuer(i access.Issuer) *quoratev1.Issuer {
	shown := &quoratev1.Issuer{
		Name: i.Name, Url: i.URL, KeysUrl: i.KeysURL, KeysFile: i.KeysFile, Audience: i.Audience, User: i.User,
		ClaimRules: fromClaims(i.Require), Algorithms: slices.Clone(i.Algorithms), MaxAgeMs: i.MaxAge,
	}
	for _, g := range i.Groups {
		shown.Groups = append(shown.Groups, &quoratev1.GroupRule{Group: g.Group, ClaimRules: fromClaims(g.Match)})
	}
	return shown
}

func fromClaims(list []access.ClaimRule) []*quoratev1.ClaimRule {
	var rules []*quoratev1.ClaimRule
	for _, r := range list {
		rules = append(rules, &quoratev1.ClaimRule{Claim: r.Claim, Values: slices.Clone(r.Values)})
	}
	return rules
}
