package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; read the diff before you commit it")

// TestTranscripts runs the commands of each transcript, the lines that begin with "$ quorate", and compares their
// output with it: 2> marks standard error, and a bracket at the end gives an exit code other than 0. To add a command,
// add its line and run the test with -args -rewrite.
func TestTranscripts(t *testing.T) {
	t.Setenv("USER", "alice")
	t.Setenv("QUORATE_TOKEN", "")
	t.Setenv("QUORATE_TOKEN_FILE", "")
	transcripts, err := filepath.Glob("testdata/transcripts/*.golden")
	if err != nil || len(transcripts) == 0 {
		t.Fatalf("there are %d transcripts: %v", len(transcripts), err)
	}
	for _, file := range transcripts {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".golden"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, server := startFake(t)
			var transcript strings.Builder
			for line := range strings.Lines(string(text)) {
				if command, found := strings.CutPrefix(line, "$ quorate "); found {
					recordCommand(&transcript, server, strings.TrimSuffix(command, "\n"))
				}
			}
			compareGolden(t, file, transcript.String())
		})
	}
}

// elapsed matches the time that a command has waited, which these tests ignore.
var elapsed = regexp.MustCompile(`(waiting|not granted after) \d+s`)

func recordCommand(transcript *strings.Builder, server, line string) {
	fmt.Fprintf(transcript, "$ quorate %s\n", line)
	code, stdout, stderr := runQuorate(server, "", strings.Fields(line)...)
	for talk := range strings.Lines(elapsed.ReplaceAllString(stderr, "$1 0s")) {
		transcript.WriteString("2> " + talk)
	}
	transcript.WriteString(stdout)
	if code != cli.ExitOK {
		fmt.Fprintf(transcript, "[%d]\n", code)
	}
	transcript.WriteString("\n")
}
