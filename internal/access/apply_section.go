package access

import "slices"

func (d *draft) replaceSection(s Section) *Error {
	s = s.Canonical()
	roles, err := s.Check()
	if err != nil {
		return err.below("access")
	}
	for i, role := range d.section.Roles {
		if _, kept := roles.Find(role.Name); !kept && d.at.BindsRole != nil && d.at.BindsRole(role.Name) {
			return refusal(InUse, indexed("access.roles", i), "remove these bindings first",
				"role %s is bound at a node and would be removed", role.Name)
		}
	}
	if all := len(s.Bindings) + d.at.NodeBindings; all > MaxAllBindings && len(s.Bindings) > len(d.section.Bindings) {
		return refusal(Full, "access.bindings", "bind groups instead of users; 50,000 are allowed in all",
			"there would be %d bindings", all)
	}
	d.noteSection(&d.section, &s)
	if len(d.differences) > 0 {
		d.installSection(s, roles)
	}
	return nil
}

// installSection expects a canonical and checked section.
func (b *Book) installSection(s Section, roles Roles) {
	b.section, b.roles = s, roles
	b.cluster = Compile(s.Bindings, roles, ClusterScope)
}

// noteSection expects canonical sections.
func (d *draft) noteSection(before, after *Section) {
	noteList(d, "role", before.Roles, after.Roles, func(r Role) string { return r.Name }, Role.describe)
	noteList(d, "issuer", before.Issuers, after.Issuers, func(i Issuer) string { return i.Name }, Issuer.describe)
	noteList(d, "certificate", before.Certificates, after.Certificates, CertificateRule.key, CertificateRule.describe)
	noteList(d, "binding", before.Bindings, after.Bindings, Binding.describe, Binding.describe)
	d.note("token-life", "", describeSpan(before.tokenLife()), describeSpan(after.tokenLife()))
}

// noteList expects elements with unique keys.
func noteList[T any](d *draft, object string, before, after []T, key, describe func(T) string) {
	texts := make(map[string]string, len(after)) // look-ups only: the order is that of the lists
	for _, t := range after {
		texts[key(t)] = describe(t)
	}
	for _, old := range before {
		d.note(object, key(old), describe(old), texts[key(old)])
		delete(texts, key(old))
	}
	for _, t := range after {
		d.note(object, key(t), "", texts[key(t)])
	}
}

func (d *draft) bootstrap(c Bootstrap) *Error {
	switch {
	case c.Secret == d.spent && c.Secret != [32]byte{}:
		return refusal(Conflict, "secret", "recover access on a member's machine", "the secret has been used")
	case c.Secret == [32]byte{}:
		return invalid("secret", "send the hash of the secret", "the hash is zero")
	case !c.IsRecovery && d.spent != [32]byte{}:
		return refusal(Conflict, "secret", "recover access on a member's machine", "the cluster has been bootstrapped")
	case c.IsRecovery && c.Recoveries != d.recoveries:
		return refusal(Conflict, "recoveries", "begin a new recovery", "the recovery is for count %d; the count is %d",
			c.Recoveries, d.recoveries)
	}
	if err := checkText("member", c.Member); err != nil {
		return err
	}
	if err := d.enableAccount(c.Account); err != nil {
		return err
	}
	if err := d.createToken(CreateToken{
		Account: c.Account, Token: c.Token, Description: "made by bootstrap", Ceiling: AllVerbs,
	}); err != nil {
		return err
	}
	if err := d.bindRoot(c.Account); err != nil {
		return err
	}
	d.spent = c.Secret
	before, after := "", "done"
	if c.IsRecovery {
		before = describeCount(d.recoveries)
		d.recoveries++
		d.recovery = Recovery{Member: c.Member, Account: c.Account, Index: d.at.Index, Wall: d.at.Wall}
		after = describeCount(d.recoveries)
	}
	d.note("bootstrap", "", before, after)
	if c.Guard {
		return d.setMode(Guarded)
	}
	return nil
}

func (d *draft) enableAccount(name string) *Error {
	wanted := Account{Name: name}
	if old, found := d.accounts.Get(name); found {
		wanted = old.Account
		wanted.Disabled = false
		if err := d.updateAccount(UpdateAccount{Account: wanted}); err != nil {
			return err
		}
	} else if err := d.createAccount(wanted); err != nil {
		return err
	}
	if key := (RefusedKey{Kind: RefusedUser, Name: wanted.User()}); d.isRefused(key, d.at.Wall) {
		return d.unrefuse(key)
	}
	return nil
}

// bindRoot makes sure that root is bound to an account on the cluster without an end.
func (d *draft) bindRoot(account string) *Error {
	root := Binding{Role: RoleRoot, To: []Subject{{Kind: AccountSubject, Name: account}}}
	s := d.section
	s.Bindings = append(slices.Clone(s.Bindings), root)
	if len(AddedBindings(d.section.Bindings, []Binding{root})) == 0 {
		return nil
	}
	return d.replaceSection(s)
}
