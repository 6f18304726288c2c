package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/yamldoc"
)

// Values of -o.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputName  = "name"
	OutputJSON  = "json"
	OutputJSONL = "jsonl"
	OutputYAML  = "yaml"
	OutputCSV   = "csv"
)

// OutputFormats are the values of -o.
var OutputFormats = []string{OutputTable, OutputWide, OutputName, OutputJSON, OutputJSONL, OutputYAML, OutputCSV}

// CheckOutput refuses values of -o that do not exist, and a --jq that is not a query or has no JSON. It takes the
// columns from -o table=COLUMN,...
func (c *Env) CheckOutput() error {
	names, isChosen := strings.CutPrefix(c.Output, OutputTable+"=")
	switch {
	case isChosen && c.JQ != "":
		return fmt.Errorf("--jq reads the answer as JSON: leave out -o %s", c.Output)
	case isChosen:
		c.Output, c.columns = OutputWide, strings.Split(names, ",")
	}
	if !slices.Contains(OutputFormats, c.Output) {
		return fmt.Errorf("unknown output %q: write -o %s, or -o table=COLUMN,... for these columns", c.Output,
			strings.Join(OutputFormats, ", -o "))
	}
	if c.JQ == "" {
		return nil
	}
	if c.Output != OutputTable && c.Output != OutputJSON {
		return fmt.Errorf("--jq reads the answer as JSON: leave out -o %s", c.Output)
	}
	c.Output = OutputJSON
	var err error
	c.query, err = compileQuery(c.JQ)
	return err
}

// IsTable reports whether the output is a table in one of its forms, which shows amounts with their units.
func (c *Env) IsTable() bool {
	return c.Output == OutputTable || c.Output == OutputWide || c.Output == OutputCSV
}

// Print writes an answer in the format of -o: the message itself as JSON or YAML, the names in it, or the page that
// draw fills.
func (c *Env) Print(answer proto.Message, draw func(*Page) error) error {
	return c.PrintNamed(answer, func() []string { return c.namesOf(answer) }, draw)
}

// PrintNamed is Print for an answer whose names do not stand in it as other commands take them.
func (c *Env) PrintNamed(answer proto.Message, names func() []string, draw func(*Page) error) error {
	return c.printAs(printed{
		text:     func() ([]byte, error) { return toJSON(answer) },
		elements: func() string { return listField(answer) },
		names:    names,
		draw:     draw,
	})
}

// PrintValue prints a value that is not an answer of a server and has no names.
func (c *Env) PrintValue(value any, draw func(*Page) error) error {
	return c.PrintNames(value, nil, draw)
}

// PrintNames prints a value that is not an answer of a server, with the names for -o name.
func (c *Env) PrintNames(value any, names []string, draw func(*Page) error) error {
	return c.printAs(printed{
		text: func() ([]byte, error) {
			text, err := json.MarshalIndent(value, "", "  ")
			return append(bytes.TrimSuffix(text, []byte("\n")), '\n'), err
		},
		elements: func() string { return "" },
		names:    func() []string { return names },
		draw:     draw,
	})
}

// printed is an answer in the forms from which all formats are made.
type printed struct {
	// text is the answer as indented JSON.
	text func() ([]byte, error)
	// elements is the field of the JSON that has the elements of a list; empty if the answer is not a list.
	elements func() string
	names    func() []string
	draw     func(*Page) error
}

func (c *Env) printAs(answer printed) error {
	text, err := c.format(answer)
	if err != nil {
		return err
	}
	return c.writePaged(text)
}

func (c *Env) format(answer printed) ([]byte, error) {
	switch c.Output {
	case OutputTable, OutputWide:
		page := &Page{colours: c.hasColours(), chosen: c.columns}
		if err := answer.draw(page); err != nil {
			return nil, printError(err)
		}
		if err := page.checkChosen(); err != nil {
			return nil, err
		}
		return TrimLines(page.Bytes()), nil
	case OutputCSV:
		page := &Page{}
		if err := answer.draw(page); err != nil {
			return nil, printError(err)
		}
		text, err := page.csv()
		return text, printError(err)
	case OutputName:
		return nameLines(answer.names())
	}
	text, err := answer.text()
	switch {
	case err != nil:
	case c.query != nil:
		return c.query.run(text)
	case c.Output == OutputJSONL:
		text, err = jsonLines(text, answer.elements())
	case c.Output == OutputYAML:
		text, err = yamldoc.FromJSON(text)
	}
	return text, printError(err)
}

func printError(err error) error {
	if err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

// Write writes text to standard output.
func (c *Env) Write(text []byte) error {
	_, err := c.Out.Write(text)
	return printError(err)
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

// JSONLine writes a message as one line of JSON, identically on every run.
func JSONLine(message proto.Message) ([]byte, error) {
	text, err := toJSON(message)
	if err != nil {
		return nil, err
	}
	return jsonLines(text, "")
}

// jsonLines writes each element of a list on a line, or the whole answer if it is not a list.
func jsonLines(text []byte, field string) ([]byte, error) {
	elements := []json.RawMessage{text}
	if field != "" {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			return nil, err
		}
		elements = nil
		if list := fields[field]; list != nil {
			if err := json.Unmarshal(list, &elements); err != nil {
				return nil, err
			}
		}
	}
	var lines bytes.Buffer
	for _, element := range elements {
		if err := json.Compact(&lines, element); err != nil {
			return nil, err
		}
		lines.WriteByte('\n')
	}
	return lines.Bytes(), nil
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
