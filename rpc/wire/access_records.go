package wire

import (
	"slices"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/access"
)

// ToAccount reads an account. Its names are checked by the ledger, which has the rules for names.
func ToAccount(a *adminv1.Account) access.Account {
	groups := slices.Sorted(slices.Values(a.GetGroups()))
	return access.Account{
		Name: a.GetName(), Description: a.GetDescription(), Groups: slices.Compact(groups), Disabled: a.GetDisabled(),
	}
}

// ToUpdateAccount keeps what the request leaves out.
func ToUpdateAccount(r *adminv1.UpdateAccountRequest) access.UpdateAccount {
	groups := slices.Sorted(slices.Values(r.GetGroups().GetNames()))
	return access.UpdateAccount{
		Account: access.Account{
			Name: r.GetName(), Description: r.GetDescription(), Groups: slices.Compact(groups), Disabled: r.GetDisabled(),
		},
		KeepDescription: r.Description == nil, KeepGroups: r.GetGroups() == nil, KeepDisabled: r.Disabled == nil,
	}
}

// FromAccount is the inverse of ToAccount.
func FromAccount(a access.Account) *adminv1.Account {
	return &adminv1.Account{
		Name: a.Name, Description: a.Description, Groups: slices.Clone(a.Groups), Disabled: a.Disabled,
	}
}

// FromToken shows the record of a token, without its hash.
func FromToken(t access.Token) *adminv1.Token {
	shown := &adminv1.Token{
		Id: t.ID.String(), Account: t.Account, Description: t.Description, CreatedAt: fromMillis(t.Created),
		EndsAt: fromMillis(t.Ends), Revoked: t.Revoked != 0,
	}
	if t.Ceiling != access.AllVerbs {
		shown.Verbs = t.Ceiling.Names()
	}
	return shown
}

// ToTokenID reads the id of a token.
func ToTokenID(field, text string) (access.TokenID, error) {
	id, err := access.ParseTokenID(text)
	if err != nil {
		return access.TokenID{}, invalidAccess(field, err)
	}
	return id, nil
}

// ToCeiling reads the verbs that callers with a token may have at most; an empty list is no bound.
func ToCeiling(verbs []string) (access.Verbs, error) {
	if len(verbs) == 0 {
		return access.AllVerbs, nil
	}
	ceiling, err := access.ParseVerbs(verbs)
	if err != nil {
		return 0, invalidAccess("", err)
	}
	return ceiling, nil
}

// ToVerb reads the name of a verb.
func ToVerb(field, name string) (access.Verb, error) {
	verb, err := access.ParseVerb(name)
	if err != nil {
		return 0, invalidAccess(field, err)
	}
	return verb, nil
}

// ToTokenLife reads how long a token lives, in milliseconds. The longest life is that of the section; 0 if it has none.
func ToTokenLife(millis, longest int64) (int64, error) {
	if longest == 0 {
		longest = access.MaxTokenLife
	}
	return toSpan("life_ms", millis, min(access.DefaultTokenLife, longest), longest)
}

// ToOverlap reads how long a rotated token stays valid, in milliseconds.
func ToOverlap(millis *int64) (int64, error) {
	if millis == nil {
		return access.DefaultOverlap, nil
	}
	return toSpan("overlap_ms", *millis, 0, access.MaxOverlap)
}

// refusedKinds maps the kinds of refusals.
var refusedKinds = map[adminv1.RefusedKind]access.RefusedKind{
	adminv1.RefusedKind_REFUSED_KIND_TOKEN:       access.RefusedToken,
	adminv1.RefusedKind_REFUSED_KIND_USER:        access.RefusedUser,
	adminv1.RefusedKind_REFUSED_KIND_CERTIFICATE: access.RefusedCertificate,
	adminv1.RefusedKind_REFUSED_KIND_JTI:         access.RefusedJTI,
}

// ToRefusedKey reads the key of a refusal. The field is the path of the message in the request.
func ToRefusedKey(field string, kind adminv1.RefusedKind, issuer, name string) (access.RefusedKey, error) {
	known, found := refusedKinds[kind]
	if !found {
		return access.RefusedKey{}, InvalidField(joinFields(field, "kind"), "%d is not a kind of refusal", kind)
	}
	return access.RefusedKey{Kind: known, Issuer: issuer, Name: name}, nil
}

// ToRefused reads a refusal. Its end is required, and at most [access.MaxRefusalSpan] after now.
func ToRefused(field string, r *adminv1.RefusedCredential, now time.Time) (access.Refused, error) {
	key, err := ToRefusedKey(field, r.GetKind(), r.GetIssuer(), r.GetName())
	if err != nil {
		return access.Refused{}, err
	}
	refused := access.Refused{RefusedKey: key, Reason: r.GetReason()}
	if refused.IssuedBefore, err = toMillis(joinFields(field, "issue_cutoff_at"), r.GetIssueCutoffAt()); err != nil {
		return access.Refused{}, err
	}
	if refused.Until, err = toMillis(joinFields(field, "ends_at"), r.GetEndsAt()); err != nil {
		return access.Refused{}, err
	}
	if wall := now.UnixMilli(); refused.Until <= wall || refused.Until-wall > access.MaxRefusalSpan {
		return access.Refused{}, InvalidField(joinFields(field, "ends_at"),
			"%v is not a time to end; choose a time in the future, at most 3660 days away", r.GetEndsAt().AsTime())
	}
	return refused, nil
}

// FromRefused is the inverse of ToRefused.
func FromRefused(r access.Refused) *adminv1.RefusedCredential {
	shown := &adminv1.RefusedCredential{
		Issuer: r.Issuer, Name: r.Name, IssueCutoffAt: fromMillis(r.IssuedBefore), EndsAt: fromMillis(r.Until),
		Reason: r.Reason,
	}
	for kind, known := range refusedKinds {
		if known == r.Kind {
			shown.Kind = kind
		}
	}
	return shown
}
