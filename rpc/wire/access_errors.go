package wire

import (
	"strings"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// accessCodes maps the refusals of package access to codes.
var accessCodes = map[access.ErrorKind]connect.Code{
	access.Invalid:           connect.CodeInvalidArgument,
	access.NotFound:          connect.CodeNotFound,
	access.AlreadyExists:     connect.CodeAlreadyExists,
	access.InUse:             connect.CodeFailedPrecondition,
	access.Full:              connect.CodeResourceExhausted,
	access.Conflict:          connect.CodeFailedPrecondition,
	access.LastAdministrator: connect.CodeFailedPrecondition,
	access.Unauthenticated:   connect.CodeUnauthenticated,
}

// AccessError returns the error for a refusal of package access, with the field as the API names it.
func AccessError(e *access.Error) *connect.Error {
	code, known := accessCodes[e.Kind]
	if !known {
		code = connect.CodeInternal
	}
	named := *e
	named.Field = accessField(e.Field)
	return NewProblem(code, named.Error(), &quoratev1.Problem{
		Reason: e.Kind.String(), Field: shortenText(named.Field, maxErrorField), NotApplied: true,
	})
}

// UnauthenticatedError refuses a call of a caller without an identity.
func UnauthenticatedError(text string) *connect.Error {
	return AccessError(&access.Error{Kind: access.Unauthenticated, Text: text})
}

// accessFields are the fields of package access, which are named as in manifests, that the API names otherwise.
var accessFields = map[string]string{ //nolint:gosec // names of fields, not secrets
	"max-priority": "max_priority", "hold-as": "hold_as", "keys-url": "keys_url", "keys-file": "keys_file",
	"max-age": "max_age_ms", "token-life": "token_life_ms", "issued-before": "issue_cutoff_at", "ends": "ends_at",
	"claim-rules": "claim_rules",
}

func accessField(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		if renamed, other := accessFields[part]; other {
			parts[i] = renamed
		}
	}
	return strings.Join(parts, ".")
}

// requestFields are the fields of commands that requests of AccessService name otherwise.
var requestFields = map[string]string{
	"token.ends": "life_ms", "ceiling": "verbs", "old": "id", "overlap": "overlap_ms", "key": "name",
}

// AccessRefusalError returns the error for a change of access that the ledger refused, with the field as the requests
// of AccessService name it.
func AccessRefusalError(e *quota.Error) *connect.Error {
	named := *e
	if renamed, other := requestFields[e.Field]; other {
		named.Field = renamed
	}
	if index, isGroup := strings.CutPrefix(named.Field, "groups["); isGroup { // of UpdateAccount
		named.Field = "groups.names[" + index
	}
	named.Field = accessField(named.Field)
	return RefusalError(&named)
}

// invalidAccess converts a refusal of package access. The path of its field is put below the field of the request.
func invalidAccess(field string, e *access.Error) error {
	text := e.Text
	if e.Allowed != "" {
		text += "; " + e.Allowed
	}
	return &quota.Error{Kind: quota.Invalid, Field: joinFields(field, accessField(e.Field)), Text: text}
}

// joinFields takes empty paths and fields too.
func joinFields(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}
