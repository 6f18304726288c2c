package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The most bytes of a picture and of all, so that a clone stays small.
const (
	mostPicture  = 60_000
	mostPictures = 700_000
)

// TestPictures checks that each picture of the documentation is shown, says what is seen on it, and is small. TestLinks
// checks that each that is shown exists.
func TestPictures(t *testing.T) {
	shown := map[string]bool{}
	for path, text := range pages(t) {
		for _, m := range regexp.MustCompile(`!\[([^]]*)\]\(([^)]*)\)`).FindAllStringSubmatch(text, -1) {
			shown[filepath.Join(filepath.Dir(path), m[2])] = true
			if m[1] == "" {
				t.Errorf("%s shows %s without words for those who do not see it", path, m[2])
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/pictures/*"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no pictures", err)
	}
	sum := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
		name := "docs/pictures/" + filepath.Base(file)
		if info.Size() > mostPicture {
			t.Errorf("%s has %d bytes, %d are allowed", name, info.Size(), mostPicture)
		}
		if !shown[name] {
			t.Errorf("no page shows %s", name)
		}
	}
	if sum > mostPictures {
		t.Errorf("the pictures have %d bytes, %d are allowed", sum, mostPictures)
	}
}
