package server

import (
	"fmt"
	"os"
	"strings"

	"github.com/quorate/quorate/cluster/host"
)

// ReadPeers reads a file that lists the members of a cluster, YAML or JSON, strictly:
//
//	peers:
//	  - {id: n1, address: 10.0.0.1:7201}
//	  - {id: n4, address: 10.0.0.4:7201, voter: true}
func ReadPeers(path string) ([]host.Peer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("peers: %w; name a file with the new configuration, see quorate recover --help", err)
	}
	var file struct {
		Peers []host.Peer `yaml:"peers"`
	}
	if _, err := decodeYAML(path, text, &file); err != nil {
		return nil, err
	}
	if err := host.CheckPeers(file.Peers); err != nil {
		return nil, fmt.Errorf("%s: %s", path, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return file.Peers, nil
}
