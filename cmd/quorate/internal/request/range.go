package request

import (
	"errors"
	"fmt"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const rangeMark = ".."

func isRange(text string) bool { return strings.Contains(text, rangeMark) }

// cutRange cuts LEAST..MOST[/STEP]; without a step it is "1".
func cutRange(text string) (least, most, step string) {
	least, most, _ = strings.Cut(text, rangeMark)
	most, step, stepped := strings.Cut(most, "/")
	if !stepped {
		step = "1"
	}
	return least, most, step
}

// parseAmounts reads an amount, or a range with a step. An amount has no step.
func parseAmounts(text string, unit quoratev1.Unit, factor *scale) (*quoratev1.AmountRange, error) {
	switch {
	case !isRange(text):
		amount, err := quantity.Parse(text, unit)
		if err != nil || factor == nil || amount == 0 {
			return &quoratev1.AmountRange{Least: amount}, err
		}
		return factor.multiply(amount)
	case factor != nil:
		return nil, errors.New("--scale makes a range of it already; write one amount")
	}
	var numbers [3]int64
	least, most, step := cutRange(text)
	for i, part := range []string{least, most, step} {
		n, err := quantity.Parse(part, unit)
		if err != nil {
			return nil, fmt.Errorf("%q is not a range such as 4..16/4: %w", text, err)
		}
		numbers[i] = n
	}
	if numbers[2] == 0 {
		return nil, fmt.Errorf("the range %q has steps of 0; take larger ones", text)
	}
	return &quoratev1.AmountRange{Least: numbers[0], Most: numbers[1], Step: numbers[2]}, nil
}

// scale is how many times all amounts of a request are wanted, from least to most.
type scale struct{ least, most, step int64 }

type scaleFlag struct{ claims *Claims }

// Set reads LEAST..MOST[/STEP].
func (f scaleFlag) Set(text string) error {
	if !isRange(text) {
		return cli.Usagef("--scale %s is not a range such as 4..16 or 4..16/4", text)
	}
	r, err := parseAmounts(text, quoratev1.Unit_UNIT_COUNT, nil)
	if err != nil {
		return cli.Usagef("--scale: %v", err)
	}
	f.claims.Scale = &scale{r.GetLeast(), r.GetMost(), r.GetStep()}
	return nil
}

// String is empty: there is no default.
func (f scaleFlag) String() string { return "" }

// Type is shown in help texts.
func (f scaleFlag) Type() string { return "LEAST..MOST[/STEP]" }

func (s *scale) multiply(amount int64) (*quoratev1.AmountRange, error) {
	if s.most > quantity.Max/amount || s.step > quantity.Max/amount || s.least > quantity.Max/amount {
		return nil, fmt.Errorf("%d times that is more than any request may name", s.most)
	}
	return &quoratev1.AmountRange{Least: s.least * amount, Most: s.most * amount, Step: s.step * amount}, nil
}
