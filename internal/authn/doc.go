// Package authn finds out who made a call. It verifies three kinds of credentials: API tokens of accounts, JSON Web
// Tokens of configured issuers (OIDC), and client certificates. What a user may do is not its business.
//
// Start with [Authenticator], which takes the Authorization header and the certificates of a connection and answers an
// [Identity] or a [*CredentialError]. Below it are [Token] and [VerifyToken], [JWTVerifier], and
// [CertificateVerifier], which can be used on their own.
//
// User names begin with the source that vouches for them, so that no source can name users of another one:
//
//	account/<name>    the account that an API token belongs to
//	<issuer>/<name>   a user of a JWT issuer; <issuer> is the configured name, <name> the value of a claim
//	cert/<name>       the holder of a client certificate
//
// Errors and log values of this package never contain a secret: neither a token, nor a part or a hash of one, nor the
// claims of a JWT. The exception is [JWTVerifier.Explain], which shows claims to an operator who has the token.
package authn
