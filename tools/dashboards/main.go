// Command dashboards writes the dashboards for Grafana in deploy/grafana: cluster.json, ledger.json and leases.json.
// The tables of panels are in cluster.go, ledger.go and leases.go; the form that Grafana wants is made in grafana.go.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	if err := writeAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeAll(folder string) error {
	for name, board := range map[string]board{
		"cluster": clusterBoard, "ledger": ledgerBoard, "leases": leasesBoard,
	} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(board.dashboard(name)); err != nil {
			return fmt.Errorf("encoding the dashboard %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".json"), text.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}
