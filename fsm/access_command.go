package fsm

import (
	"errors"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// Changes of access, both ways.

func encodeChangeAccess(c quota.ChangeAccess) *logv1.ChangeAccess {
	to := &logv1.ChangeAccess{Reason: c.Reason}
	switch c := c.Change.(type) {
	case access.CreateAccount:
		to.Change = &logv1.ChangeAccess_CreateAccount{CreateAccount: encodeAccount(c.Account)}
	case access.UpdateAccount:
		to.Change = &logv1.ChangeAccess_UpdateAccount{UpdateAccount: encodeUpdateAccount(c)}
	case access.DeleteAccount:
		to.Change = &logv1.ChangeAccess_DeleteAccount{DeleteAccount: &logv1.DeleteAccount{Name: c.Name}}
	case access.CreateToken:
		to.Change = &logv1.ChangeAccess_CreateToken{CreateToken: &logv1.CreateToken{
			Account: c.Account, Token: encodeNewToken(c.Token), Description: c.Description, Ceiling: uint64(c.Ceiling),
		}}
	case access.RotateToken:
		to.Change = &logv1.ChangeAccess_RotateToken{RotateToken: &logv1.RotateToken{
			Old: encodeFixed(c.Old[:]), Token: encodeNewToken(c.Token), OverlapMs: c.Overlap,
		}}
	case access.RevokeToken:
		to.Change = &logv1.ChangeAccess_RevokeToken{RevokeToken: &logv1.RevokeToken{Id: encodeFixed(c.ID[:])}}
	case access.Refuse:
		to.Change = &logv1.ChangeAccess_Refuse{Refuse: encodeRefused(c.Refused)}
	case access.Unrefuse:
		to.Change = &logv1.ChangeAccess_Unrefuse{Unrefuse: encodeRefusedKey(c.Key)}
	case access.SetMode:
		to.Change = &logv1.ChangeAccess_SetMode{SetMode: &logv1.SetMode{Mode: uint32(c.Mode)}}
	case access.ReplaceSection:
		to.Change = &logv1.ChangeAccess_ReplaceSection{ReplaceSection: encodeSection(c.Section)}
	case access.Bootstrap:
		to.Change = &logv1.ChangeAccess_Bootstrap{Bootstrap: &logv1.Bootstrap{
			Secret: encodeFixed(c.Secret[:]), IsRecovery: c.IsRecovery, Recoveries: c.Recoveries, Account: c.Account,
			Token: encodeNewToken(c.Token), Member: c.Member, Guard: c.Guard,
		}}
	default:
		panic("fsm: a change of access outside the closed list")
	}
	return to
}

func decodeChangeAccess(from *logv1.ChangeAccess) (quota.Command, error) {
	change, err := decodeAccessCommand(from)
	return quota.ChangeAccess{Reason: from.GetReason(), Change: change}, err
}

func decodeAccessCommand(from *logv1.ChangeAccess) (access.Command, error) {
	switch c := from.GetChange().(type) {
	case *logv1.ChangeAccess_CreateAccount:
		return access.CreateAccount{Account: decodeAccount(c.CreateAccount)}, nil
	case *logv1.ChangeAccess_UpdateAccount:
		return decodeUpdateAccount(c.UpdateAccount), nil
	case *logv1.ChangeAccess_DeleteAccount:
		return access.DeleteAccount{Name: c.DeleteAccount.GetName()}, nil
	case *logv1.ChangeAccess_CreateToken:
		token, err := decodeNewToken(c.CreateToken.GetToken())
		return access.CreateToken{
			Account: c.CreateToken.GetAccount(), Token: token, Description: c.CreateToken.GetDescription(),
			Ceiling: access.Verbs(c.CreateToken.GetCeiling()),
		}, err
	case *logv1.ChangeAccess_RotateToken:
		token, err := decodeNewToken(c.RotateToken.GetToken())
		rotate := access.RotateToken{Token: token, Overlap: c.RotateToken.GetOverlapMs()}
		return rotate, errors.Join(err, decodeFixed(rotate.Old[:], c.RotateToken.GetOld(), "the id of the old token"))
	case *logv1.ChangeAccess_RevokeToken:
		var revoke access.RevokeToken
		err := decodeFixed(revoke.ID[:], c.RevokeToken.GetId(), "the id of the token")
		return revoke, err
	case *logv1.ChangeAccess_Refuse:
		return access.Refuse{Refused: decodeRefused(c.Refuse)}, nil
	case *logv1.ChangeAccess_Unrefuse:
		return access.Unrefuse{Key: decodeRefusedKey(c.Unrefuse)}, nil
	case *logv1.ChangeAccess_SetMode:
		return access.SetMode{Mode: access.Mode(min(c.SetMode.GetMode(), 255))}, nil
	case *logv1.ChangeAccess_ReplaceSection:
		return access.ReplaceSection{Section: decodeSection(c.ReplaceSection)}, nil
	case *logv1.ChangeAccess_Bootstrap:
		return decodeBootstrap(c.Bootstrap)
	}
	return nil, errors.New("this version does not know this change of access; run a newer version")
}

func decodeBootstrap(b *logv1.Bootstrap) (access.Command, error) {
	token, err := decodeNewToken(b.GetToken())
	bootstrap := access.Bootstrap{
		IsRecovery: b.GetIsRecovery(), Recoveries: b.GetRecoveries(), Account: b.GetAccount(), Token: token,
		Member: b.GetMember(), Guard: b.GetGuard(),
	}
	err = errors.Join(err, decodeFixed(bootstrap.Secret[:], b.GetSecret(), "the hash of the secret"))
	return bootstrap, err
}

func encodeAccount(a access.Account) *logv1.Account {
	return &logv1.Account{Name: a.Name, Description: a.Description, Groups: a.Groups, Disabled: a.Disabled}
}

func decodeAccount(a *logv1.Account) access.Account {
	return access.Account{
		Name: a.GetName(), Description: a.GetDescription(), Groups: a.GetGroups(), Disabled: a.GetDisabled(),
	}
}

func encodeUpdateAccount(c access.UpdateAccount) *logv1.UpdateAccount {
	a := c.Account
	return &logv1.UpdateAccount{
		Name: a.Name, Description: a.Description, Groups: a.Groups, Disabled: a.Disabled,
		KeepDescription: c.KeepDescription, KeepGroups: c.KeepGroups, KeepDisabled: c.KeepDisabled,
	}
}

func decodeUpdateAccount(c *logv1.UpdateAccount) access.UpdateAccount {
	return access.UpdateAccount{
		Account: access.Account{
			Name: c.GetName(), Description: c.GetDescription(), Groups: c.GetGroups(), Disabled: c.GetDisabled(),
		},
		KeepDescription: c.GetKeepDescription(), KeepGroups: c.GetKeepGroups(), KeepDisabled: c.GetKeepDisabled(),
	}
}

func encodeNewToken(t access.NewToken) *logv1.NewToken {
	return &logv1.NewToken{Id: encodeFixed(t.ID[:]), Hash: encodeFixed(t.Hash[:]), EndsMs: t.Ends}
}

func decodeNewToken(t *logv1.NewToken) (access.NewToken, error) {
	token := access.NewToken{Ends: t.GetEndsMs()}
	err := errors.Join(decodeFixed(token.ID[:], t.GetId(), "the id of the token"),
		decodeFixed(token.Hash[:], t.GetHash(), "the hash of the token"))
	return token, err
}

func encodeRefusedKey(k access.RefusedKey) *logv1.RefusedKey {
	return &logv1.RefusedKey{Kind: uint32(k.Kind), Issuer: k.Issuer, Name: k.Name}
}

func decodeRefusedKey(k *logv1.RefusedKey) access.RefusedKey {
	return access.RefusedKey{
		Kind: access.RefusedKind(min(k.GetKind(), 255)), Issuer: k.GetIssuer(), Name: k.GetName(),
	}
}

func encodeRefused(r access.Refused) *logv1.Refused {
	return &logv1.Refused{
		Key: encodeRefusedKey(r.RefusedKey), IssuedBeforeMs: r.IssuedBefore, UntilMs: r.Until, Reason: r.Reason,
	}
}

func decodeRefused(r *logv1.Refused) access.Refused {
	return access.Refused{
		RefusedKey: decodeRefusedKey(r.GetKey()), IssuedBefore: r.GetIssuedBeforeMs(), Until: r.GetUntilMs(),
		Reason: r.GetReason(),
	}
}
