package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// What -o understands.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

var outputFormats = []string{outputTable, outputJSON, outputYAML}

// page is text for people, in columns.
type page struct {
	bytes.Buffer
}

// line adds a line with printable arguments.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.Buffer, format+"\n", printableArgs(args, printable)...)
}

// table adds rows of columns with printable cells; the first row is the heading.
func (p *page) table(rows [][]string) error {
	columns := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		if _, err := fmt.Fprintln(columns, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return columns.Flush()
}

// print writes an answer: as JSON or YAML the message itself, as a table what draw puts on a page.
func (c *cli) print(answer proto.Message, draw func(*page) error) error {
	var text []byte
	var err error
	switch c.output {
	case outputJSON:
		text, err = toJSON(answer)
	case outputYAML:
		text, err = toYAML(answer)
	default:
		p := &page{}
		err = draw(p)
		text = trimmed(p.Bytes())
	}
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return c.write(text)
}

func (c *cli) write(text []byte) error {
	if _, err := c.out.Write(text); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// toJSON writes a message as protobuf's JSON, zero values included, the same on every run.
func toJSON(message proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer // protojson spaces its output differently from build to build, on purpose
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

func toYAML(message proto.Message) ([]byte, error) {
	text, err := toJSON(message)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(text)
}

// trimmed drops the blanks that columns leave at the ends of lines.
func trimmed(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, " ")
	}
	return bytes.Join(lines, []byte("\n"))
}

// show prints a value that is not an answer of a server.
func (c *cli) show(value any, draw func(*page) error) error {
	if c.output == outputTable {
		p := &page{}
		if err := draw(p); err != nil {
			return err
		}
		return c.write(trimmed(p.Bytes()))
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil && c.output == outputYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return c.write(append(bytes.TrimSuffix(text, []byte("\n")), '\n'))
}

// sayNotes tells what a conversion left out or read with goodwill.
func (c *cli) sayNotes(name string, notes []string) {
	for _, note := range notes {
		c.say("%s: note: %s", name, note)
	}
}

// problemsIn puts the name of the file before every problem, each of which has a line.
func problemsIn(name string, err error) string {
	return name + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+name+": ")
}
