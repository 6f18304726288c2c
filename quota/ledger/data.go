package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// checkData refuses user data that cannot be. Values are never part of a refusal: they may be secret.
func (e *environment) checkData(data []quota.Label, field string) *quota.Error {
	if len(data) > e.bounds.Data {
		return quota.Errorf(quota.Invalid, field, "there are %d pairs of user data; at most %d are allowed", len(data), e.bounds.Data)
	}
	size := 0
	for i, pair := range data {
		size += len(pair.Key) + len(pair.Value)
		switch {
		case pair.Key == "":
			return quota.Errorf(quota.Invalid, field, "a key of user data is empty; name it")
		case i > 0 && data[i-1].Key >= pair.Key:
			return quota.Errorf(quota.Invalid, field, "user data %q is not in order, or there twice", quota.Clip(pair.Key))
		}
	}
	if size > quota.MaxData {
		return quota.Errorf(quota.Invalid, field, "the user data have %d bytes; at most %d are allowed", size, quota.MaxData)
	}
	return nil
}

// checkLaid refuses a change of user data that cannot be, or makes too many of them.
func (e *environment) checkLaid(data, change []quota.Label, field string) *quota.Error {
	if err := e.checkData(change, field); err != nil || len(change) == 0 {
		return err
	}
	return e.checkData(lay(data, change), field)
}

// lay lays a change over user data: an empty value removes a key.
func lay(data, change []quota.Label) []quota.Label {
	if len(change) == 0 {
		return data
	}
	laid := slices.Clone(data)
	for _, pair := range change {
		i, known := slices.BinarySearchFunc(laid, pair.Key, func(l quota.Label, key string) int { return strings.Compare(l.Key, key) })
		switch {
		case known && pair.Value == "":
			laid = slices.Delete(laid, i, i+1)
		case known:
			laid[i].Value = pair.Value
		case pair.Value != "":
			laid = slices.Insert(laid, i, pair)
		}
	}
	return laid
}
