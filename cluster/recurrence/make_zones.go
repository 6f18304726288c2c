//go:build ignore

// Program make_zones makes zoneinfo.zip, the table of time zones that is compiled in, of the file tzdata.zi of a newer
// release. That file is the whole table as text. Debian's package tzdata has it, among others:
//
//	apt-get download tzdata && dpkg -x tzdata_*.deb unpacked
//	go run make_zones.go unpacked/usr/share/zoneinfo/tzdata.zi
//
// It needs zic of the C library.
package main

import (
	"archive/zip"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("name one file tzdata.zi")
	}
	if err := makeZip(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// makeZip compiles the text with zic and packs the result with the text. The archive has no dates, so the same text
// makes the same archive.
func makeZip(text string) error {
	folder, err := os.MkdirTemp("", "zones")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if made, err := exec.Command("zic", "-b", "slim", "-d", folder, text).CombinedOutput(); err != nil {
		log.Printf("zic: %s", made)
		return err
	}
	content, err := os.ReadFile(text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "tzdata.zi"), content, 0o600); err != nil {
		return err
	}
	archive, err := os.Create("zoneinfo.zip")
	if err != nil {
		return err
	}
	packed := zip.NewWriter(archive)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := packed.Create(filepath.ToSlash(name))
		if err == nil {
			_, err = file.Write(content)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return archive.Close()
}
