package identify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
)

// refusal returns why the list of refusals applies to a credential that is otherwise valid, or nil. It asks for more
// than the ledger does when it applies an entry, which has neither the certificate nor the jti nor the time of issue.
func (i *Identifier) refusal(book *access.Book, c *call) error {
	wall, issued := i.wallNow(), c.issued
	keys := make([]access.RefusedKey, 1, 3)
	keys[0] = access.RefusedKey{Kind: access.RefusedUser, Name: c.caller.User}
	if id, isToken := c.caller.Token(); isToken {
		keys = append(keys, access.RefusedKey{Kind: access.RefusedToken, Name: id.String()})
		token, _ := book.Token(id)
		issued = token.Created
	}
	if c.jwtID != "" {
		keys = append(keys, access.RefusedKey{Kind: access.RefusedJTI, Issuer: c.caller.Issuer(), Name: c.jwtID})
	}
	if len(c.chain) > 0 {
		fingerprint := sha256.Sum256(c.chain[0].Raw)
		keys = append(keys,
			access.RefusedKey{Kind: access.RefusedCertificate, Name: hex.EncodeToString(fingerprint[:])})
	}
	for _, key := range keys {
		if _, refused := book.Refusal(key, issued, wall); refused {
			return withdrawn(c.caller.User, key.Kind)
		}
	}
	return nil
}

func withdrawn(user string, kind access.RefusedKind) error {
	text := fmt.Sprintf("this %s of %s is refused by the cluster; ask an administrator", kind, user)
	if kind == access.RefusedUser {
		text = fmt.Sprintf("credentials of %s, or those as old as this one, are refused by the cluster; "+
			"ask an administrator", user)
	}
	return authn.NewError(authn.Withdrawn, text)
}
