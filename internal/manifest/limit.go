package manifest

import (
	"fmt"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/quota"
)

// Words for the limits that are not quantities.
const (
	unlimitedWord = "unlimited"
	unsetWord     = "unset"
)

// Words for booleans.
const (
	trueWord  = "true"
	falseWord = "false"
)

// ParseLimit parses a limit: a quantity, advisory: and a quantity, or one of the words unlimited and unset.
func ParseLimit(text string, unit quoratev1.Unit) (*quoratev1.Limit, error) {
	switch text {
	case unlimitedWord:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}, nil
	case unsetWord:
		return &quoratev1.Limit{Value: &quoratev1.Limit_Unset{Unset: true}}, nil
	}
	amountText, isAdvisory := strings.CutPrefix(text, quota.AdvisoryWord)
	amount, err := quantity.Parse(amountText, unit)
	if err != nil {
		return nil, fmt.Errorf("%w; or write %s", err, unlimitedWord)
	}
	if isAdvisory {
		return &quoratev1.Limit{Value: &quoratev1.Limit_Advisory{Advisory: amount}}, nil
	}
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: amount}}, nil
}

// FormatLimit formats a limit for ParseLimit; nil is unset.
func FormatLimit(limit *quoratev1.Limit, unit quoratev1.Unit) string {
	switch v := limit.GetValue().(type) {
	case *quoratev1.Limit_Amount:
		return quantity.Format(v.Amount, unit)
	case *quoratev1.Limit_Advisory:
		return quota.AdvisoryWord + quantity.Format(v.Advisory, unit)
	case *quoratev1.Limit_Unlimited:
		return unlimitedWord
	case *quoratev1.Limit_Unset:
		return unsetWord
	}
	return unsetWord
}
