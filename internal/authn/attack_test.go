package authn

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/quorate/quorate/internal/authn/authntest"
)

func encodePart(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func encodeJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encodePart(string(text))
}

// forge makes a token with a header of the attacker's choice, signed by a function of its first two parts.
func forge(t testing.TB, header string, claims any, sign func(signed string) []byte) string {
	t.Helper()
	signed := encodePart(header) + "." + encodeJSON(t, claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(signed))
}

func notSigned(string) []byte { return nil }

// TestForgedTokens tries tokens that were not signed with a key of the issuer, or not as they must be.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	i := authntest.New(testURL)
	v := newTestVerifier(t, i)
	key, claims := i.SigningKey(), goodClaims(i, nil)
	good := i.Sign(claims)
	parts := strings.Split(good, ".")
	attacker := authntest.New(testURL).SigningKey()
	embedded := attacker
	embedded.KeyID = key.KeyID

	public, err := x509.MarshalPKIXPublicKey(key.Public().Key)
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	asJWK, err := key.Public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	hs256 := func(secret []byte) string {
		return forge(t, `{"alg":"HS256","kid":"`+key.KeyID+`"}`, claims, func(signed string) []byte {
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(signed))
			return mac.Sum(nil)
		})
	}
	signature := strings.TrimPrefix(good, parts[0]+"."+parts[1]+".")
	jsonForm := fmt.Sprintf(`{"payload":%q,"signatures":[{"protected":%q,"signature":%q},{"protected":%q,"signature":%q}]}`,
		parts[1], parts[0], signature, parts[0], signature)
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.ECDH_ES, Key: key.Public().Key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := encrypter.Encrypt([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	jwe, err := encrypted.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		raw  string
		want Reason
	}{
		"alg none":                    {forge(t, `{"alg":"none"}`, claims, notSigned), JWTAlgorithm},
		"alg None":                    {forge(t, `{"alg":"None"}`, claims, notSigned), JWTAlgorithm},
		"alg none with the kid":       {forge(t, `{"alg":"none","kid":"`+key.KeyID+`"}`, claims, notSigned), JWTAlgorithm},
		"no alg":                      {forge(t, `{}`, claims, notSigned), JWTMalformed},
		"alg of a wrong type":         {forge(t, `{"alg":["ES256"]}`, claims, notSigned), JWTMalformed},
		"HS256 with the public PEM":   {hs256(asPEM), JWTAlgorithm},
		"HS256 with the public DER":   {hs256(public), JWTAlgorithm},
		"HS256 with the public JWK":   {hs256(asJWK), JWTAlgorithm},
		"no signature":                {parts[0] + "." + parts[1] + ".", JWTSignature},
		"another key, same kid":       {authntest.Sign(embedded, claims, nil), JWTSignature},
		"another key":                 {authntest.Sign(withID(attacker, "unknown"), claims, nil), JWTKeyUnknown},
		"an RS256 kid mix":            {forge(t, `{"alg":"RS256","kid":"`+key.KeyID+`"}`, claims, notSigned), JWTKeyUnknown},
		"alg twice":                   {forge(t, `{"alg":"ES256","kid":"`+key.KeyID+`","alg":"none"}`, claims, notSigned), JWTMalformed},
		"kid of a wrong type":         {forge(t, `{"alg":"ES256","kid":{}}`, claims, notSigned), JWTMalformed},
		"crit":                        {authntest.Sign(key, claims, map[jose.HeaderKey]any{"crit": []string{"exp"}}), JWTMalformed},
		"another typ":                 {authntest.Sign(key, claims, map[jose.HeaderKey]any{"typ": "logout+jwt"}), JWTMalformed},
		"two signatures":              {jsonForm, JWTMalformed},
		"an encrypted token":          {jwe, JWTMalformed},
		"a fourth part":               {good + "." + signature, JWTMalformed},
		"whitespace":                  {parts[0] + "." + parts[1] + ".\n" + signature, JWTMalformed},
		"a second text of it":         {good[:len(good)-1] + nextDigit(good[len(good)-1]), JWTMalformed},
		"claims twice":                {authntest.SignText(key, add(t, claims, `"sub":"root"`), nil), JWTMalformed},
		"aud in another spelling":     {authntest.SignText(key, add(t, claims, `"AUD":"other"`), nil), JWTMalformed},
		"claims that are a list":      {authntest.SignText(key, []byte(`[]`), nil), JWTMalformed},
		"claims with a tail":          {authntest.SignText(key, []byte(`{"iss":"`+testURL+`"}{}`), nil), JWTMalformed},
		"changed claims":              {parts[0] + "." + encodeJSON(t, goodClaims(i, map[string]any{"sub": "root"})) + "." + signature, JWTSignature},
		"an API token with dots":      {"qrt.a.b", JWTMalformed},
		"nothing":                     {"", JWTMalformed},
		"larger than any bound":       {strings.Repeat("a.", 1<<20), TooLarge},
		"embedded jwk of an attacker": {embedKey(t, attacker, claims), JWTKeyUnknown},
	}
	for name, test := range tests {
		_, err := v.Verify(t.Context(), test.raw)
		if got, _ := ReasonOf(err); got != test.want {
			t.Errorf("%s: reason %q (%v), want %q", name, got, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), signature) || strings.Contains(err.Error(), parts[1])) {
			t.Errorf("%s: the error repeats the token: %v", name, err)
		}
	}
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Errorf("the good token: %v", err)
	}
}

