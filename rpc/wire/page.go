package wire

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"iter"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/quota"
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
	DefaultAuditPage      = 100
	// DefaultShortPage is for lists that are short, most of which have at most one such page.
	DefaultShortPage = 1000
)

// PagedRequest is a request of a list.
type PagedRequest interface {
	proto.Message

	GetPageSize() int32
	GetPageToken() string
}

// Page is the part of a list that a request asks for. A page token is opaque to callers: a digest of what the request
// selects, which binds the token to the list, its filters and its order, and the position of the last record before the
// page. A position is a key of the record and not a count, so that a change of the list between two pages neither
// repeats nor omits a record that stays.
type Page struct {
	// Max is how many records the page has at most.
	Max int

	token     string
	selection []byte
	position  []byte
}

// OpenPage reads the page that a request asks for, of defaultSize if the request names no size. It refuses a token of
// another list, or of a request with other filters. What the list depends on beside the request is in bounds.
func OpenPage(r PagedRequest, defaultSize int, bounds ...string) (Page, error) {
	page := Page{Max: int(r.GetPageSize()), token: r.GetPageToken(), selection: selectionDigest(r, bounds)}
	if page.Max <= 0 {
		page.Max = defaultSize
	}
	if page.IsFirst() {
		return page, nil
	}
	content, err := base64.RawURLEncoding.Strict().DecodeString(page.token)
	position, isOwn := strings.CutPrefix(string(content), string(page.selection))
	if err != nil || !isOwn {
		return Page{}, page.invalidToken()
	}
	page.position = []byte(position)
	return page, nil
}

// selectionDigest is a digest of the request apart from what may change between two pages of a list.
func selectionDigest(r PagedRequest, bounds []string) []byte {
	selection := proto.Clone(r)
	fields := selection.ProtoReflect().Descriptor().Fields()
	for _, name := range []protoreflect.Name{"page_size", "page_token", "read"} {
		if field := fields.ByName(name); field != nil {
			selection.ProtoReflect().Clear(field)
		}
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(selection)
	if err != nil {
		panic(err) // it was unmarshalled
	}
	digest := fnv.New64a()
	for _, part := range append(bounds, string(selection.ProtoReflect().Descriptor().FullName()), string(content)) {
		_, _ = digest.Write(append([]byte(part), 0))
	}
	return digest.Sum(nil)
}

func (p Page) invalidToken() error {
	return InvalidField("page_token", "%q is not a page token of this list with these filters; begin again without one",
		p.token)
}

// IsFirst reports whether the page is the first one of its list.
func (p Page) IsFirst() bool { return p.token == "" }

// TokenAfter is the token of the page after a position.
func (p Page) TokenAfter(position []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(p.selection[:len(p.selection):len(p.selection)], position...))
}

// Number is the position in a list that is ordered by numbers: the page continues after it. It is 0 on the first page.
func (p Page) Number() (uint64, error) {
	if p.IsFirst() {
		return 0, nil
	}
	number, n := binary.Uvarint(p.position)
	if n <= 0 || n != len(p.position) {
		return 0, p.invalidToken()
	}
	return number, nil
}

// TokenAfterNumber is the token of the page after a number; empty after 0, which is the last page.
func (p Page) TokenAfterNumber(number uint64) string {
	if number == 0 {
		return ""
	}
	return p.TokenAfter(binary.AppendUvarint(nil, number))
}

// Name is the position in a list that is ordered by names: the page continues after it. It is empty on the first page.
func (p Page) Name() string { return string(p.position) }

// TokenAfterName is the token of the page after a name; empty after an empty one, which is the last page.
func (p Page) TokenAfterName(name string) string {
	if name == "" {
		return ""
	}
	return p.TokenAfter([]byte(name))
}

// NumberKey is a number as the part of a key, in whose order numbers are.
func NumberKey(number uint64) string { return string(binary.BigEndian.AppendUint64(nil, number)) }

// PathKey is a path as the end of a key, in whose order parents are before their children, and siblings by name.
func PathKey(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// CutPage returns the records of a page and the token of the next one, which is empty on the last page. The list is in
// the order of its keys, and no two records have the same.
func CutPage[T any](p Page, list iter.Seq[T], key func(T) string) (records []T, next string) {
	last := ""
	for record := range list {
		at := key(record)
		if !p.IsFirst() && at <= string(p.position) {
			continue
		}
		if len(records) == p.Max {
			return records, p.TokenAfter([]byte(last))
		}
		records, last = append(records, record), at
	}
	return records, ""
}

// UsagePosition is the position in a list of nodes: a path, in a list with the fullest first also the share. It is nil
// on the first page.
func (p Page) UsagePosition(fullestFirst bool) (*quota.UsagePosition, error) {
	if p.IsFirst() {
		return nil, nil //nolint:nilnil // the first page
	}
	if !fullestFirst {
		return &quota.UsagePosition{Path: p.Name()}, nil
	}
	used, n := binary.Uvarint(p.position)
	if n <= 0 || used > math.MaxInt64 {
		return nil, p.invalidToken()
	}
	limit, m := binary.Uvarint(p.position[n:])
	if m <= 0 || limit > math.MaxInt64 {
		return nil, p.invalidToken()
	}
	share := quota.Share{Used: quota.Amount(used), Limit: quota.Amount(limit)}
	return &quota.UsagePosition{Path: string(p.position[n+m:]), Share: share}, nil
}

// TokenAfterUsage is the token of the page after a node; empty for nil, which is the last page.
func (p Page) TokenAfterUsage(after *quota.UsagePosition, fullestFirst bool) string {
	switch {
	case after == nil:
		return ""
	case !fullestFirst:
		return p.TokenAfter([]byte(after.Path))
	}
	content := binary.AppendUvarint(nil, uint64(after.Share.Used))
	content = binary.AppendUvarint(content, uint64(after.Share.Limit))
	return p.TokenAfter(append(content, after.Path...))
}

// ItemPosition is the position in a list of items of a tree; nil on the first page.
func (p Page) ItemPosition(tree string) (*quota.ItemName, error) {
	if p.IsFirst() {
		return nil, nil //nolint:nilnil // the first page
	}
	resource, name, both := strings.Cut(p.Name(), "\x00")
	if !both {
		return nil, p.invalidToken()
	}
	return &quota.ItemName{Tree: tree, Resource: resource, Name: name}, nil
}

// TokenAfterItem is the token of the page after an item; empty for nil, which is the last page.
func (p Page) TokenAfterItem(after *quota.ItemName) string {
	if after == nil {
		return ""
	}
	return p.TokenAfter([]byte(after.Resource + "\x00" + after.Name))
}

// QueuePosition is the position in the queue; nil on the first page.
func (p Page) QueuePosition() (*quota.QueueTurn, error) {
	if p.IsFirst() {
		return nil, nil //nolint:nilnil // the first page
	}
	priority, n := binary.Varint(p.position)
	if n <= 0 {
		return nil, p.invalidToken()
	}
	arrival, m := binary.Uvarint(p.position[n:])
	if m <= 0 || n+m != len(p.position) {
		return nil, p.invalidToken()
	}
	return &quota.QueueTurn{Priority: priority, Arrival: arrival}, nil
}

// TokenAfterQueued is the token of the page after a place in the queue; empty for nil, which is the last page.
func (p Page) TokenAfterQueued(after *quota.QueueTurn) string {
	if after == nil {
		return ""
	}
	return p.TokenAfter(binary.AppendUvarint(binary.AppendVarint(nil, after.Priority), after.Arrival))
}
