package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/servertest"
)

const root = "../.."

// Set by TestMain: the script that judges accessibility, and where screenshots go.
var axe, pictures string

func TestMain(m *testing.M) { os.Exit(prepareAndRun(m)) }

func prepareAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quorate-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans up what is left
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	end, err := startBrowser()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer end()
	return servertest.Main(m)
}

// prepare reads the script, and makes the folder of the pictures unless QUORATE_PICTURES names one.
func prepare(dir string) error {
	script, err := os.ReadFile(filepath.Join(root, "web/ui/node_modules/axe-core/axe.min.js"))
	if err != nil {
		return fmt.Errorf("%w: run make browser first", err)
	}
	axe = string(script)
	pictures = os.Getenv("QUORATE_PICTURES")
	if pictures == "" {
		pictures = filepath.Join(dir, "pictures")
	}
	return os.MkdirAll(pictures, 0o755)
}

// exhaustive reports whether the long runs are wanted.
func exhaustive() bool { return os.Getenv("QUORATE_VERIFY") == "1" }
