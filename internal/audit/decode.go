package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// lineRecord is the JSON of a line.
type lineRecord struct {
	Chain       string       `json:"chain"`
	Number      uint64       `json:"number"`
	Index       uint64       `json:"index"`
	TimeMs      int64        `json:"time_ms"`
	Wall        string       `json:"wall"`
	Server      string       `json:"server"`
	Kind        string       `json:"kind"`
	Action      string       `json:"action"`
	ActorKind   string       `json:"actor_kind"`
	User        string       `json:"user"`
	Credential  string       `json:"credential"`
	Via         string       `json:"via"`
	Address     string       `json:"address"`
	Outcome     string       `json:"outcome"`
	Detail      string       `json:"detail"`
	Reason      string       `json:"reason"`
	Call        string       `json:"call"`
	RequestID   string       `json:"request_id"`
	Revision    uint64       `json:"revision"`
	Changes     []lineChange `json:"changes"`
	ChangeCount uint64       `json:"change_count"`
	Count       uint64       `json:"count"`
	From        uint64       `json:"from"`
	To          uint64       `json:"to"`
	Previous    string       `json:"previous"`
	Hash        string       `json:"hash"`
}

type lineChange struct {
	Tree   string `json:"tree"`
	Node   string `json:"node"`
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Decode reads the line of a record. It accepts only what Encode writes, byte for byte, so the hash of the record is
// right; whether Previous is the hash of the record before, only a [Verifier] knows.
func Decode(line []byte) (Record, error) {
	if len(line) > MaxLine {
		return Record{}, fmt.Errorf("the line has %d bytes; a record has at most %d", len(line), MaxLine)
	}
	r, err := parseLine(line)
	if err != nil {
		return Record{}, err
	}
	again, canonical := Encode(r, r.Previous)
	switch {
	case r.Chain != Ledger && r.Chain != Server:
		return Record{}, fmt.Errorf("the record is of the chain %q; there are %q and %q", Clip(string(r.Chain)), Ledger,
			Server)
	case r.Number == 0:
		return Record{}, errors.New("the record has no number")
	case again.Hash != r.Hash:
		return Record{}, fmt.Errorf("the record %d of the chain %s was changed: its hash is not that of its content",
			r.Number, r.Chain)
	case !bytes.Equal(canonical, line):
		return Record{}, errors.New("the line is not in the form in which records are written")
	}
	return r, nil
}

func parseLine(line []byte) (Record, error) {
	var l lineRecord
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&l); err != nil {
		return Record{}, fmt.Errorf("the line is not the JSON of a record: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("something follows the record in its line")
	}
	wall, err := time.Parse(wallLayout, l.Wall)
	if err != nil {
		return Record{}, errors.New("the wall time is not a time such as 2026-01-02T15:04:05.000Z")
	}
	r := Record{
		Chain: ChainName(l.Chain), Number: l.Number, Index: l.Index, TimeMs: l.TimeMs, WallMs: wall.UnixMilli(),
		Server: l.Server, Kind: Kind(l.Kind), Action: l.Action,
		Actor:   Actor{Kind: l.ActorKind, User: l.User, Credential: l.Credential, Via: l.Via},
		Address: l.Address, Outcome: Outcome(l.Outcome), Detail: l.Detail, Reason: l.Reason, Call: l.Call,
		RequestID: l.RequestID, Revision: l.Revision, ChangeCount: l.ChangeCount, Count: l.Count, From: l.From, To: l.To,
	}
	for _, c := range l.Changes {
		r.Changes = append(r.Changes, Change(c))
	}
	previous, err := ParseHash(l.Previous)
	if err != nil {
		return Record{}, fmt.Errorf("previous: %w", err)
	}
	hash, err := ParseHash(l.Hash)
	if err != nil {
		return Record{}, fmt.Errorf("hash: %w", err)
	}
	r.Previous, r.Hash = previous, hash
	return r, nil
}
