package authn

import (
	"errors"
	"fmt"
	"time"
)

// Reason says why a credential was refused. Its values are stable, because metrics use them as label values.
type Reason string

// The reasons that concern the request as a whole.
const (
	// NoCredential is the reason of a call without a credential.
	NoCredential Reason = "no_credential" //nolint:gosec // a label, not a secret
	// SeveralCredentials is the reason of a call with more than one.
	SeveralCredentials Reason = "several_credentials"
	// HeaderMalformed is the reason of an Authorization header that cannot be parsed, or that has another scheme.
	HeaderMalformed Reason = "header_malformed"
	// TooLarge is the reason of a credential beyond the bounds.
	TooLarge Reason = "too_large"
	// Throttled is the reason of failures beyond the rate that one address may have.
	Throttled Reason = "throttled"
	// Withdrawn is the reason of a valid credential in the list of refusals of the cluster. This package does not know
	// the list: callers make the error with NewError.
	Withdrawn Reason = "withdrawn"
	// CredentialEnded is the reason of a credential that has ended while a call went on, also for callers of this package.
	CredentialEnded Reason = "credential_ended" //nolint:gosec // a label, not a secret
)

// The reasons that concern API tokens.
const (
	TokenMalformed  Reason = "token_malformed"
	TokenMistyped   Reason = "token_mistyped"   // the check does not match: a typing error
	TokenUnknown    Reason = "token_unknown"    // no token has this id
	TokenMismatched Reason = "token_mismatched" // the id is known, the secret is another one
	// TokenUnverifiable is the reason of an unknown id on a node that could not catch up, or may not so soon again for
	// this address. The token may be valid.
	TokenUnverifiable Reason = "token_unverifiable" //nolint:gosec // a label, not a secret
	TokenExpired      Reason = "token_expired"
	TokenRevoked      Reason = "token_revoked"
	AccountDisabled   Reason = "account_disabled"
)

// The reasons that concern JSON Web Tokens.
const (
	JWTMalformed     Reason = "jwt_malformed"
	JWTAlgorithm     Reason = "jwt_algorithm"
	JWTIssuer        Reason = "jwt_issuer" // no configured issuer has this URL
	JWTAudience      Reason = "jwt_audience"
	JWTTimes         Reason = "jwt_times" // exp or iat is missing, or a time is not a number
	JWTExpired       Reason = "jwt_expired"
	JWTNotYetValid   Reason = "jwt_not_yet_valid" // nbf or iat is in the future
	JWTLifetime      Reason = "jwt_lifetime"      // exp - iat is longer than the issuer's limit
	JWTKeyUnknown    Reason = "jwt_key_unknown"
	JWTSignature     Reason = "jwt_signature"
	JWTRequiredClaim Reason = "jwt_required_claim"
	JWTUser          Reason = "jwt_user" // the claim that names the user is missing or not a valid name
	// KeysUnavailable is the reason of a token that could not be checked, because the keys of its issuer were not yet
	// read, or not for too long. The token may be valid.
	KeysUnavailable Reason = "keys_unavailable"
)

// The reasons that concern client certificates.
const (
	CertificateUntrusted Reason = "certificate_untrusted" // no chain to the authorities
	CertificateExpired   Reason = "certificate_expired"   // not valid now
	CertificateUsage     Reason = "certificate_usage"     // not for use as a client
	CertificateNode      Reason = "certificate_node"      // that of a node
	CertificateRole      Reason = "certificate_role"      // of another cluster, or a role that cannot be parsed
	CertificateUnmapped  Reason = "certificate_unmapped"  // neither a role nor a rule names a user
)

// Reasons returns all reasons why a credential is refused; NoCredential is not one of them.
func Reasons() []Reason {
	return []Reason{
		SeveralCredentials, HeaderMalformed, TooLarge, Throttled, Withdrawn, CredentialEnded,
		TokenMalformed, TokenMistyped, TokenUnknown, TokenMismatched, TokenUnverifiable, TokenExpired, TokenRevoked,
		AccountDisabled,
		JWTMalformed, JWTAlgorithm, JWTIssuer, JWTAudience, JWTTimes, JWTExpired, JWTNotYetValid, JWTLifetime,
		JWTKeyUnknown, JWTSignature, JWTRequiredClaim, JWTUser, KeysUnavailable,
		CertificateUntrusted, CertificateExpired, CertificateUsage, CertificateNode, CertificateRole, CertificateUnmapped,
	}
}

// CredentialError is the error of a credential that was refused. Its text contains no secret and may be told to the
// caller.
type CredentialError struct {
	Reason Reason
	// Issuer is the name of the JWT issuer, if the token names a configured one.
	Issuer string
	// Rule is the rule of the issuer that failed, for example "require repository_owner_id".
	Rule string
	// RetryAfter is how long the address should wait; it is set if the reason is Throttled.
	RetryAfter time.Duration

	text  string
	cause error
}

// Error names the rule that failed and what it asks for.
func (e *CredentialError) Error() string {
	switch {
	case e.Issuer != "" && e.Rule != "":
		return fmt.Sprintf("the token of issuer %s fails the rule %q: %s", e.Issuer, e.Rule, e.text)
	case e.Issuer != "":
		return fmt.Sprintf("the token of issuer %s: %s", e.Issuer, e.text)
	}
	return e.text
}

// Unwrap returns the failure that was throttled, or nil.
func (e *CredentialError) Unwrap() error { return e.cause }

// ReasonOf returns the reason of an error of this package, and false for any other error.
func ReasonOf(err error) (Reason, bool) {
	if refused := (*CredentialError)(nil); errors.As(err, &refused) {
		return refused.Reason, true
	}
	return "", false
}

// NewError returns the error of a credential that the caller of this package refuses for a reason of its own.
func NewError(reason Reason, text string) *CredentialError {
	return &CredentialError{Reason: reason, text: text}
}

func refuse(reason Reason, format string, args ...any) error {
	return &CredentialError{Reason: reason, text: fmt.Sprintf(format, args...)}
}
