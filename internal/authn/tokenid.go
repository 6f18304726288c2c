package authn

// TokenID identifies an API token. It is not secret.
type TokenID [8]byte

// String returns the id as it is written in a token: 13 characters of base32 in lower case.
func (id TokenID) String() string {
	var digits [idLength]byte
	var bits uint64
	for _, b := range id {
		bits = bits<<8 | uint64(b)
	}
	digits[idLength-1] = base32Digits[bits<<1&31] // 64 bits are 12 digits and 4 bits
	bits >>= 4
	for i := idLength - 2; i >= 0; i-- {
		digits[i] = base32Digits[bits&31]
		bits >>= 5
	}
	return string(digits[:])
}

// ParseTokenID parses an id that String returned. The error is a *CredentialError with the reason TokenMalformed.
func ParseTokenID(text string) (TokenID, error) {
	if id, valid := decodeID(text); valid {
		return id, nil
	}
	return TokenID{}, refuse(TokenMalformed, "the id of an API token has %d characters of a-z and 2-7", idLength)
}

// decodeID is the inverse of String. It accepts one text for each id: the unused last bit must be zero.
func decodeID(text string) (id TokenID, valid bool) {
	if len(text) != idLength {
		return TokenID{}, false
	}
	var bits uint64
	for i := range idLength {
		digit, known := base32Value(text[i])
		if !known {
			return TokenID{}, false
		}
		if i < idLength-1 {
			bits = bits<<5 | digit
			continue
		}
		if digit&1 != 0 {
			return TokenID{}, false
		}
		bits = bits<<4 | digit>>1
	}
	for i := range id {
		id[i] = byte(bits >> (56 - 8*i))
	}
	return id, true
}

func base32Value(c byte) (value uint64, known bool) {
	switch {
	case 'a' <= c && c <= 'z':
		return uint64(c - 'a'), true
	case '2' <= c && c <= '7':
		return uint64(c-'2') + 26, true
	}
	return 0, false
}
