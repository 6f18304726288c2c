package load

import (
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The codes of errors that the package itself knows.
const (
	CodeError      = "error"      // any error, without Config.ErrorCode
	CodeUnfinished = "unfinished" // the operation did not end within Config.Drain
	CodeOther      = "other"      // errors beyond maxCodes
)

const (
	// maxCodes bounds the codes of one kind of operation, maxExample the bytes of an example.
	maxCodes   = 32
	maxExample = 500
	// Latencies are counted in nanoseconds, up to an hour, with three decimal digits; longer ones count as an hour.
	maxLatency = time.Hour
	digits     = 3
)

// recorder is safe for concurrent use.
type recorder struct {
	mu         sync.Mutex
	kinds      map[string]*kindRecord
	startDelay *latencies
}

type kindRecord struct {
	latencies *latencies
	units     int64
	errors    map[string]*ErrorCount
	series    series
}

func newRecorder() *recorder {
	return &recorder{kinds: map[string]*kindRecord{}, startDelay: newLatencies()}
}

func (r *recorder) recordSuccess(kind string, units int64, took, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.kindRecord(kind)
	record.latencies.add(took)
	record.units += units
	record.series.add(since, units, took)
}

func (r *recorder) recordFailure(kind, code string, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kindRecord(kind).addError(ErrorCount{
		Code: code, Count: 1, Example: firstBytes(err.Error(), maxExample), MaxMs: milliseconds(took),
	})
}

func (r *recorder) recordStartDelay(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startDelay.add(delay)
}

func (r *recorder) kindRecord(kind string) *kindRecord {
	record, known := r.kinds[kind]
	if !known {
		record = newKindRecord()
		r.kinds[kind] = record
	}
	return record
}

func newKindRecord() *kindRecord {
	return &kindRecord{latencies: newLatencies(), errors: map[string]*ErrorCount{}}
}

// addError keeps the first example of a code.
func (k *kindRecord) addError(e ErrorCount) {
	if k.errors[e.Code] == nil && len(k.errors) >= maxCodes {
		e.Code = CodeOther
	}
	known := k.errors[e.Code]
	if known == nil {
		k.errors[e.Code] = &e
		return
	}
	known.Count += e.Count
	known.MaxMs = max(known.MaxMs, e.MaxMs)
}

// merge expects that other is not in use any more.
func (r *recorder) merge(other *recorder) {
	r.startDelay.merge(other.startDelay)
	for _, kind := range slices.Sorted(maps.Keys(other.kinds)) {
		into, from := r.kindRecord(kind), other.kinds[kind]
		into.latencies.merge(from.latencies)
		into.units += from.units
		into.series.merge(from.series)
		for _, code := range slices.Sorted(maps.Keys(from.errors)) {
			into.addError(*from.errors[code])
		}
	}
}

// latencies is a histogram with its exact maximum.
type latencies struct {
	histogram *hdr.Histogram
	longest   time.Duration
}

func newLatencies() *latencies {
	return &latencies{histogram: hdr.New(1, int64(maxLatency), digits)}
}

func (l *latencies) add(took time.Duration) {
	took = min(max(took, 0), maxLatency)
	l.longest = max(l.longest, took)
	if err := l.histogram.RecordValue(int64(took)); err != nil {
		panic(err) // the value is within the bounds of the histogram
	}
}

func (l *latencies) merge(other *latencies) {
	l.histogram.Merge(other.histogram)
	l.longest = max(l.longest, other.longest)
}

// firstBytes cuts a text without cutting a character.
func firstBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
