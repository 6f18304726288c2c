package fsm

import (
	"fmt"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
)

// The access section and bindings, in commands, in the configuration and in snapshots, both ways.

// encodeFixed writes nothing for zeros.
func encodeFixed(data []byte) []byte {
	for _, b := range data {
		if b != 0 {
			return data
		}
	}
	return nil
}

// decodeFixed also accepts no bytes, for zeros.
func decodeFixed(to, data []byte, name string) error {
	if len(data) > 0 && len(data) != len(to) {
		return fmt.Errorf("%s has %d bytes; %d are necessary, or none", name, len(data), len(to))
	}
	copy(to, data)
	return nil
}

func encodeBinding(b access.Binding) *logv1.Binding {
	return &logv1.Binding{
		Role: b.Role, To: each(b.To, encodeSubject), MaxPriority: b.MaxPriority, Unpreemptable: b.Unpreemptable,
		HoldAsAny: b.HoldAs.Any, HoldAs: b.HoldAs.Names, UntilMs: b.Until,
	}
}

func decodeBinding(b *logv1.Binding) access.Binding {
	return access.Binding{
		Role: b.GetRole(), To: each(b.GetTo(), decodeSubject), MaxPriority: b.GetMaxPriority(),
		Unpreemptable: b.GetUnpreemptable(),
		HoldAs:        access.Holders{Any: b.GetHoldAsAny(), Names: b.GetHoldAs()}, Until: b.GetUntilMs(),
	}
}

func encodeSubject(s access.Subject) *logv1.Subject {
	return &logv1.Subject{Kind: uint32(s.Kind), Name: s.Name}
}

// decodeSubject maps every unknown number to an invalid kind, which the ledger refuses. So do the other decoders below.
func decodeSubject(s *logv1.Subject) access.Subject {
	return access.Subject{Kind: access.SubjectKind(min(s.GetKind(), 255)), Name: s.GetName()}
}

func encodeOptionalSection(s *access.Section) *logv1.AccessSection {
	if s == nil {
		return nil
	}
	return encodeSection(*s)
}

func decodeOptionalSection(s *logv1.AccessSection) *access.Section {
	if s == nil {
		return nil
	}
	section := decodeSection(s)
	return &section
}

func encodeSection(s access.Section) *logv1.AccessSection {
	return &logv1.AccessSection{
		Roles: each(s.Roles, func(r access.Role) *logv1.Role {
			return &logv1.Role{Name: r.Name, Description: r.Description, Verbs: uint64(r.Verbs)}
		}),
		Issuers: each(s.Issuers, encodeIssuer),
		Certificates: each(s.Certificates, func(c access.CertificateRule) *logv1.CertificateRule {
			return &logv1.CertificateRule{Name: c.Name, Dns: c.DNS, User: c.User}
		}),
		Bindings: each(s.Bindings, encodeBinding), TokenLifeMs: s.TokenLife,
	}
}

func decodeSection(s *logv1.AccessSection) access.Section {
	return access.Section{
		Roles: each(s.GetRoles(), func(r *logv1.Role) access.Role {
			return access.Role{Name: r.GetName(), Description: r.GetDescription(), Verbs: access.Verbs(r.GetVerbs())}
		}),
		Issuers: each(s.GetIssuers(), decodeIssuer),
		Certificates: each(s.GetCertificates(), func(c *logv1.CertificateRule) access.CertificateRule {
			return access.CertificateRule{Name: c.GetName(), DNS: c.GetDns(), User: c.GetUser()}
		}),
		Bindings: each(s.GetBindings(), decodeBinding), TokenLife: s.GetTokenLifeMs(),
	}
}

func encodeIssuer(i access.Issuer) *logv1.Issuer {
	return &logv1.Issuer{
		Name: i.Name, Url: i.URL, KeysUrl: i.KeysURL, KeysFile: i.KeysFile, Audience: i.Audience, User: i.User,
		Require: each(i.Require, encodeClaimRule),
		Groups: each(i.Groups, func(g access.GroupRule) *logv1.GroupRule {
			return &logv1.GroupRule{Group: g.Group, Match: each(g.Match, encodeClaimRule)}
		}),
		Algorithms: i.Algorithms, MaxAgeMs: i.MaxAge,
	}
}

func decodeIssuer(i *logv1.Issuer) access.Issuer {
	return access.Issuer{
		Name: i.GetName(), URL: i.GetUrl(), KeysURL: i.GetKeysUrl(), KeysFile: i.GetKeysFile(),
		Audience: i.GetAudience(), User: i.GetUser(), Require: each(i.GetRequire(), decodeClaimRule),
		Groups: each(i.GetGroups(), func(g *logv1.GroupRule) access.GroupRule {
			return access.GroupRule{Group: g.GetGroup(), Match: each(g.GetMatch(), decodeClaimRule)}
		}),
		Algorithms: i.GetAlgorithms(), MaxAge: i.GetMaxAgeMs(),
	}
}

func encodeClaimRule(r access.ClaimRule) *logv1.ClaimRule {
	return &logv1.ClaimRule{Claim: r.Claim, Values: r.Values}
}

func decodeClaimRule(r *logv1.ClaimRule) access.ClaimRule {
	return access.ClaimRule{Claim: r.GetClaim(), Values: r.GetValues()}
}
