package lease

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

var errEnded = errors.New("there is no such process")

// startOf identifies a process beyond its number, which the system gives to another one later: by the time of its
// start. It returns an error if the process has ended, also if nobody has collected its exit code. A negative number is
// a process group, which is identified by its number alone.
func startOf(pid int) (string, error) {
	if pid <= 0 {
		return "", groupError(pid)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", errEnded
	}
	// The second field is the name in parentheses, which may contain blanks and parentheses itself.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const stateField, startField = 0, 19
	if len(fields) <= startField || fields[stateField] == "Z" || fields[stateField] == "X" {
		return "", errEnded
	}
	return fields[startField], nil
}
