package cli

import "testing"

// TestExitCodesAreInOrder: the help prints the table in source order.
func TestExitCodesAreInOrder(t *testing.T) {
	for i, exit := range exitCodes {
		if exit.code != i || exit.name == "" || exit.meaning == "" {
			t.Errorf("row %d of the table is about %d, %q", i, exit.code, exit.name)
		}
	}
}
