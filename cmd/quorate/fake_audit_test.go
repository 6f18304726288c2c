package main

import (
	"context"
	"os"
	"strconv"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/rpc/wire"
)

// ListRecords has the records of testdata/audit.log, the ledger's in pages of two.
func (f *fake) ListRecords(
	ctx context.Context, r *adminv1.ListRecordsRequest,
) (*adminv1.ListRecordsResponse, error) {
	if err := f.mustBeAdmin(ctx, "audit.read"); err != nil {
		return nil, err
	}
	file, err := os.Open("testdata/audit.log")
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	answer := &adminv1.ListRecordsResponse{Read: readInfo(r.GetRead())}
	chain := audit.Ledger
	if r.GetSource() == adminv1.AuditSource_AUDIT_SOURCE_SERVER {
		chain = audit.Server
	}
	shown, _ := strconv.ParseUint(r.GetPageToken(), 10, 64)
	return answer, audit.ReadLines(file, func(_ int, line []byte) error {
		record, err := audit.Decode(line)
		switch {
		case err != nil || record.Chain != chain || record.Number <= shown:
		case chain == audit.Ledger && record.Number > shown+2:
			answer.NextPageToken = strconv.FormatUint(shown+2, 10)
		case wire.MatchesAudit(r, &record):
			answer.Records = append(answer.Records, wire.FromAuditRecord(&record))
		}
		return err
	})
}
