package handlers

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
)

// Upkeep is what the server around a node must renew or repeat. Zero values stand for what it does not have.
type Upkeep struct {
	// CertificateEnds is when its certificate ends, AuthorityEnds when the first authority that it trusts does.
	CertificateEnds, AuthorityEnds time.Time
	// BackupEvery is the time between its periodic backups, LastBackup when the last one succeeded since its start.
	BackupEvery time.Duration
	LastBackup  time.Time
}

func (u Upkeep) addTo(standing *peerv1.GetStandingResponse) {
	standing.CertificateEndsMs, standing.AuthorityEndsMs = unixMilli(u.CertificateEnds), unixMilli(u.AuthorityEnds)
	standing.BackupEveryMs, standing.LastBackupMs = u.BackupEvery.Milliseconds(), unixMilli(u.LastBackup)
}

func fillUpkeep(shown *adminv1.Member, standing *peerv1.GetStandingResponse) {
	shown.CertificateEndsAt = timestampOrNil(standing.GetCertificateEndsMs())
	shown.AuthorityEndsAt = timestampOrNil(standing.GetAuthorityEndsMs())
	shown.LastBackupAt = timestampOrNil(standing.GetLastBackupMs())
	if every := standing.GetBackupEveryMs(); every > 0 {
		shown.BackupIntervalMs = new(every)
	}
}

// unixMilli is 0 for the zero time.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func timestampOrNil(ms int64) *timestamppb.Timestamp {
	if ms == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMilli(ms))
}
