package gossip

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/memberlist"

	"github.com/quorate/quorate/cluster"
)

// meta is the metadata that a node announces with every alive message. Its field names are short because it must fit
// into memberlist.MetaMaxSize bytes. Readers ignore unknown fields, so later versions may add some.
type meta struct {
	Cluster  string `json:"c"`
	RaftAddr string `json:"r"`
	HTTPAddr string `json:"h"`
	Version  string `json:"v"`
	Level    uint32 `json:"l"`
	Expect   int    `json:"e,omitempty"`
	HasState bool   `json:"s,omitempty"`
	Intent   string `json:"i,omitempty"`
}

func encodeMeta(clusterName string, p cluster.Peer) ([]byte, error) {
	data, err := json.Marshal(meta{
		Cluster: clusterName, RaftAddr: p.RaftAddr, HTTPAddr: p.HTTPAddr, Version: p.Version, Level: p.FeatureLevel,
		Expect: p.Expect, HasState: p.HasState, Intent: p.Intent,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the metadata of node %s: %w", p.ID, err)
	}
	if len(data) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf(
			"the metadata of node %s has %d bytes, and gossip carries %d: use a shorter cluster name, "+
				"shorter addresses or a shorter version", p.ID, len(data), memberlist.MetaMaxSize)
	}
	return data, nil
}

// decodeMeta refuses nodes of another cluster, and nodes that are not Quorate.
func decodeMeta(clusterName, id string, data []byte) (cluster.Peer, error) {
	var m meta
	if err := json.Unmarshal(data, &m); err != nil {
		return cluster.Peer{}, fmt.Errorf("%s is not a node of Quorate: %w", id, err)
	}
	if m.Cluster != clusterName {
		return cluster.Peer{}, fmt.Errorf("%s is of cluster %q, not of %q; check its join list and its cluster name",
			id, m.Cluster, clusterName)
	}
	if err := m.validateMeta(); err != nil {
		return cluster.Peer{}, fmt.Errorf("%s is not a node of Quorate: %w", id, err)
	}
	return cluster.Peer{
		ID: id, RaftAddr: m.RaftAddr, HTTPAddr: m.HTTPAddr, Version: m.Version, FeatureLevel: m.Level,
		Expect: m.Expect, HasState: m.HasState, Intent: m.Intent,
	}, nil
}

// validateMeta returns an error for metadata that no node announces. The fields are shown to operators, so they must be
// printable even if they are forged.
func (m meta) validateMeta() error {
	err := errors.Join(cluster.CheckAdvertisedAddr("its raft address", m.RaftAddr),
		cluster.CheckAdvertisedAddr("its API address", m.HTTPAddr))
	for _, text := range []string{m.RaftAddr, m.HTTPAddr, m.Version, m.Intent} {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			err = errors.Join(err, fmt.Errorf("%q has characters that cannot be printed", text))
		}
	}
	return err
}
