package access

// Bounds of lists. All replicas must use the same: they decide what is refused.
const (
	// MaxAccounts bounds the accounts of a book.
	MaxAccounts = 10_000
	// MaxLiveTokens bounds the tokens of an account that are neither revoked nor ended.
	MaxLiveTokens = 8
	// MaxDeadTokens bounds the revoked and ended tokens that a book remembers of an account; beyond it the oldest is
	// forgotten. A forgotten token is as useless as a remembered one, because an unknown id is refused too.
	MaxDeadTokens = 8
	// MaxIssuers bounds the issuers.
	MaxIssuers = 16
	// MaxCertificates bounds the certificate rules.
	MaxCertificates = 1_000
	// MaxRoles bounds the custom roles.
	MaxRoles = 64
	// MaxBindings bounds the bindings of one node, and those of the cluster.
	MaxBindings = 100
	// MaxAllBindings bounds the bindings of all nodes and of the cluster together.
	MaxAllBindings = 50_000
	// MaxSubjects bounds the subjects of one binding.
	MaxSubjects = 100
	// MaxHoldAs bounds the names for whom the subjects of one binding may hold.
	MaxHoldAs = 100
	// MaxRefusals bounds the refusals of a book that have not ended.
	MaxRefusals = 10_000
	// MaxGroups bounds the groups of a caller and of an account.
	MaxGroups = 64
	// MaxClaimRules bounds the rules in one list of an issuer.
	MaxClaimRules = 16
	// MaxClaimValues bounds the values of one rule.
	MaxClaimValues = 64
	// MaxGroupRules bounds the groups of an issuer.
	MaxGroupRules = 64
)

// Maximum lengths of texts, in bytes.
const (
	// MaxSubjectName bounds names of users and groups with their issuer.
	MaxSubjectName = 256
	// MaxName bounds names of accounts, roles, issuers, certificate users and front ends.
	MaxName = 63
	// MaxDescription bounds descriptions and reasons.
	MaxDescription = 1024
	// MaxRequest bounds the id of a call.
	MaxRequest = 128
	// MaxURL bounds URLs and paths of files.
	MaxURL = 1024
	// MaxClaim bounds names and values of claims.
	MaxClaim = 256
)

// Spans of wall time, in milliseconds.
const (
	day int64 = 24 * 60 * 60 * 1000
	// DefaultTokenLife is the life of a token whose creator names no end.
	DefaultTokenLife = 90 * day
	// MaxTokenLife is the longest life of a token; a section may set a shorter one.
	MaxTokenLife = 400 * day
	// DefaultOverlap is how long a rotated token stays valid unless the caller says otherwise.
	DefaultOverlap = day
	// MaxOverlap is the longest overlap.
	MaxOverlap = 7 * day
	// MaxRefusalSpan is the longest time until a refusal ends.
	MaxRefusalSpan = 3660 * day
	// DefaultMaxAge is the longest life of tokens of an issuer that sets none.
	DefaultMaxAge = day / 24
	// LongestMaxAge is the longest life that an issuer may set.
	LongestMaxAge = day
)
