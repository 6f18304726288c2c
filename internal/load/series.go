package load

import "time"

const (
	// firstInterval is the resolution of the series of a short run; a longer one has at most maxIntervals of a width
	// that was doubled as often as needed.
	firstInterval = 50 * time.Millisecond
	maxIntervals  = 240
)

// series counts operations by when they ended.
type series struct {
	width  time.Duration // zero while empty
	points []point
}

type point struct {
	count, units int64
	longest      time.Duration
}

func (s *series) add(since time.Duration, units int64, took time.Duration) {
	s.addPoint(max(since, 0), point{count: 1, units: units, longest: took})
}

func (s *series) addPoint(since time.Duration, p point) {
	if s.width == 0 {
		s.width = firstInterval
	}
	for since >= maxIntervals*s.width {
		s.doubleWidth()
	}
	at := int(since / s.width)
	for len(s.points) <= at {
		s.points = append(s.points, point{})
	}
	s.points[at].join(p)
}

func (s *series) doubleWidth() {
	s.width *= 2
	half := make([]point, (len(s.points)+1)/2)
	for i, p := range s.points {
		half[i/2].join(p)
	}
	s.points = half
}

// merge adds another series. Widths differ by a power of two, so an interval of the narrower lies within one of the
// wider.
func (s *series) merge(other series) {
	for s.width < other.width {
		if s.width == 0 {
			s.width = firstInterval
			continue
		}
		s.doubleWidth()
	}
	for i, p := range other.points {
		s.addPoint(time.Duration(i)*other.width, p)
	}
}

func (p *point) join(other point) {
	p.count += other.count
	p.units += other.units
	p.longest = max(p.longest, other.longest)
}
