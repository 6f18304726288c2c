package lease

import "errors"

var errEnded = errors.New("there is no such process")

// startOf identifies a process beyond its number, which the system gives to another one later: by the time of its
// start. It returns an error if the process has ended, also while its exit code is not collected. A negative number is
// a process group, which is identified by its number alone.
func startOf(pid int) (string, error) {
	if pid <= 0 {
		return "", groupError(pid)
	}
	fields, err := statOf(pid)
	if err != nil || fields[stateField] == "Z" || fields[stateField] == "X" {
		return "", errEnded
	}
	return fields[startField], nil
}
