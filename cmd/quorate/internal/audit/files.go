package audit

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	records "github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/rpc/wire"
)

// readFiles reads the records of files that match, of one server or of several, in the order of time. A record of the
// ledger is in the files of all servers, and shown once. Without --calls and --denied the records of both chains are
// shown.
func (o *listOptions) readFiles(
	paths []string, request *adminv1.ListRecordsRequest, all *adminv1.ListRecordsResponse,
) error {
	var found merged
	for _, path := range oldestFirst(paths) {
		matching, err := o.readFile(path, request)
		if err != nil {
			return err
		}
		found.add(matching)
	}
	for _, r := range found.inOrder() {
		all.Records = append(all.Records, wire.FromAuditRecord(r))
	}
	o.keepNewest(all)
	return nil
}

// readFile reads the records of one file that match; with --limit not many more than that, the newest.
func (o *listOptions) readFile(path string, request *adminv1.ListRecordsRequest) ([]*records.Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	var list []*records.Record
	err = records.ReadLines(file, func(number int, line []byte) error {
		r, err := records.Decode(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if (o.calls && r.Chain != records.Server) || !wire.MatchesAudit(request, &r) {
			return nil
		}
		if list = append(list, &r); o.limit > 0 && len(list) > 2*o.limit {
			list = slices.Delete(list, 0, len(list)-o.limit)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// merged are the records of several files.
type merged struct {
	list []placedRecord
	// shared counts the records that all servers have, of the file that has most of them: those of the ledger, and what
	// has happened to allocations.
	shared map[string]int
}

// placedRecord has the time by which a record is placed. It never falls within a file, so that the records of a chain
// stay in their order although the clocks of its writers differ.
type placedRecord struct {
	*records.Record

	at int64
}

// add adds the records of one file, in its order, without those that earlier files have too.
func (m *merged) add(list []*records.Record) {
	at, own := int64(0), map[string]int{}
	for _, r := range list {
		at = max(at, r.WallMs)
		if key := sharedKey(r); key != "" {
			if own[key]++; own[key] <= m.shared[key] {
				continue
			}
		}
		m.list = append(m.list, placedRecord{r, at})
	}
	if m.shared == nil {
		m.shared = map[string]int{}
	}
	for key, count := range own {
		m.shared[key] = max(m.shared[key], count)
	}
}

// sharedKey is what a record has in common with those of other servers about the same; empty for what only one has.
func sharedKey(r *records.Record) string {
	switch {
	case r.Chain == records.Ledger:
		return r.Hash.String()
	case r.Kind == records.Hold:
		return fmt.Sprint(r.Index, r.TimeMs, r.Action, r.Detail)
	}
	return ""
}

func (m *merged) inOrder() []*records.Record {
	slices.SortStableFunc(m.list, func(a, b placedRecord) int { return cmp.Compare(a.at, b.at) })
	list := make([]*records.Record, len(m.list))
	for i, r := range m.list {
		list[i] = r.Record
	}
	return list
}
