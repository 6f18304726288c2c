package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Page tokens are opaque to callers. The first byte names the list, so that a token of one list is not taken for
// another.
const (
	allocationToken = 'a'
	usageToken      = 'u'
	fullestToken    = 'f'
	principalToken  = 'p'
	itemToken       = 'i'
	WaitingToken    = 'w'
	accountToken    = 'c'
)

// Page sizes when the caller names none.
const (
	DefaultAllocationPage = 100
	DefaultUsagePage      = 1000
	DefaultRevisionPage   = 20
	DefaultEventPage      = 100
	DefaultPrincipalPage  = 100
	DefaultItemPage       = 100
	DefaultWaitingPage    = 100
	DefaultAccountPage    = 1000
	DefaultAuditPage      = 100
)

// PageSize is the size of a page, or the default if the caller names none.
func PageSize(asked int32, byDefault int) int {
	if asked <= 0 {
		return byDefault
	}
	return int(asked)
}

// MakeToken makes a page token of a list.
func MakeToken(kind byte, content []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{kind}, content...))
}

func openToken(kind byte, token string) ([]byte, error) {
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(content) == 0 || content[0] != kind {
		return nil, invalidPageToken(token)
	}
	return content[1:], nil
}

func invalidPageToken(token string) error {
	return InvalidField("page_token", "%q is not a page token of this list; begin again without one", token)
}

// AllocationPageToken continues after a fence; 0 is the last page.
func AllocationPageToken(after uint64) string {
	if after == 0 {
		return ""
	}
	return MakeToken(allocationToken, binary.AppendUvarint(nil, after))
}

// OpenAllocationToken reads a token of AllocationPageToken.
func OpenAllocationToken(token string) (uint64, error) {
	if token == "" {
		return 0, nil
	}
	content, err := openToken(allocationToken, token)
	if err != nil {
		return 0, err
	}
	after, n := binary.Uvarint(content)
	if n <= 0 || n != len(content) {
		return 0, invalidPageToken(token)
	}
	return after, nil
}

// UsagePageToken continues after a node, in a list with the fullest first also after its share; nil is the last page.
func UsagePageToken(after *quota.UsagePosition, fullestFirst bool) string {
	switch {
	case after == nil:
		return ""
	case !fullestFirst:
		return MakeToken(usageToken, []byte(after.Path))
	}
	content := binary.AppendUvarint(nil, uint64(after.Share.Used))
	content = binary.AppendUvarint(content, uint64(after.Share.Limit))
	return MakeToken(fullestToken, append(content, after.Path...))
}

// OpenUsageToken reads a token of UsagePageToken of the same order.
func OpenUsageToken(token string, fullestFirst bool) (*quota.UsagePosition, error) {
	if token == "" {
		return nil, nil //nolint:nilnil // the first page
	}
	if !fullestFirst {
		content, err := openToken(usageToken, token)
		if err != nil {
			return nil, err
		}
		return &quota.UsagePosition{Path: string(content)}, nil
	}
	content, err := openToken(fullestToken, token)
	if err != nil {
		return nil, err
	}
	used, n := binary.Uvarint(content)
	if n <= 0 || used > math.MaxInt64 {
		return nil, invalidPageToken(token)
	}
	limit, m := binary.Uvarint(content[n:])
	if m <= 0 || limit > math.MaxInt64 {
		return nil, invalidPageToken(token)
	}
	share := quota.Share{Used: quota.Amount(used), Limit: quota.Amount(limit)}
	return &quota.UsagePosition{Path: string(content[n+m:]), Share: share}, nil
}

// PrincipalPageToken continues after a name; there is more only after a page that has one.
func PrincipalPageToken(page []quota.PrincipalUsage, more bool) string {
	if !more || len(page) == 0 {
		return ""
	}
	return MakeToken(principalToken, []byte(page[len(page)-1].Name))
}

// OpenPrincipalToken reads a token of PrincipalPageToken.
func OpenPrincipalToken(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	content, err := openToken(principalToken, token)
	return string(content), err
}

// ItemPageToken continues after an item; nil is the last page.
func ItemPageToken(after *quota.ItemName) string {
	if after == nil {
		return ""
	}
	return MakeToken(itemToken, []byte(after.Resource+"\x00"+after.Name))
}

// OpenItemToken reads a token of ItemPageToken.
func OpenItemToken(token, tree string) (*quota.ItemName, error) {
	if token == "" {
		return nil, nil //nolint:nilnil // the first page
	}
	content, err := openToken(itemToken, token)
	if err != nil {
		return nil, err
	}
	resource, name, both := strings.Cut(string(content), "\x00")
	if !both {
		return nil, invalidPageToken(token)
	}
	return &quota.ItemName{Tree: tree, Resource: resource, Name: name}, nil
}

// WaitingPageToken continues after a place in the queue; nil is the last page.
func WaitingPageToken(after *quota.QueueTurn) string {
	if after == nil {
		return ""
	}
	return MakeToken(WaitingToken, binary.AppendUvarint(binary.AppendVarint(nil, after.Priority), after.Arrival))
}

// OpenWaitingToken reads a token of WaitingPageToken.
func OpenWaitingToken(token string) (*quota.QueueTurn, error) {
	if token == "" {
		return nil, nil //nolint:nilnil // the first page
	}
	content, err := openToken(WaitingToken, token)
	if err != nil {
		return nil, err
	}
	priority, n := binary.Varint(content)
	if n <= 0 {
		return nil, invalidPageToken(token)
	}
	arrival, m := binary.Uvarint(content[n:])
	if m <= 0 || n+m != len(content) {
		return nil, invalidPageToken(token)
	}
	return &quota.QueueTurn{Priority: priority, Arrival: arrival}, nil
}
