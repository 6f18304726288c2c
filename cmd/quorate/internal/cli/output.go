package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/yamldoc"
)

// Values of -o.
const (
	OutputTable = "table"
	OutputJSON  = "json"
	OutputYAML  = "yaml"
)

// OutputFormats are the values of -o.
var OutputFormats = []string{OutputTable, OutputJSON, OutputYAML}

// Page is the text of a table output.
type Page struct {
	bytes.Buffer
}

// Linef adds a line, with unprintable characters in its arguments escaped.
func (p *Page) Linef(format string, args ...any) {
	fmt.Fprintf(&p.Buffer, format+"\n", printableArgs(args, Printable)...)
}

// Table adds rows of columns, with unprintable characters escaped; the first row is the heading.
func (p *Page) Table(rows [][]string) error {
	columns := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Printable(cell)
		}
		if _, err := fmt.Fprintln(columns, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return columns.Flush()
}

// Print writes an answer in the format of -o: the message itself as JSON or YAML, or the page that draw fills.
func (c *Env) Print(answer proto.Message, draw func(*Page) error) error {
	var text []byte
	var err error
	switch c.Output {
	case OutputJSON:
		text, err = toJSON(answer)
	case OutputYAML:
		text, err = toYAML(answer)
	default:
		p := &Page{}
		err = draw(p)
		text = TrimLines(p.Bytes())
	}
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return c.Write(text)
}

func (c *Env) Write(text []byte) error {
	if _, err := c.Out.Write(text); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// toJSON writes a message as the JSON of protobuf, with zero values, identically on every run.
func toJSON(message proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer // protojson deliberately varies its spacing between builds
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
	return yamldoc.FromJSON(text)
}

// TrimLines removes the blanks that columns leave at the ends of lines.
func TrimLines(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, " ")
	}
	return bytes.Join(lines, []byte("\n"))
}

// PrintValue prints a value that is not an answer of a server.
func (c *Env) PrintValue(value any, draw func(*Page) error) error {
	if c.Output == OutputTable {
		p := &Page{}
		if err := draw(p); err != nil {
			return err
		}
		return c.Write(TrimLines(p.Bytes()))
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil && c.Output == OutputYAML {
		text, err = yamldoc.FromJSON(text)
	}
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return c.Write(append(bytes.TrimSuffix(text, []byte("\n")), '\n'))
}

// PrintNotes prints the notes of a conversion.
func (c *Env) PrintNotes(name string, notes []string) {
	for _, note := range notes {
		c.Messagef("%s: note: %s", name, note)
	}
}

// PrefixLines puts the name of the file before every line of an error, which is one problem.
func PrefixLines(name string, err error) string {
	return name + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+name+": ")
}
