// Package configure is the layer of the ledger that turns a text or a change into a new forest: the draft of a tree,
// what differs, whether the policies allow it, and its installation. Scheduled limits and holds of nodes belong here,
// because they are changes of what is in force.
//
// It uses packages state and admit. Which rules a tree can follow is in package quota/policy; this layer asks them.
//
// [Planner] has a method for each command, which returns a [Plan]: checked, or refused, and without any effect. Package
// permit asks whether the caller may make the differences of a plan, and then calls [Planner.Install], which cannot
// fail. Installing keeps the pointers to nodes valid.
//
// # Where to change what
//
//	a change of trees as a whole            config.go; config_change.go (limits, moves), config_subtree.go (one subtree)
//	from text to draft                      config_draft.go, config_principals.go, inventory_config.go (items);
//	                                        config_sizes.go for bounds
//	which node continues which              config_paths.go, config_rehome.go (claims that borrow)
//	what differs                            config_diff.go
//	which rules apply, what a dry run says  config_rules.go
//	policies that a configuration defines   config_policies.go
//	bindings and the access section         config_access.go, config_keep.go (kept by a text without them)
//	installation                            config_install.go
//	rollbacks and past configurations       history_past.go; history_subtree.go (when a subtree last changed)
//	scheduled limits                        calendar_commands.go, calendar_rules.go, calendar_extend.go
//	nodes on hold                           hold.go
//
// DESIGN.md follows a change of the configuration and a scheduled limit.
package configure
