// Package oracle has tests only: they give random commands to the ledger and to a slow, obviously right one, the
// oracle, and compare every outcome and everything that can be read afterwards.
//
// The oracle keeps what was asked and granted, every past configuration and every item, in plain lists, and answers
// each question by walking over all of it. Each feature is a file of it; package ledger has properties of their own for
// scheduled limits, thresholds, holds of nodes, rights, subtrees and the stream of changes.
//
//	random_*_test.go      the tests and fuzz targets: which commands are compared
//	pair_test.go          a ledger beside the oracle: outcomes, dry runs, restores
//	compare_*_test.go     what is read from both
//	oracle_test.go        the state of the oracle, and the switch over all commands
//	allocate_test.go      requests; placement_test.go and borrow_test.go have the rules of borrowing and preemption
//	ending_test.go        releases, reservations and deadlines; undo_test.go has the exact end of a reservation
//	lease_test.go         leases and their data
//	queue_test.go         requests and resizes that wait
//	holding_change_test.go  resizes, transfers and splits of what is held
//	principals_test.go    users, groups and applications; cohort_test.go has nodes that lend to each other
//	items_test.go         items; item_commands_test.go and item_config_test.go change them
//	config_*_test.go      configurations by revision: changes, moves, rollbacks, rules and permissions
//	usage_test.go         what is held, and what is above a limit
package oracle
