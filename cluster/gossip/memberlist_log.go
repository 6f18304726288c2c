package gossip

import (
	"cmp"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster/internal/repeats"
)

// maxLines is the number of warnings and errors of memberlist that are logged per refusalInterval.
const maxLines = 20

// memberlistLog turns the lines that memberlist writes into messages with keys. A message about one node appears at
// once and then every minute, with the number of those that were left out; warnings and errors altogether are bounded
// by maxLines, because any sender can cause them.
type memberlistLog struct {
	log     hclog.Logger
	repeats repeats.Limiter

	mu      sync.Mutex
	since   time.Time
	written int
}

// libraryLine is what memberlist writes.
var libraryLine = regexp.MustCompile(`(?s)^\[([A-Z]+)\] (?:memberlist: )?(.*?)\n?$`)

// libraryForm is a text of memberlist in which something varies: the groups of the pattern become keys, and message is
// what remains.
type libraryForm struct {
	pattern *regexp.Regexp
	message string // the group "message" if empty
}

// libraryForms are tried in order; the last one matches every text. Metadata of nodes are lists of numbers, and left
// out.
var libraryForms = []libraryForm{
	{
		regexp.MustCompile(`^Suspect (?P<node>\S+) has failed, no acks received$`),
		"Suspect has failed, no acks received",
	},
	{
		regexp.MustCompile(`^Marking (?P<node>\S+) as failed, suspect timeout reached \((?P<confirmations>\d+) `),
		"Marking as failed, suspect timeout reached",
	},
	{regexp.MustCompile(`^(?P<message>Refuting a (suspect|dead) message) \(from: (?P<from>.*)\)$`), ""},
	{
		regexp.MustCompile(`^Refuting an alive message for '(?P<node>[^']*)' \((?P<address>[^)]*)\)`),
		"Refuting an alive message",
	},
	{
		regexp.MustCompile(`^Was able to connect to (?P<node>\S+) over TCP but UDP probes failed`),
		"Was able to connect over TCP but UDP probes failed, network may be misconfigured",
	},
	{regexp.MustCompile(`^Push/Pull with (?P<node>\S+) failed: (?P<error>.*)$`), "Push/Pull failed"},
	{
		regexp.MustCompile(`^(?P<message>Failed to send gossip) to (?P<address>\S+): (?P<error>.*)$`), "",
	},
	{regexp.MustCompile(`^(?P<message>Conflicting address) for (?P<node>\S+)\. (?P<detail>.*)$`), ""},
	{regexp.MustCompile(`(?s)^(?P<message>[^:]*?)(: (?P<error>.*?))?( from=(?P<from>\S+|<.*>))?$`), ""},
}

// Write logs one line, unless it repeats.
func (l *memberlistLog) Write(line []byte) (int, error) {
	level, text := hclog.Info, string(line)
	if m := libraryLine.FindStringSubmatch(text); m != nil {
		level, text = libraryLevel(m[1]), m[2]
	}
	if level < l.log.GetLevel() {
		return len(line), nil
	}
	message, about, subject := readLibraryText(text)
	if omitted, ok := l.admit(level, message+subject); ok {
		if omitted > 0 {
			about = append(about, "repeated", omitted)
		}
		l.log.Log(level, message, about...)
	}
	return len(line), nil
}

func libraryLevel(name string) hclog.Level {
	if name == "ERR" {
		return hclog.Error
	}
	return cmp.Or(hclog.LevelFromString(name), hclog.Info)
}

// readLibraryText returns the message of a text, its keys with values, and the node or sender that it is about.
func readLibraryText(text string) (message string, about []any, subject string) {
	for _, form := range libraryForms {
		m := form.pattern.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		message = form.message
		for i, name := range form.pattern.SubexpNames() {
			switch {
			case name == "" || m[i] == "":
				continue
			case name == "message":
				message = m[i]
				continue
			case name == "address" && subject == "", name == "node":
				subject = m[i]
			case name == "from":
				subject = hostOf(m[i])
			}
			about = append(about, name, m[i])
		}
		return message, about, subject
	}
	return strings.TrimSpace(text), nil, ""
}

// hostOf leaves out the port, which every connection has anew.
func hostOf(from string) string {
	if host, _, err := net.SplitHostPort(from); err == nil {
		return host
	}
	return from
}

func (l *memberlistLog) admit(level hclog.Level, key string) (omitted int, ok bool) {
	if level < hclog.Info {
		return 0, true
	}
	omitted, ok = l.repeats.Admit(key)
	if !ok || level == hclog.Info {
		return omitted, ok
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.since) >= refusalInterval {
		l.since, l.written = time.Now(), 0
	}
	l.written++
	return omitted, l.written <= maxLines
}
