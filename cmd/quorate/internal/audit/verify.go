package audit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	records "github.com/quorate/quorate/internal/audit"
)

// verified is the output of verify.
type verified struct {
	Files   []string `json:"files"`
	Records uint64   `json:"records"`
	Ledger  chain    `json:"ledger"`
	Server  chain    `json:"server"`
	// Missing are the records of the ledger that the files declare as gaps.
	Missing uint64 `json:"missing"`
}

// chain is the part of a chain that is in the files.
type chain struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Hash  string `json:"hash"`
}

func newVerifyCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check that no record of audit files was changed, removed or inserted",
		Long: `Check that no record of audit files was changed, removed or inserted. Give the files of one server
together; FILE.2 is read before FILE.1, and that before FILE. No server is asked.

The records behind the last one, and those of files that are not given, cannot be missed: compare the last number and
hash of the ledger with those of another server's file, or of "quorate audit list -o json". Both must be equal, because
every server has the same records of the ledger.`,
		Example: `  quorate audit verify /var/log/quorate/audit.log*
  quorate audit verify audit.log -o json | jq .ledger.hash`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := verifyFiles(args)
			if err != nil {
				return err
			}
			return c.PrintValue(found, func(p *cli.Page) error { return p.Table(verifiedRows(found)) })
		},
	}
}

func verifyFiles(paths []string) (verified, error) {
	paths = oldestFirst(paths)
	var v records.Verifier
	for _, path := range paths {
		if err := verifyFile(&v, path); err != nil {
			return verified{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	return verified{
		Files: paths, Records: v.Records, Missing: v.Missing, Ledger: chainOf(v.FirstLedger, v.Ledger),
		Server: chainOf(v.FirstServer, v.Server),
	}, nil
}

func chainOf(first uint64, head records.Head) chain {
	if first == 0 {
		return chain{}
	}
	return chain{First: first, Last: head.Number, Hash: head.Hash.String()}
}

func verifyFile(v *records.Verifier, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return records.ReadLines(file, func(number int, line []byte) error {
		if _, err := v.Add(line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		return nil
	})
}

// oldestFirst sorts the files of one server: FILE.2, FILE.1, FILE.
func oldestFirst(paths []string) []string {
	sorted := slices.Clone(paths)
	slices.SortStableFunc(sorted, func(a, b string) int {
		ofA, ageA := rotation(a)
		ofB, ageB := rotation(b)
		return cmp.Or(strings.Compare(ofA, ofB), cmp.Compare(ageB, ageA))
	})
	return sorted
}

// rotation splits FILE.2 into FILE and 2.
func rotation(path string) (base string, age int) {
	suffix := strings.TrimPrefix(filepath.Ext(path), ".")
	if age, err := strconv.ParseUint(suffix, 10, 16); err == nil && age > 0 {
		return strings.TrimSuffix(path, "."+suffix), int(age)
	}
	return path, 0
}

func verifiedRows(v verified) [][]string {
	return [][]string{
		{"files", strings.Join(v.Files, " ")},
		{"records", strconv.FormatUint(v.Records, 10)},
		{"chain of the ledger", v.Ledger.describe()},
		{"chain of the server", v.Server.describe()},
		{"missing records", strconv.FormatUint(v.Missing, 10)},
	}
}

func (c chain) describe() string {
	if c.First == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d, the last with hash %s", c.First, c.Last, c.Hash)
}
