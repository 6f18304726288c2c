package authn

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"time"
)

// claims are the members of a JSON object: the payload or the header of a JWT.
type claims map[string]any

const maxClaimDepth = 16

var (
	errNotObject = errors.New("it is not one JSON object")
	errTwice     = errors.New("a name occurs twice in an object")
	errTooDeep   = errors.New("objects and lists are nested too deep")
)

// parseClaims parses one JSON object. A name that occurs twice is an error, because parsers differ in which of the two
// counts. Errors do not repeat the content.
func parseClaims(text []byte) (claims, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := parseValue(decoder, maxClaimDepth)
	if err != nil {
		return nil, err
	}
	object, isObject := value.(map[string]any)
	if _, err := decoder.Token(); !isObject || !errors.Is(err, io.EOF) {
		return nil, errNotObject
	}
	return object, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, errNotObject
	}
	if depth == 0 {
		return nil, errTooDeep
	}
	switch token {
	case json.Delim('{'):
		return parseObject(decoder, depth)
	case json.Delim('['):
		return parseList(decoder, depth)
	}
	return token, nil
}

func parseObject(decoder *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		name, isString := token.(string)
		if err != nil || !isString {
			return nil, errNotObject
		}
		if _, twice := object[name]; twice {
			return nil, errTwice
		}
		if object[name], err = parseValue(decoder, depth-1); err != nil {
			return nil, err
		}
	}
	return object, parseEnd(decoder)
}

func parseList(decoder *json.Decoder, depth int) (any, error) {
	list := []any{}
	for decoder.More() {
		value, err := parseValue(decoder, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, parseEnd(decoder)
}

func parseEnd(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return errNotObject
	}
	return nil
}

func (c claims) at(path claimPath) (value any, found bool) {
	value = map[string]any(c)
	for _, name := range path.names {
		object, isObject := value.(map[string]any)
		if !isObject {
			return nil, false
		}
		if value, found = object[name]; !found {
			return nil, false
		}
	}
	return value, true
}

// stringsOf returns the strings of a value that is a string or a list of strings.
func stringsOf(value any) (list []string, valid bool) {
	switch v := value.(type) {
	case string:
		return []string{v}, true
	case []any:
		for _, element := range v {
			text, isString := element.(string)
			if !isString {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

// text requires that the claim is a string if it is there.
func (c claims) text(name string) (value string, valid bool) {
	claim, found := c[name]
	if !found {
		return "", true
	}
	value, valid = claim.(string)
	return value, valid
}

var (
	errNoTime  = errors.New("the claim is missing")
	errBadTime = errors.New("the claim is not a time in seconds since 1970")
)

// maxTime is the largest time in seconds that a claim may have; it is in the year 36812.
const maxTime = 1 << 40

// time returns a claim that is a time. Fractions of seconds are cut off, as go-oidc does.
func (c claims) time(name string) (time.Time, error) {
	claim, found := c[name]
	if !found {
		return time.Time{}, errNoTime
	}
	number, isNumber := claim.(json.Number)
	if !isNumber {
		return time.Time{}, errBadTime
	}
	seconds, err := number.Float64() // exact up to 2^53
	if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds > maxTime {
		return time.Time{}, errBadTime
	}
	return time.Unix(int64(seconds), 0), nil
}
