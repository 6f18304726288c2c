// Package read is the layer of the ledger that answers reads, reduced to what the caller may see.
//
// It uses packages state, admit, configure and permit; the rules let it use image too. Readers share the state and hold
// no lock of their own: nothing here changes it, except [MarkHolders], which the end of a command calls.
//
// There is one [Reader]. Without an identity it sees everything; [Reader.ReaderOf] makes that of a caller, from whose
// answers everything hidden is missing as if it did not exist. Rights are taken from the same state as the data, so
// they are as fresh as what they protect. An answer is a copy, except for specifications and histories, which are not
// changed in place. A list visits a bounded number of records and says where the next page begins.
//
// [Reader.RedactOutcome] does the same to the outcome of a command, and [Reader.RefusalOf] answers before a command is
// written to the log whether its caller may give it.
//
// # Where to change what
//
//	the reader, its rights, single answers  reader.go; reader_complete.go has the answers before they are reduced
//	configuration, usage, revisions         reader_config.go, usage_page.go, principals_list.go, principals_members.go
//	events and webhooks                     reader_events.go
//	civil time and scheduled limits         reader_calendar.go
//	what has changed since an entry         changes.go
//	requests for limits                     limit_request_reader.go
//	bindings; what has no owner             access_view.go; reader_unowned.go
//	what is hidden in an answer             reader_redact.go, reader_reasons.go
//	refusals before the log                 reader_refusal.go
package read
