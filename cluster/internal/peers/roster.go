package peers

import (
	"cmp"
	"slices"

	"github.com/hashicorp/raft"
)

// Roster combines what is known about the nodes of the cluster: raft's configuration says which are members, each node
// reports itself when it is queried, and gossip names addresses.
type Roster struct {
	self      string
	raft      *raft.Raft
	directory *Directory
	answers   *Answers
}

// NewRoster returns the roster of the node with the id self.
func NewRoster(self string, r *raft.Raft, directory *Directory, answers *Answers) *Roster {
	return &Roster{self: self, raft: r, directory: directory, answers: answers}
}

// Members returns the servers of raft's configuration and the live peers known only from gossip, sorted by id.
func (r *Roster) Members() []Member {
	var members []Member
	servers := r.Servers()
	for _, s := range servers {
		members = append(members, r.MemberOf(s))
	}
	for _, p := range append(r.directory.Alive(), r.directory.Own()) {
		known := slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == p.ID })
		if !known {
			members = append(members, r.MemberOf(raft.Server{ID: raft.ServerID(p.ID), Suffrage: raft.Nonvoter}))
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// MemberOf combines what raft, the server itself and gossip report about one server.
func (r *Roster) MemberOf(s raft.Server) Member {
	p, _ := r.directory.Find(string(s.ID))
	status := r.answers.Find(string(s.ID)).NodeStatus
	level, _, _ := r.KnownFormat(s)
	return Member{
		ID: string(s.ID), RaftAddr: cmp.Or(string(s.Address), status.RaftAddr, p.RaftAddr),
		HTTPAddr: cmp.Or(status.HTTPAddr, p.HTTPAddr),
		Version:  cmp.Or(status.Version, p.Version), FeatureLevel: level,
		Voter: s.Suffrage == raft.Voter, Alive: p.Alive,
	}
}

// Servers returns raft's latest configuration, which may not be committed yet.
func (r *Roster) Servers() []raft.Server {
	return r.raft.GetConfiguration().Configuration().Servers
}

// ServerIDs is the set of the ids in raft's configuration.
func (r *Roster) ServerIDs() map[string]bool {
	ids := map[string]bool{}
	for _, s := range r.Servers() {
		ids[string(s.ID)] = true
	}
	return ids
}

// VoterIDs are the ids of the voters in raft's configuration.
func (r *Roster) VoterIDs() []raft.ServerID {
	var voters []raft.ServerID
	for _, s := range r.Servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s.ID)
		}
	}
	return voters
}

// IsVoter reports whether raft's configuration has a voter with the id.
func (r *Roster) IsVoter(id string) bool {
	for _, voter := range r.VoterIDs() {
		if string(voter) == id {
			return true
		}
	}
	return false
}

// Contains reports whether raft's configuration has the id.
func (r *Roster) Contains(id string) bool { return Contains(r.Servers(), id) }

// KnownFormat returns the newest format that a member understands according to its last answer; heard is false if it
// has not answered since this node started.
func (r *Roster) KnownFormat(s raft.Server) (level uint32, version string, heard bool) {
	if string(s.ID) == r.self {
		own := r.directory.Own()
		return own.FeatureLevel, own.Version, true
	}
	a := r.answers.Find(string(s.ID))
	return a.FeatureLevel, a.Version, !a.AnsweredAt.IsZero()
}

// RaftAddressOf returns the raft address that a server reported, if it answered recently, otherwise the configured one.
// Versions below feature level 5 do not report it, so their addresses are corrected once they are upgraded.
func (r *Roster) RaftAddressOf(s raft.Server) raft.ServerAddress {
	if string(s.ID) == r.self {
		return raft.ServerAddress(r.directory.Own().RaftAddr)
	}
	answer := r.answers.Find(string(s.ID))
	if !answer.IsCurrent() || answer.RaftAddr == "" {
		return s.Address
	}
	return raft.ServerAddress(answer.RaftAddr)
}

// IDs are the ids of servers.
func IDs(servers []raft.Server) []string {
	ids := make([]string, len(servers))
	for i, s := range servers {
		ids[i] = string(s.ID)
	}
	return ids
}

// Contains reports whether one of the servers has the id.
func Contains(servers []raft.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
}