func withID(key jose.JSONWebKey, id string) jose.JSONWebKey {
	key.KeyID = id
	return key
}

// nextDigit returns a base64 digit that differs only in bits that a decoder may ignore.
func nextDigit(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return digits[strings.IndexByte(digits, c)|1:][:1]
}

func add(t testing.TB, claims map[string]any, member string) []byte {
	t.Helper()
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.TrimSuffix(string(text), "}") + "," + member + "}")
}

func embedKey(t testing.TB, key jose.JSONWebKey, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key.Key},
		&jose.SignerOptions{EmbedJWK: true, ExtraHeaders: map[jose.HeaderKey]any{"kid": "embedded"}})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestHeadersThatNameKeysAreIgnored: a good token may have jku and x5u, but nothing is read from there.
func TestHeadersThatNameKeysAreIgnored(t *testing.T) {
	t.Parallel()
	i := authntest.Start(t)
	reads := make(chan string, 100)
	trap := authntest.Start(t)
	trap.ServeKeysWith(func(_ http.ResponseWriter, r *http.Request) { reads <- r.URL.Path })
	v := NewJWTVerifier(JWTOptions{})
	defer v.Close()
	if err := v.Configure([]Issuer{testIssuer(i)}); err != nil {
		t.Fatal(err)
	}
	headers := map[jose.HeaderKey]any{
		"jku": trap.URL + authntest.KeysPath, "x5u": trap.URL + authntest.KeysPath, "x5t": "AAAA",
	}
	if _, err := v.Verify(t.Context(), authntest.Sign(i.SigningKey(), goodClaims(i, nil), headers)); err != nil {
		t.Errorf("a good token with more headers: %v", err)
	}
	_, err := v.Verify(t.Context(), authntest.Sign(withID(trap.SigningKey(), "trap"), goodClaims(i, nil), headers))
	wantReason(t, err, JWTKeyUnknown)
	if len(reads) > 0 {
		t.Errorf("keys were read from %s", <-reads)
	}
}

// TestIssuersDoNotVouchForEachOther: a token that names one issuer and is signed by another one is refused.
func TestIssuersDoNotVouchForEachOther(t *testing.T) {
	t.Parallel()
	a, b := authntest.Start(t), authntest.Start(t)
	configA, configB := testIssuer(a), testIssuer(b)
	configB.Name = "other"
	v := NewJWTVerifier(JWTOptions{})
	defer v.Close()
	if err := v.Configure([]Issuer{configA, configB}); err != nil {
		t.Fatal(err)
	}
	if identity, err := v.Verify(t.Context(), b.Sign(goodClaims(b, nil))); err != nil || identity.User != "other/someone" {
		t.Errorf("%+v, %v", identity, err)
	}
	_, err := v.Verify(t.Context(), b.Sign(goodClaims(a, nil)))
	wantReason(t, err, JWTSignature) // both have a key with the same id
}
