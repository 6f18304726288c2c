package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"
)

type query struct {
	code *gojq.Code
}

func compileQuery(expression string) (*query, error) {
	parsed, err := gojq.Parse(expression)
	if err == nil {
		var code *gojq.Code
		if code, err = gojq.Compile(parsed); err == nil {
			return &query{code}, nil
		}
	}
	return nil, fmt.Errorf("--jq %q is not a jq expression: %w", expression, err)
}

// run writes each result on a line: texts as they are, everything else as JSON.
func (q *query) run(text []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, printError(err)
	}
	var lines bytes.Buffer
	for results := q.code.Run(value); ; {
		result, more := results.Next()
		if !more {
			return lines.Bytes(), nil
		}
		if failed, isError := result.(error); isError {
			if halted := (*gojq.HaltError)(nil); errors.As(failed, &halted) && halted.Value() == nil {
				return lines.Bytes(), nil
			}
			return nil, Usagef("--jq: %v", failed)
		}
		if line, isText := result.(string); isText {
			lines.WriteString(line + "\n")
			continue
		}
		line, err := gojq.Marshal(result)
		if err != nil {
			return nil, printError(err)
		}
		lines.Write(append(line, '\n'))
	}
}
