package quota

// Unit says what an [Amount] of a resource counts. The numbers are part of the log format.
type Unit uint8

// The closed list of units.
const (
	// Count counts whole things: servers, cores, licences.
	Count Unit = 1
	// Milli counts thousandths: cpu in milli.
	Milli Unit = 2
	// Bytes counts bytes.
	Bytes Unit = 3
)

// String is the unit's word in configuration files.
func (u Unit) String() string {
	switch u {
	case Count:
		return "count"
	case Milli:
		return "milli"
	case Bytes:
		return "bytes"
	}
	return "unknown"
}

// Resource is a registered resource of a tree. A name that is not registered is refused, so that a typo never passes
// silently.
type Resource struct {
	Name string
	Unit Unit
}
