package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/spelling"
)

// allowedValues says what flags of the types of package pflag take. Our own types say it themselves.
var allowedValues = map[string]string{
	"bool":     "is neither true nor false",
	"duration": "is not a time: write days, hours, minutes and seconds, such as 7d, 12h, 1h30m, 90s or 250ms",
	"float64":  "is not a number, such as 2.5",
	"int":      "is not a whole number",
	"int32":    "is not a whole number",
	"int64":    "is not a whole number",
	"intSlice": "is not a list of whole numbers, such as 1,16,64",
	"uint64":   fmt.Sprintf("is not a whole number from 0 to %d", uint64(math.MaxUint64)),
}

// explainFlagError says which flag of a command line is wrong, what is wrong with it, and what it takes.
func explainFlagError(cmd *cobra.Command, err error) error {
	invalid, missing, unknown := (*pflag.InvalidValueError)(nil), (*pflag.ValueRequiredError)(nil),
		(*pflag.NotExistError)(nil)
	switch {
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	case errors.As(err, &missing):
		name := PlaceholderOf(missing.GetFlag())
		return Usagef("--%s is without a value: write --%[1]s=%[2]s", missing.GetFlag().Name,
			strings.ToUpper(orText(name, "value")))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return Usagef("unknown flag -%s: \"%s --help\" lists the flags", unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	}
	return Usagef("%v", err)
}

func invalidValue(err *pflag.InvalidValueError) error {
	flag, ours := err.GetFlag(), (*usageError)(nil)
	if errors.As(err, &ours) && strings.HasPrefix(ours.message, "--"+flag.Name+" ") {
		return ours
	}
	if errors.As(err, &ours) {
		return Usagef("--%s: %v", flag.Name, ours)
	}
	if allowed, known := allowedValues[flag.Value.Type()]; known {
		return Usagef("--%s: %.64q %s", flag.Name, err.GetValue(), allowed)
	}
	return Usagef("--%s: %v", flag.Name, errors.Unwrap(err))
}

// unknownFlag names the flag with the most similar name, if there is one.
func unknownFlag(cmd *cobra.Command, name string) error {
	nearest, fewest := "", mostEdits+1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		edits, near := spelling.EditsWithin(name, f.Name, fewest-1)
		if !f.Hidden && near && edits < len(name) {
			nearest, fewest = f.Name, edits
		}
	})
	if nearest != "" {
		return Usagef("unknown flag --%s: did you mean --%s?", name, nearest)
	}
	return Usagef("unknown flag --%s: \"%s --help\" lists the flags", name, cmd.CommandPath())
}
