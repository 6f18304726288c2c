package gate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The form of ids is PREFIX/KEY for the first request of a work and PREFIX/KEY/N for the N-th: an id that has ended
// cannot be used again for ten minutes.
var (
	validPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	validKey    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,48}$`)
)

// mostAttempts bounds how many ids of one work are tried in a row.
const mostAttempts = 32

func makeID(prefix, key string, attempt int) string {
	if attempt <= 1 {
		return prefix + "/" + key
	}
	return fmt.Sprintf("%s/%s/%d", prefix, key, attempt)
}

// parseID returns the key and the attempt of an id of this adapter, and false for other ids.
func parseID(prefix, id string) (key string, attempt int, ours bool) {
	rest, ours := strings.CutPrefix(id, prefix+"/")
	if !ours {
		return "", 0, false
	}
	key, number, numbered := strings.Cut(rest, "/")
	attempt = 1
	if numbered {
		parsed, err := strconv.Atoi(number)
		if err != nil || parsed < 2 {
			return "", 0, false
		}
		attempt = parsed
	}
	return key, attempt, validKey.MatchString(key)
}
