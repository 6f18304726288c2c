package recurrence

import (
	"archive/zip"
	"bytes"
	_ "embed" // the table
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/quota"
)

// Zones is a table of time zones: the IANA database in one version. The zero value is not usable; [CompiledZones] and
// [OpenZones] return tables. Methods may be called concurrently.
type Zones struct {
	version string
	files   fs.FS
	names   map[string]struct{}
}

// zoneText is the file of a table that has its version and its names. It is the whole table as text, and is what the
// compiled files are made of.
const zoneText = "tzdata.zi"

// maxZoneText and maxZoneFile bound the files of a folder; the largest of release 2026f have 107 and 4 KiB.
const maxZoneText, maxZoneFile = 4 << 20, 1 << 20

//go:generate go run make_zones.go /usr/share/zoneinfo/tzdata.zi

//go:embed zoneinfo.zip
var compiledZones []byte

var openCompiledZones = sync.OnceValue(func() *Zones {
	archive, err := zip.NewReader(bytes.NewReader(compiledZones), int64(len(compiledZones)))
	if err != nil {
		panic(fmt.Sprintf("the compiled table of time zones: %v", err))
	}
	z, err := readZones(archive)
	if err != nil {
		panic(fmt.Sprintf("the compiled table of time zones: %v", err))
	}
	return z
})

// CompiledZones is the table that is part of the program. It does not depend on the machine, so that members which run
// the same program compute the same windows.
func CompiledZones() *Zones { return openCompiledZones() }

// OpenZones reads the table of a folder, such as /usr/share/zoneinfo. It needs the file tzdata.zi of the release there,
// which has the version and the names.
func OpenZones(folder string) (*Zones, error) {
	z, err := readZones(os.DirFS(folder))
	if err != nil {
		return nil, fmt.Errorf("the table of time zones in %s: %w", folder, err)
	}
	return z, nil
}

func readZones(files fs.FS) (*Zones, error) {
	text, err := readBounded(files, zoneText, maxZoneText)
	if err != nil {
		return nil, err
	}
	z := &Zones{files: files, names: map[string]struct{}{}}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "#" && words[1] == "version" && z.version == "":
			z.version = words[2]
		case len(words) > 2 && words[0] == "Z":
			z.names[words[1]] = struct{}{}
		case len(words) == 3 && words[0] == "L":
			z.names[words[2]] = struct{}{}
		}
	}
	if z.version == "" || len(z.version) > quota.MaxName || len(z.names) == 0 {
		return nil, fmt.Errorf("%s has no version and names of time zones as releases of the IANA database have",
			zoneText)
	}
	return z, nil
}

// Version is the release of the IANA database, such as 2026f.
func (z *Zones) Version() string { return z.version }

// Load returns the time zone of a name of the table. Names that only a machine gives a meaning, such as localtime,
// posixrules and those below posix/ and right/, are none of the table.
func (z *Zones) Load(name string) (*time.Location, error) {
	if _, known := z.names[name]; !known || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is not a time zone: write a name of the IANA database, such as Europe/Zurich, or "+
			"nothing for UTC", quota.Clip(name))
	}
	data, err := readBounded(z.files, name, maxZoneFile)
	if err != nil {
		return nil, fmt.Errorf("the table %s of time zones lacks %s: %w", z.version, name, err)
	}
	location, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("time zone %s in the table %s: %w", name, z.version, err)
	}
	return location, nil
}

func readBounded(files fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is not a file of at most %d bytes", name, most)
	}
	return fs.ReadFile(files, name)
}
