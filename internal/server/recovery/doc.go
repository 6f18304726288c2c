// Package recovery has the two files by which access to a cluster is recovered on the machine of a member.
//
// A server notes in its data folder how often access was recovered ([Folder.Note]). A person with a shell on the
// machine prepares a recovery ([Folder.Prepare]): it makes a secret, and a file with its hash and that count. While the
// server leads, it accepts the secret once ([Folder.Offer]); the ledger raises the count, and so every file that was
// made before is spent, on whichever member ([Folder.RemoveSpent]).
//
// The files contain no secret. A user who can write them can also replace the program or the log, so they prove nothing
// else; the checks keep copies and old files from being accepted.
package recovery
