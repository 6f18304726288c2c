package original

import (
	"os/exec"
	"path/filepath"
	"testing"
)

const root = "../../../.."

func play(t *testing.T, url string) {
	t.Helper()
	args := []string{"test", "-count=1", "-run", "^TestExchanges$", "./compat/boskos", "-args", "-at", url}
	if *record {
		file, err := filepath.Abs("../../testdata/exchanges.txt")
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "-record", file)
	}
	command := exec.Command("go", args...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
