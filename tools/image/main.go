// Command image writes the container image of Quorate as an OCI layout, without a daemon and without a base image: the
// static binary, the certificates of public authorities, and the licences. The same files and the same time give the
// same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		log.Fatal(err)
	}
}

// run takes the time of all files, in seconds since 1970.
func run(args []string, epoch string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("out", "", "folder for the OCI layout, which is replaced")
	reference := flags.String("reference", "latest", "name of the image in the layout")
	var b build
	flags.StringVar(&b.version, "version", "devel", "version of the binaries")
	flags.StringVar(&b.commit, "commit", "", "commit of the binaries")
	flags.StringVar(&b.authorities, "authorities", "/etc/ssl/certs/ca-certificates.crt",
		"file with the certificates of public authorities")
	flags.StringVar(&b.licences, "licences", "../..", "folder with LICENSE and NOTICE")
	flags.Func("binary", "architecture=FILE with the binary for linux, once for each architecture", b.addBinary)
	if err := flags.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is %q: set it to the time of the commit, in seconds since 1970", epoch)
	}
	b.time = time.Unix(seconds, 0).UTC()
	if *out == "" || len(b.binaries) == 0 || flags.NArg() > 0 {
		return errors.New("-out and at least one -binary are needed, and nothing else")
	}
	return b.writeLayout(*out, *reference)
}

type build struct {
	version, commit       string
	authorities, licences string
	binaries              []binary
	time                  time.Time
}

type binary struct{ architecture, file string }

func (b *build) addBinary(text string) error {
	architecture, file, found := strings.Cut(text, "=")
	if !found || architecture == "" || file == "" {
		return fmt.Errorf("%q is not architecture=FILE", text)
	}
	b.binaries = append(b.binaries, binary{architecture, file})
	return nil
}
