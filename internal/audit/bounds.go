package audit

// Bounds of records and of what keeps them. They are part of the rules of the ledger: another value needs a new feature
// level.
const (
	// MaxRecords and MaxBytes bound a Ring: the records of the newest changes, and the bytes of their lines. The newest
	// record is always kept.
	MaxRecords = 10_000
	MaxBytes   = 16 << 20
	// MaxChanges bounds the changes of one record, and MaxChangeBytes the bytes of their JSON. ChangeCount tells how many
	// there were.
	MaxChanges     = 100
	MaxChangeBytes = 64 << 10
	// MaxText bounds the bytes of one text; a longer one is cut and ends with "…".
	MaxText = 1024
	// MaxLine bounds the line of a record, without the newline.
	MaxLine = 128 << 10
)
