package scenarios

import (
	"bytes"
	"os"
	"testing"
)

// TestPackagesHaveTheLicence compares the copies of the licence that packages take from their own folders.
func TestPackagesHaveTheLicence(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"../python", "../typescript"} {
		if got, err := os.ReadFile(folder + "/LICENSE"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s/LICENSE differs from LICENSE: copy it (%v)", folder, err)
		}
	}
}
